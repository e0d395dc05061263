//! The media type of a file, by the end of its name.

use bolide_server::HeaderValue;

/// Types that are younger than the table, or other by now (RFC 9239).
const YOUNGER: [(&str, &str); 4] = [
    ("mjs", "text/javascript"),
    ("cjs", "text/javascript"),
    ("map", "application/json"),
    ("jxl", "image/jxl"),
];

/// `Content-Type`; of text, with its encoding, which is UTF-8 everywhere by now.
pub(crate) fn of(name: &str) -> HeaderValue {
    let ending = name.rsplit('/').next().and_then(|file| file.rsplit_once('.'));
    let ending = ending.map_or("", |(_, ending)| ending);
    let younger = YOUNGER.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known));
    let media_type = match younger {
        Some((_, media_type)) => media_type,
        None => mime_guess::from_ext(ending).first_raw().unwrap_or("application/octet-stream"),
    };
    let encoded = media_type.starts_with("text/").then(|| format!("{media_type}; charset=utf-8"));
    encoded
        .and_then(|text| HeaderValue::try_from(text).ok())
        .unwrap_or_else(|| HeaderValue::from_static(media_type))
}

/// Returns whether content of this type is text, and so worth compressing.
pub(crate) fn is_text(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim_end();
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || essence.ends_with("+json")
        || matches!(essence, "application/javascript" | "application/json" | "application/xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types() {
        for (name, expected) in [
            ("/a.html", "text/html; charset=utf-8"),
            ("/a.HTML", "text/html; charset=utf-8"),
            ("/a.css", "text/css; charset=utf-8"),
            ("/a.js", "text/javascript; charset=utf-8"),
            ("/a.mjs", "text/javascript; charset=utf-8"),
            ("/a.json", "application/json"),
            ("/a.svg", "image/svg+xml"),
            ("/a.txt", "text/plain; charset=utf-8"),
            ("/a.png", "image/png"),
            ("/a.wasm", "application/wasm"),
            ("/a.woff2", "font/woff2"),
            ("/a.webp", "image/webp"),
            ("/a.avif", "image/avif"),
            ("/a.mp4", "video/mp4"),
            ("/a.pdf", "application/pdf"),
            ("/a.tar.gz", "application/gzip"),
            ("/a", "application/octet-stream"),
            ("/a.b/c", "application/octet-stream"),
            ("/a.nobody-knows", "application/octet-stream"),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_text() {
        for text in ["text/html; charset=utf-8", "image/svg+xml", "application/ld+json"] {
            assert!(is_text(text), "{text}");
        }
        for other in ["image/png", "application/octet-stream", "font/woff2"] {
            assert!(!is_text(other), "{other}");
        }
    }
}

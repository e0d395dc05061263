//! Target of a measurement, by its URL.

use bolide_semantics::{Scheme, Url};

/// The schemes of URLs that are measured: with `raw`, TCP and nothing else; with `ws` and `wss`, ndt7.
pub const SCHEMES: [Scheme; 5] =
    [Scheme::Http, Scheme::Https, Scheme::Ws, Scheme::Wss, Scheme::Raw];

/// Reads a URL to measure.
///
/// # Errors
///
/// What is wrong with it, in a sentence.
pub fn parse(text: &str) -> Result<Url, String> {
    let url = Url::parse(text, &SCHEMES)?;
    if url.scheme == Scheme::Raw && (url.explicit_port.is_none() || url.path != "/") {
        let why = "it must be raw://host:port, without a path";
        return Err(format!("`{text}` is not a URL: {why}"));
    }
    Ok(url)
}

/// The number of bytes that a path names, when it is one: `/SIZE`.
pub fn size(path: &str) -> Option<u64> {
    let digits = path.strip_prefix('/')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_path_of_digits() {
        assert_eq!(size("/1048576"), Some(1_048_576));
        for path in ["/", "/1k", "/+1", "/1?x", "/1/2", "/99999999999999999999"] {
            assert_eq!(size(path), None, "{path}");
        }
    }

    #[test]
    fn a_raw_url_is_a_host_and_a_port() {
        assert_eq!(parse("raw://10.0.0.1:5001").unwrap().to_string(), "raw://10.0.0.1:5001");
        for text in ["raw://a", "raw://a:1/x", "ftp://a"] {
            let said = parse(text).unwrap_err();
            assert!(said.contains("raw://") && said.contains(text), "{said}");
        }
    }
}

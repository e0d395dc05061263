//! RFC 9110 §12.5.3: which responses are worth a coding, and which coding.

use std::sync::LazyLock;

use bolide_semantics::preferred_coding;
use bolide_server::{Codec, FieldName, Head, Offload, OffloadLimits, ResponseFields, StatusCode};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, HeaderName};

use crate::codecs::{BROTLI, GZIP, ZSTD};
use crate::limits::{COMPRESS_MIN_BYTES, COMPRESS_THREADS_COUNT};

/// The names of the codecs.
const OFFERED: [&str; 3] = ["zstd", "br", "gzip"];
/// In order of preference.
static CODECS: [&dyn Codec; 3] = [&ZSTD, &BROTLI, &GZIP];

/// Types of text, and others that shrink.
const TYPES: [&str; 14] = [
    "text/*",
    "*+json",
    "*+xml",
    "application/json",
    "application/javascript",
    "application/xml",
    "application/x-ndjson",
    "application/graphql-response",
    "application/wasm",
    "application/vnd.ms-fontobject",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/x-icon",
];

/// RFC 9530, and what came before: digests are of what the handler or upstream has sent.
static DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-md5"),
];

/// A type that can't be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a media type: give one such as application/json, text/* or *+json")]
pub struct TypeError;

/// Which responses are compressed for clients that accept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    types: Vec<Pattern>,
    min_bytes: u64,
}

/// Media types without parameters, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Is(Box<str>),
    Begins(Box<str>),
    Ends(Box<str>),
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, TypeError> {
        let text = text.to_ascii_lowercase();
        let is_token = |part: &str| {
            let is_one = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
            !part.is_empty() && part.bytes().all(is_one)
        };
        if let Some(suffix) = text.strip_prefix("*+") {
            return is_token(suffix).then(|| Self::Ends(text[1..].into())).ok_or(TypeError);
        }
        match text.split_once('/') {
            Some((group, "*")) if is_token(group) => Ok(Self::Begins(format!("{group}/").into())),
            Some((group, name)) if is_token(group) && is_token(name) => Ok(Self::Is(text.into())),
            _ => Err(TypeError),
        }
    }

    fn matches(&self, essence: &[u8]) -> bool {
        match self {
            Self::Is(whole) => essence.eq_ignore_ascii_case(whole.as_bytes()),
            Self::Begins(start) => essence
                .get(..start.len())
                .is_some_and(|own| own.eq_ignore_ascii_case(start.as_bytes())),
            Self::Ends(end) => {
                let at = essence.len().checked_sub(end.len()).filter(|at| *at > 0);
                at.is_some_and(|at| essence[at..].eq_ignore_ascii_case(end.as_bytes()))
            }
        }
    }
}

impl Default for Compression {
    fn default() -> Self {
        let types = TYPES.iter().filter_map(|text| Pattern::parse(text).ok()).collect();
        Self { types, min_bytes: COMPRESS_MIN_BYTES }
    }
}

impl Compression {
    /// The same for these types alone, such as `application/json`, `text/*` or `*+json`.
    ///
    /// # Errors
    ///
    /// The index of the first that is none of these, and what is wrong.
    pub fn types<'t>(
        mut self,
        types: impl IntoIterator<Item = &'t str>,
    ) -> Result<Self, (usize, TypeError)> {
        let parse = |(at, text)| Pattern::parse(text).map_err(|what| (at, what));
        self.types = types.into_iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The same for responses of at least so many bytes. Default: [`COMPRESS_MIN_BYTES`].
    #[must_use]
    pub fn min_bytes(self, min_bytes: u64) -> Self {
        Self { min_bytes, ..self }
    }

    /// All codings, in order of preference.
    #[must_use]
    pub fn codecs() -> [&'static dyn Codec; 3] {
        CODECS
    }

    /// The coding that the client of a request likes best; `None`: none.
    #[must_use]
    pub fn choose(request: &Head) -> Option<&'static dyn Codec> {
        let mut accepted = request.get_all(FieldName::AcceptEncoding).peekable();
        accepted.peek()?;
        let lines: Vec<&[u8]> = accepted.collect();
        // RFC 9111 §5.2.1.6.
        if request.get_all(FieldName::CacheControl).any(forbids) {
            return None;
        }
        let best = preferred_coding(lines.iter().copied(), &OFFERED);
        best.map(|index| CODECS[index])
    }

    /// Returns whether a response with these fields is worth a coding, for clients that accept one. `length`: of its content, in
    /// bytes, if known.
    #[must_use]
    pub fn suits(&self, fields: &ResponseFields<'_>, length: Option<u64>) -> bool {
        let Some(media_type) = fields.get(&CONTENT_TYPE) else { return false };
        let end = media_type.iter().position(|byte| *byte == b';').unwrap_or(media_type.len());
        let essence = media_type[..end].trim_ascii();
        length.is_none_or(|length| length >= self.min_bytes)
            && self.types.iter().any(|pattern| pattern.matches(essence))
            && fields.status() != StatusCode::PARTIAL_CONTENT
            && fields.get(&CONTENT_ENCODING).is_none()
            && fields.get(&CONTENT_RANGE).is_none()
            && DIGESTS.iter().all(|name| fields.get(name).is_none())
            && !fields.get_all(&CACHE_CONTROL).any(forbids)
    }

    /// The threads that compress for all workers.
    #[must_use]
    pub fn offload() -> &'static Offload {
        static POOL: LazyLock<Offload> = LazyLock::new(|| {
            let offload_threads_count = COMPRESS_THREADS_COUNT;
            Offload::new(OffloadLimits { offload_threads_count, ..OffloadLimits::default() })
        });
        &POOL
    }
}

/// Returns whether a line of `Cache-Control` has the directive `no-transform` (RFC 9111 §5.2.2.6).
fn forbids(line: &[u8]) -> bool {
    line.split(|byte| *byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolide_server::{HeaderValue, Version};

    fn chosen(lines: &[(&str, &str)]) -> Option<&'static str> {
        let mut head = Head::default();
        head.clear(bolide_semantics::HeadKind::Request, Version::HTTP_11);
        for (name, value) in lines {
            head.append(name, value.as_bytes());
        }
        Compression::choose(&head).map(Codec::name)
    }

    #[test]
    fn the_client_decides_by_weights_and_we_among_equals() {
        for (line, name) in [
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("gzip, br", Some("br")),
            ("gzip;q=1, br;q=0.5", Some("gzip")),
            ("zstd;q=0, br;q=0, *", Some("gzip")),
            ("identity", None),
            ("deflate", None),
        ] {
            assert_eq!(chosen(&[("accept-encoding", line)]), name, "{line}");
        }
        assert_eq!(chosen(&[]), None);
        let forbids = [("accept-encoding", "gzip"), ("cache-control", "no-cache, no-transform")];
        assert_eq!(chosen(&forbids), None);
    }

    fn suits(
        compression: &Compression,
        status: u16,
        fields: &[(&'static str, &'static str)],
    ) -> bool {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let status = StatusCode::from_u16(status).unwrap();
        compression.suits(&ResponseFields::of(status, &fields), None)
    }

    #[test]
    fn types_are_compared_without_their_parameters() {
        let all = Compression::default();
        for (media_type, expected) in [
            ("text/html; charset=utf-8", true),
            ("TEXT/Event-Stream", true),
            ("application/json", true),
            ("application/problem+json", true),
            ("image/svg+xml;a=b", true),
            ("application/wasm", true),
            ("application/jsonp", false),
            ("image/png", false),
            ("+json", false),
            ("application/grpc", false),
            ("", false),
        ] {
            let fields = [("content-type", media_type)];
            assert_eq!(suits(&all, 200, &fields), expected, "{media_type}");
        }
        let few = Compression::default().types(["application/x-a", "*+zip"]).unwrap();
        assert!(suits(&few, 200, &[("content-type", "application/epub+zip")]));
        assert!(!suits(&few, 200, &[("content-type", "text/html")]));
        for bad in ["", "text", "*", "*/*", "text/", "/html", "text/html; charset=utf-8", "*+"] {
            let error = Compression::default().types(["text/*", bad]);
            assert_eq!(error, Err((1, TypeError)), "{bad}");
        }
    }

    #[test]
    fn what_is_encoded_partial_or_must_stay_is_left() {
        let all = Compression::default();
        let html = ("content-type", "text/html");
        assert!(suits(&all, 404, &[html, ("cache-control", "max-age=5")]));
        for more in [
            ("content-encoding", "identity"),
            ("content-range", "bytes 0-1/2"),
            ("cache-control", "max-age=5, No-Transform"),
            ("repr-digest", "sha-256=:AA==:"),
        ] {
            assert!(!suits(&all, 200, &[html, more]), "{more:?}");
        }
        assert!(!suits(&all, 206, &[html]));
        assert!(!suits(
            &all,
            200,
            &[html, ("cache-control", "a"), ("cache-control", "no-transform")]
        ));
    }
}

//! RFC 9110 §5.1: field names, those that are often seen as one byte.

macro_rules! field_names {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// An interned field name. Names that are not listed travel as text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum FieldName {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl FieldName {
            /// Every interned name, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            const TEXT: &'static [&'static str] = &[$($text),*];
        }
    };
}

// The names of the HPACK static table (RFC 7541 Appendix A) and those that the engine looks at.
field_names! {
    Accept = "accept",
    AcceptCharset = "accept-charset",
    AcceptEncoding = "accept-encoding",
    AcceptLanguage = "accept-language",
    AcceptRanges = "accept-ranges",
    AccessControlAllowOrigin = "access-control-allow-origin",
    Age = "age",
    Allow = "allow",
    AltSvc = "alt-svc",
    Authorization = "authorization",
    CacheControl = "cache-control",
    Connection = "connection",
    ContentDisposition = "content-disposition",
    ContentEncoding = "content-encoding",
    ContentLanguage = "content-language",
    ContentLength = "content-length",
    ContentLocation = "content-location",
    ContentRange = "content-range",
    ContentType = "content-type",
    Cookie = "cookie",
    Date = "date",
    Etag = "etag",
    Expect = "expect",
    Expires = "expires",
    Forwarded = "forwarded",
    From = "from",
    Host = "host",
    Http2Settings = "http2-settings",
    IfMatch = "if-match",
    IfModifiedSince = "if-modified-since",
    IfNoneMatch = "if-none-match",
    IfRange = "if-range",
    IfUnmodifiedSince = "if-unmodified-since",
    KeepAlive = "keep-alive",
    LastModified = "last-modified",
    Link = "link",
    Location = "location",
    MaxForwards = "max-forwards",
    Origin = "origin",
    Priority = "priority",
    ProxyAuthenticate = "proxy-authenticate",
    ProxyAuthorization = "proxy-authorization",
    ProxyConnection = "proxy-connection",
    Range = "range",
    Referer = "referer",
    Refresh = "refresh",
    RetryAfter = "retry-after",
    SecWebsocketAccept = "sec-websocket-accept",
    SecWebsocketExtensions = "sec-websocket-extensions",
    SecWebsocketKey = "sec-websocket-key",
    SecWebsocketProtocol = "sec-websocket-protocol",
    SecWebsocketVersion = "sec-websocket-version",
    Server = "server",
    SetCookie = "set-cookie",
    StrictTransportSecurity = "strict-transport-security",
    Te = "te",
    Trailer = "trailer",
    TransferEncoding = "transfer-encoding",
    Upgrade = "upgrade",
    UserAgent = "user-agent",
    Vary = "vary",
    Via = "via",
    WwwAuthenticate = "www-authenticate",
    XForwardedFor = "x-forwarded-for",
    XForwardedHost = "x-forwarded-host",
    XForwardedProto = "x-forwarded-proto",
}

/// Numbers of names by [`hash`], probed in order; `EMPTY` ends a run.
static BY_HASH: [u8; SLOTS] = by_hash();
const SLOTS: usize = 512;
const EMPTY: u8 = u8::MAX;

/// Length, first, middle and last byte tell the known names apart nearly everywhere.
#[inline]
const fn hash(name: &[u8]) -> usize {
    let length = name.len();
    let first = name[0] as usize;
    let middle = name[length / 2] as usize;
    let last = name[length - 1] as usize;
    (length * 37 + first * 11 + middle * 83 + last * 5) % SLOTS
}

const fn by_hash() -> [u8; SLOTS] {
    let mut table = [EMPTY; SLOTS];
    let mut number = 0;
    while number < FieldName::TEXT.len() {
        let mut slot = hash(FieldName::TEXT[number].as_bytes());
        while table[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = number as u8;
        number += 1;
    }
    table
}

impl FieldName {
    /// The interned form of a name that is already in lower case.
    #[inline]
    #[must_use]
    pub fn lookup(lower: &[u8]) -> Option<Self> {
        if lower.is_empty() {
            return None;
        }
        let mut slot = hash(lower);
        loop {
            let number = BY_HASH[slot];
            if number == EMPTY {
                return None;
            }
            if Self::TEXT[usize::from(number)].as_bytes() == lower {
                return Some(Self::ALL[usize::from(number)]);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The name as it goes on the wire, in lower case.
    #[inline]
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        Self::TEXT[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_itself() {
        for (number, name) in FieldName::ALL.iter().enumerate() {
            assert_eq!(*name as usize, number);
            assert_eq!(FieldName::lookup(name.as_str().as_bytes()), Some(*name));
            assert!(crate::is_token(name.as_str().as_bytes()));
            assert_eq!(name.as_str(), name.as_str().to_ascii_lowercase());
        }
        assert_eq!(FieldName::lookup(b"x-unknown"), None);
        assert_eq!(FieldName::lookup(b"Host"), None);
    }
}

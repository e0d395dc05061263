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

// The names of the HPACK static table (RFC 7541 Appendix A), those that the engine looks at, and those that browsers
// send with every request.
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
    Dnt = "dnt",
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
    SecChUa = "sec-ch-ua",
    SecChUaMobile = "sec-ch-ua-mobile",
    SecChUaPlatform = "sec-ch-ua-platform",
    SecFetchDest = "sec-fetch-dest",
    SecFetchMode = "sec-fetch-mode",
    SecFetchSite = "sec-fetch-site",
    SecFetchUser = "sec-fetch-user",
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
    UpgradeInsecureRequests = "upgrade-insecure-requests",
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
    slot_of(name.len(), name[0], name[name.len() / 2], name[name.len() - 1])
}

#[inline]
const fn slot_of(length: usize, first: u8, middle: u8, last: u8) -> usize {
    (length * 37 + first as usize * 11 + middle as usize * 83 + last as usize * 5) % SLOTS
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

/// The longest interned name and its colon fit into so many bytes.
const LINE_BYTES: usize = 32;

/// The bytes of a name and its colon; and which bits of a line tell whether it begins with them: of a letter all but
/// its case, of what follows the colon none.
struct Pattern {
    words: [u64; LINE_BYTES / 8],
    masks: [u64; LINE_BYTES / 8],
    length: u8,
}

static PATTERNS: [Pattern; FieldName::ALL.len()] = {
    const NONE: Pattern = Pattern { words: [0; 4], masks: [0; 4], length: 0 };
    let mut patterns = [NONE; FieldName::ALL.len()];
    let mut number = 0;
    while number < FieldName::ALL.len() {
        let name = FieldName::TEXT[number].as_bytes();
        assert!(name.len() < LINE_BYTES, "a name too long for its pattern");
        let mut at = 0;
        while at <= name.len() {
            let byte = if at < name.len() { name[at] } else { b':' };
            let mask = if byte.is_ascii_lowercase() { 0xdf } else { 0xff };
            let shift = at % 8 * 8;
            patterns[number].words[at / 8] |= ((byte & mask) as u64) << shift;
            patterns[number].masks[at / 8] |= (mask as u64) << shift;
            at += 1;
        }
        patterns[number].length = name.len() as u8;
        number += 1;
    }
    patterns
};

/// Numbers of names by [`slot_of_line`], probed in order; `EMPTY` ends a run.
static BY_LINE: [u8; SLOTS] = {
    let mut table = [EMPTY; SLOTS];
    let mut number = 0;
    while number < FieldName::ALL.len() {
        let Pattern { words, .. } = &PATTERNS[number];
        let mut slot = slot_of_line(words[0], words[1]);
        while table[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = number as u8;
        number += 1;
    }
    table
};

const ONES: u64 = u64::MAX / 0xff;

/// Marks, in the top bit of each byte, the first colon of a word, and perhaps bytes behind it.
#[inline]
const fn colons(word: u64) -> u64 {
    let other = word ^ (ONES * b':' as u64);
    other.wrapping_sub(ONES) & !other & (ONES * 0x80)
}

/// The bits of the bytes before the first that is marked; nearly all bits if none is.
#[inline]
const fn before(marks: u64) -> u64 {
    (marks.wrapping_sub(1) & !marks) >> 7
}

/// The first sixteen bytes up to the colon, whatever their case, tell the known names apart.
#[inline]
const fn slot_of_line(first: u64, second: u64) -> usize {
    const CASE: u64 = ONES * 0x20;
    let (first_colons, second_colons) = (colons(first), colons(second));
    let key = (first | CASE) & before(first_colons);
    let more = if first_colons == 0 { (second | CASE) & before(second_colons) } else { 0 };
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ more.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed >> 55) as usize % SLOTS
}

impl FieldName {
    /// The interned name, in any case, that a line of HTTP/1.1 begins with, up to its colon, and its length. `None`: the
    /// line has another name, or none.
    #[inline]
    #[must_use]
    pub fn at_start_of(line: &[u8; LINE_BYTES]) -> Option<(Self, usize)> {
        let word = |at: usize| {
            line[8 * at..].first_chunk().map_or(0, |chunk: &[u8; 8]| u64::from_le_bytes(*chunk))
        };
        let words = [word(0), word(1), word(2), word(3)];
        let mut slot = slot_of_line(words[0], words[1]);
        loop {
            let number = usize::from(BY_LINE[slot]);
            let (Some(pattern), Some(name)) = (PATTERNS.get(number), Self::ALL.get(number)) else {
                return None;
            };
            let differs = |at: usize| (words[at] ^ pattern.words[at]) & pattern.masks[at];
            if differs(0) | differs(1) | differs(2) | differs(3) == 0 {
                return Some((*name, usize::from(pattern.length)));
            }
            slot = (slot + 1) % SLOTS;
        }
    }

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
    use crate::TOKEN_LOWER;

    #[test]
    fn every_name_finds_itself() {
        for (number, name) in FieldName::ALL.iter().enumerate() {
            assert_eq!(*name as usize, number);
            assert_eq!(FieldName::lookup(name.as_str().as_bytes()), Some(*name));
            assert!(crate::is_token(name.as_str().as_bytes()));
            assert_eq!(name.as_str(), name.as_str().to_ascii_lowercase());
        }
        assert_eq!(FieldName::lookup(b"x-unknown"), None);
    }

    #[test]
    fn a_line_begins_with_a_name_in_any_case() {
        let line = |name: &str| {
            let mut line = [b' '; LINE_BYTES];
            line[..name.len()].copy_from_slice(name.as_bytes());
            if name.len() < LINE_BYTES {
                line[name.len()] = b':';
            }
            line
        };
        for name in FieldName::ALL {
            let text = name.as_str();
            for text in [text.to_owned(), text.to_ascii_uppercase()] {
                assert_eq!(FieldName::at_start_of(&line(&text)), Some((*name, text.len())));
                for at in 0..text.len() {
                    for flip in [0x20, 0x01, 0x80, 0x40] {
                        let mut other = line(&text);
                        other[at] ^= flip;
                        let lower = TOKEN_LOWER[usize::from(other[at])];
                        let is_it = lower == name.as_str().as_bytes()[at];
                        let found = FieldName::at_start_of(&other);
                        let expected = is_it.then_some((*name, text.len()));
                        let is_other = found.is_some_and(|(found, _)| found != *name);
                        assert!(found == expected || is_other, "{text} {at} {flip}");
                    }
                }
            }
        }
        assert_eq!(FieldName::at_start_of(&line("x-unknown")), None);
        assert_eq!(FieldName::at_start_of(&[b'a'; LINE_BYTES]), None);
        assert_eq!(FieldName::at_start_of(&line("")), None);
        assert_eq!(FieldName::lookup(b"Host"), None);
    }
}

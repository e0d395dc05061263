//! RFC 9204 Appendix A: the static table.

use bolide_semantics::{FieldName as F, NameKind, Pseudo};

/// The number of entries.
pub(crate) const LENGTH: usize = 99;

/// An entry: how its name is known, its name, and its value.
pub(crate) type Entry = (NameKind, &'static str, &'static str);

const fn pseudo(name: Pseudo, value: &'static str) -> Entry {
    (NameKind::Pseudo(name), name.as_str(), value)
}

const fn known(name: F, value: &'static str) -> Entry {
    (NameKind::Known(name), name.as_str(), value)
}

const fn other(name: &'static str, value: &'static str) -> Entry {
    (NameKind::Other, name, value)
}

/// The entries, from index 0.
pub(crate) static ENTRIES: [Entry; LENGTH] = TABLE;

#[rustfmt::skip]
const TABLE: [Entry; LENGTH] = [
    pseudo(Pseudo::Authority, ""),
    pseudo(Pseudo::Path, "/"),
    known(F::Age, "0"),
    known(F::ContentDisposition, ""),
    known(F::ContentLength, "0"),
    known(F::Cookie, ""),
    known(F::Date, ""),
    known(F::Etag, ""),
    known(F::IfModifiedSince, ""),
    known(F::IfNoneMatch, ""),
    known(F::LastModified, ""),
    known(F::Link, ""),
    known(F::Location, ""),
    known(F::Referer, ""),
    known(F::SetCookie, ""),
    pseudo(Pseudo::Method, "CONNECT"),
    pseudo(Pseudo::Method, "DELETE"),
    pseudo(Pseudo::Method, "GET"),
    pseudo(Pseudo::Method, "HEAD"),
    pseudo(Pseudo::Method, "OPTIONS"),
    pseudo(Pseudo::Method, "POST"),
    pseudo(Pseudo::Method, "PUT"),
    pseudo(Pseudo::Scheme, "http"),
    pseudo(Pseudo::Scheme, "https"),
    pseudo(Pseudo::Status, "103"),
    pseudo(Pseudo::Status, "200"),
    pseudo(Pseudo::Status, "304"),
    pseudo(Pseudo::Status, "404"),
    pseudo(Pseudo::Status, "503"),
    known(F::Accept, "*/*"),
    known(F::Accept, "application/dns-message"),
    known(F::AcceptEncoding, "gzip, deflate, br"),
    known(F::AcceptRanges, "bytes"),
    other("access-control-allow-headers", "cache-control"),
    other("access-control-allow-headers", "content-type"),
    known(F::AccessControlAllowOrigin, "*"),
    known(F::CacheControl, "max-age=0"),
    known(F::CacheControl, "max-age=2592000"),
    known(F::CacheControl, "max-age=604800"),
    known(F::CacheControl, "no-cache"),
    known(F::CacheControl, "no-store"),
    known(F::CacheControl, "public, max-age=31536000"),
    known(F::ContentEncoding, "br"),
    known(F::ContentEncoding, "gzip"),
    known(F::ContentType, "application/dns-message"),
    known(F::ContentType, "application/javascript"),
    known(F::ContentType, "application/json"),
    known(F::ContentType, "application/x-www-form-urlencoded"),
    known(F::ContentType, "image/gif"),
    known(F::ContentType, "image/jpeg"),
    known(F::ContentType, "image/png"),
    known(F::ContentType, "text/css"),
    known(F::ContentType, "text/html; charset=utf-8"),
    known(F::ContentType, "text/plain"),
    known(F::ContentType, "text/plain;charset=utf-8"),
    known(F::Range, "bytes=0-"),
    known(F::StrictTransportSecurity, "max-age=31536000"),
    known(F::StrictTransportSecurity, "max-age=31536000; includesubdomains"),
    known(F::StrictTransportSecurity, "max-age=31536000; includesubdomains; preload"),
    known(F::Vary, "accept-encoding"),
    known(F::Vary, "origin"),
    other("x-content-type-options", "nosniff"),
    other("x-xss-protection", "1; mode=block"),
    pseudo(Pseudo::Status, "100"),
    pseudo(Pseudo::Status, "204"),
    pseudo(Pseudo::Status, "206"),
    pseudo(Pseudo::Status, "302"),
    pseudo(Pseudo::Status, "400"),
    pseudo(Pseudo::Status, "403"),
    pseudo(Pseudo::Status, "421"),
    pseudo(Pseudo::Status, "425"),
    pseudo(Pseudo::Status, "500"),
    known(F::AcceptLanguage, ""),
    other("access-control-allow-credentials", "FALSE"),
    other("access-control-allow-credentials", "TRUE"),
    other("access-control-allow-headers", "*"),
    other("access-control-allow-methods", "get"),
    other("access-control-allow-methods", "get, post, options"),
    other("access-control-allow-methods", "options"),
    other("access-control-expose-headers", "content-length"),
    other("access-control-request-headers", "content-type"),
    other("access-control-request-method", "get"),
    other("access-control-request-method", "post"),
    known(F::AltSvc, "clear"),
    known(F::Authorization, ""),
    other("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    other("early-data", "1"),
    other("expect-ct", ""),
    known(F::Forwarded, ""),
    known(F::IfRange, ""),
    known(F::Origin, ""),
    other("purpose", "prefetch"),
    known(F::Server, ""),
    other("timing-allow-origin", "*"),
    known(F::UpgradeInsecureRequests, "1"),
    known(F::UserAgent, ""),
    known(F::XForwardedFor, ""),
    other("x-frame-options", "deny"),
    other("x-frame-options", "sameorigin"),
];

/// Start of the entries of a name, and how many there are; none but `:status` has others elsewhere.
type Range = (u8, u8);

const NONE: Range = (0, 0);

/// The second range of `:status`.
const LATER_STATUSES: Range = (63, 9);

static BY_NAME: [Range; F::ALL.len()] = {
    let mut ranges = [NONE; F::ALL.len()];
    let mut at = LENGTH;
    while at > 0 {
        at -= 1;
        if let NameKind::Known(name) = TABLE[at].0 {
            let (_, count) = ranges[name as usize];
            ranges[name as usize] = (at as u8, count + 1);
        }
    }
    ranges
};

/// Match of a line in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The whole line.
    Line(usize),
    /// Its name.
    Name(usize),
    Nothing,
}

/// Looks for a line whose name is known as `kind`.
#[inline]
pub(crate) fn find(kind: NameKind, name: &str, value: &[u8]) -> Found {
    let range = match kind {
        NameKind::Known(known) => BY_NAME[known as usize],
        NameKind::Pseudo(pseudo) => match pseudo {
            Pseudo::Authority => (0, 1),
            Pseudo::Path => (1, 1),
            Pseudo::Method => (15, 7),
            Pseudo::Scheme => (22, 2),
            Pseudo::Status => (24, 5),
            Pseudo::Protocol => NONE,
        },
        NameKind::Other => named(name),
    };
    let found = in_range(range, value);
    if kind == NameKind::Pseudo(Pseudo::Status)
        && let Found::Line(index) = in_range(LATER_STATUSES, value)
    {
        return Found::Line(index);
    }
    found
}

#[inline]
fn in_range((first, count): Range, value: &[u8]) -> Found {
    let (first, count) = (usize::from(first), usize::from(count));
    if count == 0 {
        return Found::Nothing;
    }
    let line = (first..first + count).find(|index| ENTRIES[*index].2.as_bytes() == value);
    line.map_or(Found::Name(first), Found::Line)
}

/// The entries of a name that is not interned.
fn named(name: &str) -> Range {
    match name {
        "access-control-allow-credentials" => (73, 2),
        "access-control-allow-headers" => (33, 2),
        "access-control-allow-methods" => (76, 3),
        "access-control-expose-headers" => (79, 1),
        "access-control-request-headers" => (80, 1),
        "access-control-request-method" => (81, 2),
        "content-security-policy" => (85, 1),
        "early-data" => (86, 1),
        "expect-ct" => (87, 1),
        "purpose" => (91, 1),
        "timing-allow-origin" => (93, 1),
        "x-content-type-options" => (61, 1),
        "x-frame-options" => (97, 2),
        "x-xss-protection" => (62, 1),
        _ => NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found() {
        for (index, (kind, name, value)) in ENTRIES.iter().enumerate() {
            assert_eq!(NameKind::of(name.as_bytes()), *kind, "{name}");
            // The third entry of this name is in a place of its own.
            let apart = index == 75;
            let expected = if apart { Found::Name(33) } else { Found::Line(index) };
            assert_eq!(find(*kind, name, value.as_bytes()), expected, "{name}: {value}");
            assert!(!matches!(find(*kind, name, b"something else"), Found::Nothing), "{name}");
        }
        assert_eq!(find(NameKind::Other, "x-a", b""), Found::Nothing);
        assert_eq!(find(NameKind::Pseudo(Pseudo::Protocol), ":protocol", b""), Found::Nothing);
    }
}

//! RFC 7541 Appendix A: the static table.

use bolide_semantics::FieldName as F;

use crate::{NameKind, Pseudo};

/// The number of entries; the dynamic table's indices begin after it.
pub(crate) const LENGTH: usize = 61;

const fn pseudo(name: Pseudo, value: &'static str) -> (NameKind, &'static str) {
    (NameKind::Pseudo(name), value)
}

const fn field(name: F) -> (NameKind, &'static str) {
    (NameKind::Known(name), "")
}

/// The entries, from index 1.
pub(crate) static ENTRIES: [(NameKind, &str); LENGTH] = TABLE;

const TABLE: [(NameKind, &str); LENGTH] = [
    pseudo(Pseudo::Authority, ""),
    pseudo(Pseudo::Method, "GET"),
    pseudo(Pseudo::Method, "POST"),
    pseudo(Pseudo::Path, "/"),
    pseudo(Pseudo::Path, "/index.html"),
    pseudo(Pseudo::Scheme, "http"),
    pseudo(Pseudo::Scheme, "https"),
    pseudo(Pseudo::Status, "200"),
    pseudo(Pseudo::Status, "204"),
    pseudo(Pseudo::Status, "206"),
    pseudo(Pseudo::Status, "304"),
    pseudo(Pseudo::Status, "400"),
    pseudo(Pseudo::Status, "404"),
    pseudo(Pseudo::Status, "500"),
    field(F::AcceptCharset),
    (NameKind::Known(F::AcceptEncoding), "gzip, deflate"),
    field(F::AcceptLanguage),
    field(F::AcceptRanges),
    field(F::Accept),
    field(F::AccessControlAllowOrigin),
    field(F::Age),
    field(F::Allow),
    field(F::Authorization),
    field(F::CacheControl),
    field(F::ContentDisposition),
    field(F::ContentEncoding),
    field(F::ContentLanguage),
    field(F::ContentLength),
    field(F::ContentLocation),
    field(F::ContentRange),
    field(F::ContentType),
    field(F::Cookie),
    field(F::Date),
    field(F::Etag),
    field(F::Expect),
    field(F::Expires),
    field(F::From),
    field(F::Host),
    field(F::IfMatch),
    field(F::IfModifiedSince),
    field(F::IfNoneMatch),
    field(F::IfRange),
    field(F::IfUnmodifiedSince),
    field(F::LastModified),
    field(F::Link),
    field(F::Location),
    field(F::MaxForwards),
    field(F::ProxyAuthenticate),
    field(F::ProxyAuthorization),
    field(F::Range),
    field(F::Referer),
    field(F::Refresh),
    field(F::RetryAfter),
    field(F::Server),
    field(F::SetCookie),
    field(F::StrictTransportSecurity),
    field(F::TransferEncoding),
    field(F::UserAgent),
    field(F::Vary),
    field(F::Via),
    field(F::WwwAuthenticate),
];

/// The index of each interned name, 0 if the table has none.
static BY_NAME: [u8; F::ALL.len()] = {
    let mut indices = [0; F::ALL.len()];
    let mut at = 0;
    while at < LENGTH {
        if let NameKind::Known(name) = TABLE[at].0 {
            indices[name as usize] = at as u8 + 1;
        }
        at += 1;
    }
    indices
};

/// The index of the name's entry, 0 if there is none.
#[inline]
pub(crate) fn index_of(name: F) -> usize {
    usize::from(BY_NAME[name as usize])
}

/// The indices of a pseudo-field's entries: the first, and how many.
#[inline]
pub(crate) fn indices_of(pseudo: Pseudo) -> (usize, usize) {
    match pseudo {
        Pseudo::Authority => (1, 1),
        Pseudo::Method => (2, 2),
        Pseudo::Path => (4, 2),
        Pseudo::Protocol => (0, 0),
        Pseudo::Scheme => (6, 2),
        Pseudo::Status => (8, 7),
    }
}

/// The value of the entry at `index`, which is from 1 to 61.
#[inline]
pub(crate) fn value_at(index: usize) -> &'static [u8] {
    ENTRIES[index - 1].1.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_entries() {
        for name in F::ALL {
            let index = index_of(*name);
            if index != 0 {
                assert_eq!(ENTRIES[index - 1].0, NameKind::Known(*name));
            }
        }
        assert_eq!(index_of(F::AcceptCharset), 15);
        assert_eq!(index_of(F::WwwAuthenticate), 61);
        assert_eq!(index_of(F::Priority), 0);
    }

    #[test]
    fn pseudo_fields_find_their_entries() {
        let mut seen = 0;
        for pseudo in Pseudo::ALL {
            let (first, count) = indices_of(pseudo);
            for index in first..first + count {
                assert_eq!(ENTRIES[index - 1].0, NameKind::Pseudo(pseudo));
                seen += 1;
            }
        }
        assert_eq!(seen, 14);
    }
}

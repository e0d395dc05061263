//! RFC 7541 Appendix A: the static table.

use bolide_semantics::{FieldName as F, SHORT_BYTES};

use crate::{NameKind, Pseudo};

/// The number of entries; the dynamic table's indices begin after it.
pub(crate) const LENGTH: usize = 61;

/// An entry. Its value is short enough to be copied as one block.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// How its name is known.
    pub(crate) kind: NameKind,
    /// Bytes of the name.
    pub(crate) name_len: u8,
    /// Bytes of the value: the first ones of the block.
    pub(crate) value_len: u8,
    pub(crate) block: [u8; SHORT_BYTES],
}

impl Entry {
    const fn new(kind: NameKind, name: &str, value: &str) -> Self {
        let mut block = [0; SHORT_BYTES];
        let mut at = 0;
        while at < value.len() {
            block[at] = value.as_bytes()[at];
            at += 1;
        }
        Self { kind, name_len: name.len() as u8, value_len: value.len() as u8, block }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        &self.block[..usize::from(self.value_len)]
    }
}

const fn pseudo(name: Pseudo, value: &str) -> Entry {
    Entry::new(NameKind::Pseudo(name), name.as_str(), value)
}

const fn field(name: F) -> Entry {
    field_with(name, "")
}

const fn field_with(name: F, value: &str) -> Entry {
    Entry::new(NameKind::Known(name), name.as_str(), value)
}

/// The entries, from index 1.
pub(crate) static ENTRIES: [Entry; LENGTH] = TABLE;

const TABLE: [Entry; LENGTH] = [
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
    field_with(F::AcceptEncoding, "gzip, deflate"),
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
        if let NameKind::Known(name) = TABLE[at].kind {
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
    ENTRIES[index - 1].value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_entries() {
        for name in F::ALL {
            let index = index_of(*name);
            if index != 0 {
                assert_eq!(ENTRIES[index - 1].kind, NameKind::Known(*name));
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
                assert_eq!(ENTRIES[index - 1].kind, NameKind::Pseudo(pseudo));
                seen += 1;
            }
        }
        assert_eq!(seen, 14);
    }
}

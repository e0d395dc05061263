//! RFC 7541 §1.3: a field line as it comes out of a block.

use bolide_semantics::FieldName;

/// A pseudo-field (RFC 9113 §8.3, RFC 8441 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pseudo {
    /// `:authority`
    Authority,
    /// `:method`
    Method,
    /// `:path`
    Path,
    /// `:protocol`
    Protocol,
    /// `:scheme`
    Scheme,
    /// `:status`
    Status,
}

impl Pseudo {
    /// Every pseudo-field, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Authority, Self::Method, Self::Path, Self::Protocol, Self::Scheme, Self::Status];

    /// The name with its colon.
    #[inline]
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authority => ":authority",
            Self::Method => ":method",
            Self::Path => ":path",
            Self::Protocol => ":protocol",
            Self::Scheme => ":scheme",
            Self::Status => ":status",
        }
    }
}

/// How a field's name is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// One of the six pseudo-fields. Any other name with a colon is `Other` and not valid.
    Pseudo(Pseudo),
    /// An interned name.
    Known(FieldName),
    /// Anything else.
    Other,
}

impl NameKind {
    /// Finds out how `name` is known.
    #[inline]
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        if name.first() == Some(&b':') {
            let pseudo = Pseudo::ALL.into_iter().find(|pseudo| pseudo.as_str().as_bytes() == name);
            return pseudo.map_or(Self::Other, Self::Pseudo);
        }
        FieldName::lookup(name).map_or(Self::Other, Self::Known)
    }

    /// The name's text, unless it is `Other`.
    #[inline]
    #[must_use]
    pub fn text(self) -> Option<&'static str> {
        match self {
            Self::Pseudo(pseudo) => Some(pseudo.as_str()),
            Self::Known(name) => Some(name.as_str()),
            Self::Other => None,
        }
    }
}

/// One field of a block, as [`EachField`](crate::EachField) shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodedField<'a> {
    /// How the name is known.
    pub kind: NameKind,
    /// The name as it was sent; that of a pseudo-field with its colon.
    pub name: &'a [u8],
    /// The value as it was sent.
    pub value: &'a [u8],
    /// Whether the name is a token in lower case (or a pseudo-field's) and the value passes
    /// [`bolide_semantics::is_field_value`].
    pub valid: bool,
    /// Whether the peer forbids to put the field into a table, here and further on
    /// (RFC 7541 §6.2.3).
    pub never_indexed: bool,
}

//! RFC 9113 §8.3, RFC 9114 §4.3: how the name of a field line is known.

use crate::FieldName;

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

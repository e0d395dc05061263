//! RFC 9110 §6.3: fields that many responses share, as each version sends them.

use bolide_semantics::FieldRef;

/// Fields of final responses, checked and serialized once for each version: bytes for HTTP/1.1, literals for HTTP/2 and HTTP/3.
#[derive(Debug, Clone)]
pub struct SharedFields {
    pub(crate) h1: bolide_h1::SharedFields,
    pub(crate) h2: bolide_h2::SharedFields,
    pub(crate) h3: bolide_h3::SharedFields,
}

impl SharedFields {
    /// These fields, in this order. `None` when one of them can't be sent, or says something of the connection or of
    /// the message's length, which each response has for itself.
    #[must_use]
    pub fn new<'a>(fields: impl Iterator<Item = FieldRef<'a>> + Clone) -> Option<Self> {
        let h1 = bolide_h1::SharedFields::new(fields.clone())?;
        let h2 = bolide_h2::SharedFields::new(fields.clone())?;
        Some(Self { h1, h2, h3: bolide_h3::SharedFields::new(fields)? })
    }
}

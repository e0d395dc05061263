//! RFC 9110 §6.3, RFC 9112 §5: fields that many responses share, in their wire form.

use bolide_semantics::FieldRef;

use crate::encode::{self, Pass, Written};

/// Start of most heads before the fields, and behind them.
const BEFORE: &[u8] = b"HTTP/1.1 200 OK\r\n";
const BEHIND: &[u8] = b"content-length: ";

/// Fields of final responses, checked and written out once: between what surrounds them in most heads, so that these
/// are one copy.
#[derive(Debug, Clone)]
pub struct SharedFields(Box<[u8]>);

impl SharedFields {
    /// These fields, in this order. `None` when one of them can't be sent, or says something of the connection or
    /// of the message's length, which is decided anew for each response.
    #[must_use]
    pub fn new<'a>(fields: impl Iterator<Item = FieldRef<'a>>) -> Option<Self> {
        let mut text = BEFORE.to_vec();
        let pass = Pass { length: true, upgrade: true, te: false };
        let mut written = Written::default();
        for field in fields {
            encode::field(&mut text, &field, pass, &mut written).ok()?;
        }
        let Written { length, close, upgrade, .. } = written;
        let is_plain = length.is_none() && !close && !upgrade;
        text.extend_from_slice(BEHIND);
        is_plain.then(|| Self(text.into_boxed_slice()))
    }

    /// The fields, each with the end of its line.
    #[inline]
    pub(crate) fn text(&self) -> &[u8] {
        &self.0[BEFORE.len()..self.0.len() - BEHIND.len()]
    }

    /// The head of a `200 OK` up to the value of `Content-Length`.
    #[inline]
    pub(crate) fn up_to_length(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_each_response_decides_anew_are_not_shared() {
        let shared = |list: &[(&'static str, &'static [u8])]| {
            SharedFields::new(list.iter().map(|(name, value)| FieldRef::named(name, value)))
        };
        let fields = shared(&[("content-type", b"text/css"), ("x-own", b"a b")]).unwrap();
        assert_eq!(fields.text(), b"content-type: text/css\r\nx-own: a b\r\n");
        for (name, value) in [
            ("connection", &b"close"[..]),
            ("upgrade", b"websocket"),
            ("content-length", b"5"),
            ("x-a", b"b\r\nc: d"),
            ("x a", b"b"),
        ] {
            assert!(shared(&[("x-first", b"1"), (name, value)]).is_none(), "{name}");
        }
    }
}

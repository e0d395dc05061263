//! RFC 9113 §8.2: which fields can be sent, and which HTTP/2 leaves out.

use bolide_semantics::{
    FieldName, FieldRef, Misuse, TOKEN_LOWER, is_connection_specific, is_field_value,
    parse_content_length,
};

use crate::stream::LENGTH_UNKNOWN;

/// Checks the fields of a head before anything of it enters the compression table. Returns the
/// Content-Length, or [`LENGTH_UNKNOWN`].
#[inline]
pub(crate) fn check(fields: &[FieldRef<'_>]) -> Result<u64, Misuse> {
    let mut length = LENGTH_UNKNOWN;
    for field in fields {
        if !is_field_value(field.value) {
            return Err(Misuse::InvalidHead);
        }
        match field.known {
            Some(FieldName::ContentLength) => {
                let value = parse_content_length(field.value).ok_or(Misuse::InvalidHead)?;
                if length != LENGTH_UNKNOWN && length != value {
                    return Err(Misuse::InvalidHead);
                }
                length = value;
            }
            Some(_) => {}
            None => {
                let lower = |byte: u8| TOKEN_LOWER[usize::from(byte)] == byte && byte != 0;
                if field.name.is_empty() || !field.name.bytes().all(lower) {
                    return Err(Misuse::InvalidHead);
                }
            }
        }
    }
    Ok(length)
}

/// Whether HTTP/2 takes the field, from a request or from another message.
#[inline]
pub(crate) fn travels(field: &FieldRef<'_>, request: bool) -> bool {
    match field.known {
        Some(FieldName::Te) => field.value.eq_ignore_ascii_case(b"trailers"),
        // The authority says it already.
        Some(FieldName::Host) => !request,
        Some(name) => !is_connection_specific(name),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &'static str, value: &'static [u8]) -> FieldRef<'static> {
        let known = FieldName::lookup(name.as_bytes());
        FieldRef { known, name, value, sensitive: false }
    }

    #[test]
    fn fields_that_could_be_read_otherwise_are_refused() {
        assert_eq!(check(&[line("x", b"1"), line("content-length", b"5")]), Ok(5));
        assert_eq!(check(&[line("x", b"1")]), Ok(LENGTH_UNKNOWN));
        for bad in [
            line("X", b"1"),
            line("", b"1"),
            line("a b", b"1"),
            line(":path", b"/"),
            line("x", b"a\nb"),
            line("x", b" a"),
            line("content-length", b"x"),
        ] {
            assert_eq!(check(&[bad]), Err(Misuse::InvalidHead), "{bad:?}");
        }
    }
}

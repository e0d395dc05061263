//! RFC 9113 §8.2, §8.3, RFC 9114 §4.2, §4.3: what can be sent, and which fields HTTP/2 and HTTP/3 leave out.

use http::Method;

use crate::head_reader::LENGTH_UNKNOWN;
use crate::{
    FieldName, FieldRef, Misuse, RequestHead, TOKEN_LOWER, is_connection_specific, is_field_value,
    is_token, is_valid_authority, is_valid_scheme, is_valid_target, parse_content_length,
};

/// Checks the fields of a head before anything of it enters the compression table. Returns the
/// Content-Length, or [`LENGTH_UNKNOWN`].
///
/// # Errors
///
/// [`Misuse::InvalidHead`] for a name or value that could be read as anything else.
#[inline]
pub fn check_fields(fields: &[FieldRef<'_>]) -> Result<u64, Misuse> {
    if fields.is_empty() { Ok(LENGTH_UNKNOWN) } else { check_each(fields) }
}

fn check_each(fields: &[FieldRef<'_>]) -> Result<u64, Misuse> {
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

/// Returns whether HTTP/2 and HTTP/3 take the field, from a request or from another message.
#[inline]
#[must_use]
pub fn travels(field: &FieldRef<'_>, request: bool) -> bool {
    match field.known {
        Some(FieldName::Te) => field.value.eq_ignore_ascii_case(b"trailers"),
        // The authority says it already.
        Some(FieldName::Host) => !request,
        Some(name) => !is_connection_specific(name),
        None => true,
    }
}

/// RFC 9113 §8.3.1, §8.5, RFC 9114 §4.3.1, §4.4, RFC 8441 §4: the pseudo-fields of a request of ours.
///
/// # Errors
///
/// [`Misuse::InvalidHead`].
pub fn check_target(head: &RequestHead<'_>) -> Result<(), Misuse> {
    let RequestHead { scheme, authority, path, protocol, .. } = *head;
    let connect = head.method == Method::CONNECT;
    let valid = is_valid_authority(authority.as_bytes())
        && protocol.is_none_or(|protocol| connect && is_token(protocol.as_bytes()))
        && if connect && protocol.is_none() {
            path.is_empty()
        } else {
            let path_begins = path.starts_with('/') || path == "*";
            is_valid_scheme(scheme.as_bytes()) && path_begins && is_valid_target(path.as_bytes())
        };
    if valid { Ok(()) } else { Err(Misuse::InvalidHead) }
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
        assert_eq!(check_fields(&[line("x", b"1"), line("content-length", b"5")]), Ok(5));
        assert_eq!(check_fields(&[line("x", b"1")]), Ok(LENGTH_UNKNOWN));
        for bad in [
            line("X", b"1"),
            line("", b"1"),
            line("a b", b"1"),
            line(":path", b"/"),
            line("x", b"a\nb"),
            line("x", b" a"),
            line("content-length", b"x"),
        ] {
            assert_eq!(check_fields(&[bad]), Err(Misuse::InvalidHead), "{bad:?}");
        }
    }
}

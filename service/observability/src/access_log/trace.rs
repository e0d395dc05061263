//! The `traceparent` field of W3C Trace Context, as far as a log needs it.

/// The trace id of a `traceparent` value: 32 digits in lower-case hexadecimal that are not all 0. `None` when
/// the value is malformed, for then it names no trace.
#[must_use]
pub fn trace_id(value: &[u8]) -> Option<&[u8]> {
    let is_hex = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_zero = |part: &[u8]| part.iter().all(|byte| *byte == b'0');
    let (version, rest) = value.split_at_checked(2)?;
    let (id, parent, flags) = match rest.get(..53)? {
        [b'-', middle @ .., b'-', high, low] => {
            (middle.get(..32)?, middle.get(33..49)?, [*high, *low])
        }
        _ => return None,
    };
    // Versions to come may append parts; version ff is forbidden.
    let may_go_on = version != b"00" && rest.get(53) == Some(&b'-');
    let is_right = (rest.len() == 53 || may_go_on)
        && version != b"ff"
        && rest[33] == b'-'
        && [version, id, parent, &flags].into_iter().all(is_hex)
        && !is_zero(id)
        && !is_zero(parent);
    is_right.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn found(value: &str) -> Option<&str> {
        trace_id(value.as_bytes()).map(|id| std::str::from_utf8(id).unwrap())
    }

    #[test]
    fn the_id_of_a_well_formed_value() {
        assert_eq!(found(&format!("00-{ID}-00f067aa0ba902b7-01")), Some(ID));
        assert_eq!(found(&format!("cc-{ID}-00f067aa0ba902b7-01-what-comes")), Some(ID));
    }

    #[test]
    fn what_is_malformed_names_no_trace() {
        let zeros = "0".repeat(32);
        for value in [
            String::new(),
            "00".to_owned(),
            ID.to_owned(),
            format!("00-{ID}-00f067aa0ba902b7"),
            format!("00-{ID}-00f067aa0ba902b7-0"),
            format!("00-{ID}-00f067aa0ba902b7-01-x"),
            format!("ff-{ID}-00f067aa0ba902b7-01"),
            format!("00-{zeros}-00f067aa0ba902b7-01"),
            format!("00-{ID}-0000000000000000-01"),
            format!("00-{}-00f067aa0ba902b7-01", ID.to_uppercase()),
            format!("00-{ID}x00f067aa0ba902b7-01"),
            format!("00-{ID}-00f067aa0ba902b7-\"\n"),
        ] {
            assert_eq!(found(&value), None, "{value}");
        }
    }
}

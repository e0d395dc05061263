//! RFC 9110 §12.5.3: which content coding a client likes best.

/// The weight of a member in thousandths (§12.4.2).
const FULL: u16 = 1000;

/// Weights that a client gives to codings.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    /// By name.
    own: Option<u16>,
    /// By `*`.
    any: Option<u16>,
}

impl Weights {
    fn of<'a>(lines: impl Iterator<Item = &'a [u8]>, coding: &str) -> Self {
        let mut weights = Self::default();
        for member in lines.flat_map(|line| line.split(|byte| *byte == b',')) {
            let mut parts = member.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            // §8.4.1.3: an old name of the same coding.
            let name = if name.eq_ignore_ascii_case(b"x-gzip") { b"gzip" } else { name };
            let place = if name == b"*" {
                &mut weights.any
            } else if name.eq_ignore_ascii_case(coding.as_bytes()) {
                &mut weights.own
            } else {
                continue;
            };
            let weight = match parts.next() {
                None | Some(b"") => Some(FULL),
                Some(parameter) => qvalue(parameter),
            };
            // A member that can't be read says nothing, and the first word counts.
            if let Some(weight) = weight {
                place.get_or_insert(weight);
            }
        }
        weights
    }
}

/// `q=` and up to three decimals, in thousandths.
fn qvalue(parameter: &[u8]) -> Option<u16> {
    let at = parameter.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii());
    if !name.eq_ignore_ascii_case(b"q") {
        return None;
    }
    let (whole, decimals) = match value {
        [whole] | [whole, b'.'] => (whole, &b""[..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let mut weight = match whole {
        b'0' => 0,
        b'1' => FULL,
        _ => return None,
    };
    let mut place = FULL;
    for byte in decimals {
        place /= 10;
        weight += digit(*byte)? * place;
    }
    (weight <= FULL).then_some(weight)
}

/// The coding of `offered` that the client weighs most, the first of several: its index. `None` stands
/// for no coding: because the client prefers that, said nothing, or takes none of them.
///
/// `lines` are the values of `Accept-Encoding`. Without any, everything would be acceptable; but a
/// client that says nothing often understands nothing.
#[must_use]
pub fn preferred_coding<'a>(
    lines: impl Iterator<Item = &'a [u8]> + Clone,
    offered: &[&str],
) -> Option<usize> {
    let plain = Weights::of(lines.clone(), "identity");
    // What is not ruled out, and not named, is the last choice.
    let mut best = (None, plain.own.unwrap_or(0));
    for (index, coding) in offered.iter().enumerate() {
        let weights = Weights::of(lines.clone(), coding);
        let weight = weights.own.or(weights.any).unwrap_or(0);
        let beats = match best.0 {
            None => weight > 0 && weight >= best.1,
            Some(_) => weight > best.1,
        };
        if beats {
            best = (Some(index), weight);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OFFERED: &[&str] = &["br", "zstd", "gzip"];

    fn chosen(line: &str) -> Option<&'static str> {
        preferred_coding([line.as_bytes()].into_iter(), OFFERED).map(|index| OFFERED[index])
    }

    #[test]
    fn the_weights_decide() {
        for (line, expected) in [
            ("gzip, deflate, br, zstd", Some("br")),
            ("gzip", Some("gzip")),
            ("GZip;Q=1", Some("gzip")),
            ("x-gzip", Some("gzip")),
            ("gzip;q=1.0, br;q=0.9", Some("gzip")),
            ("gzip;q=0.5, br;q=0.501", Some("br")),
            ("br;q=0, gzip", Some("gzip")),
            ("*", Some("br")),
            ("br;q=0, *;q=0.1", Some("zstd")),
            ("gzip;q=0.5, identity", None),
            ("gzip;q=0.5, identity;q=0.5", Some("gzip")),
            ("identity;q=0, gzip;q=0.001", Some("gzip")),
            ("*;q=0", None),
            ("", None),
            ("deflate", None),
            ("gzip;q=2", None),
            ("gzip;q=0.1234", None),
            ("gzip;q=1.001", None),
            ("gzip;q", None),
            ("gzip;level=9", None),
            ("gzip;q=0", None),
        ] {
            assert_eq!(chosen(line), expected, "{line}");
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let lines = [&b"br;q=0"[..], b"gzip"];
        assert_eq!(preferred_coding(lines.into_iter(), OFFERED), Some(2));
        assert_eq!(preferred_coding(std::iter::empty(), OFFERED), None);
    }

    proptest! {
        #[test]
        fn what_a_client_rules_out_is_never_chosen(line in "[a-z*;=.,0-9 ]{0,40}") {
            for coding in OFFERED {
                let line = format!("{coding};q=0,{line}");
                prop_assert_ne!(chosen(&line), Some(*coding));
            }
        }
    }
}

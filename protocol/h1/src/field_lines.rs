//! RFC 9112 §5: field lines, of a head or of a trailer section.

use bolide_semantics::{FieldName, Head, TOKEN_LOWER};

use crate::error::{
    BAD_NAME, BARE_CR, BARE_LF, CONTROL, FOLDED, Failure, SPACE_BEFORE_COLON, Stop, TOO_MANY_FIELDS,
};
use crate::scan::{chunk_at, control, fault};

/// Reads the lines of `bytes` from `start` up to the empty one, and returns the place behind it.
///
/// `note` sees each interned name with its value, and says whether the line is kept.
#[inline]
pub(crate) fn read(
    bytes: &[u8],
    start: usize,
    count_max: u16,
    head: &mut Head,
    note: impl FnMut(FieldName, &[u8]) -> Result<bool, &'static Failure>,
) -> Result<usize, Stop> {
    let mut at = start;
    let end = read_lines(bytes, &mut at, count_max, head, note);
    // One copy of all lines takes less than one for each value.
    head.push_section(&bytes[start..at]);
    end
}

/// Reads lines from `at` on, and moves it behind those that the head has. Their text is still to be appended to the head's.
#[inline(always)]
fn read_lines(
    bytes: &[u8],
    at: &mut usize,
    count_max: u16,
    head: &mut Head,
    mut note: impl FnMut(FieldName, &[u8]) -> Result<bool, &'static Failure>,
) -> Result<usize, Stop> {
    let mut count = 0;
    // From a place in `bytes` to the one that it will have in the head's text.
    let moved = head.text_mut().len().wrapping_sub(*at);
    while bytes.get(*at) != Some(&b'\r') {
        let padded;
        let beginning = match chunk_at(bytes, *at) {
            Some(beginning) => beginning,
            // The last line, say.
            None => {
                padded = pad(bytes, *at);
                &padded
            }
        };
        let (known, colon) = match FieldName::at_start_of(beginning) {
            Some((name, length)) => (Some(name), *at + length),
            None => (None, name_end(bytes, *at)?),
        };
        let mut start = colon + 1;
        while let Some(b' ' | b'\t') = bytes.get(start) {
            start += 1;
        }
        let end = text_end(bytes, start)?;
        count += 1;
        if count > count_max {
            return Err(Stop::Fault(&TOO_MANY_FIELDS));
        }
        let mut value = &bytes[start..end];
        if let [.., ..=b' '] = value {
            value = without_blanks(value);
        }
        let keeps = match known {
            Some(name) => note(name, value)?,
            None => true,
        };
        if keeps {
            let [name, value_end] = [*at, start + value.len()].map(|at| at.wrapping_add(moved));
            head.push_line(known, name, start.wrapping_add(moved), value_end);
        }
        *at = end + 2;
    }
    match bytes.get(*at + 1) {
        Some(b'\n') => Ok(*at + 2),
        _ => Err(line_end(bytes, *at)),
    }
}

/// The value without the blanks at its end: nothing else in it is below them.
#[cold]
fn without_blanks(mut value: &[u8]) -> &[u8] {
    while let [before @ .., b' ' | b'\t'] = value {
        value = before;
    }
    value
}

/// Returns what is left of the input, and zeros, which are no part of a name.
#[inline(never)]
fn pad<const LENGTH: usize>(bytes: &[u8], at: usize) -> [u8; LENGTH] {
    let line = bytes.get(at..).unwrap_or_default();
    let mut padded = [0; LENGTH];
    let length = line.len().min(LENGTH);
    padded[..length].copy_from_slice(&line[..length]);
    padded
}

/// The place of the colon behind the name that stands at `at`.
#[inline(never)]
fn name_end(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    let line = bytes.get(at..).unwrap_or_default();
    let is_token = |byte: &&u8| TOKEN_LOWER[usize::from(**byte)] != 0;
    let end = at + line.iter().take_while(is_token).count();
    if end == at || bytes.get(end) != Some(&b':') {
        return Err(no_name(bytes, at, end));
    }
    Ok(end)
}

/// Why no name and colon stand at `at`; `end` is where the name, if any, ends.
#[cold]
fn no_name(bytes: &[u8], at: usize, end: usize) -> Stop {
    match bytes.get(end) {
        None => Stop::Incomplete,
        Some(b'\n') => Stop::Fault(&BARE_LF),
        Some(b' ' | b'\t') if at == end => fault(bytes, end, &FOLDED),
        Some(b' ' | b'\t') => fault(bytes, end, &SPACE_BEFORE_COLON),
        Some(_) => fault(bytes, end, &BAD_NAME),
    }
}

/// The place of the CRLF that ends the text from `start` on.
#[inline]
pub(crate) fn text_end(bytes: &[u8], start: usize) -> Result<usize, Stop> {
    let mut end = control(bytes, start);
    while chunk_at(bytes, end) != Some(b"\r\n") {
        if bytes.get(end) != Some(&b'\t') {
            return Err(line_end(bytes, end));
        }
        end = control(bytes, end + 1);
    }
    Ok(end)
}

/// Why no CRLF stands at `at`, where the text of a line ends.
#[cold]
fn line_end(bytes: &[u8], at: usize) -> Stop {
    match bytes.get(at) {
        None => Stop::Incomplete,
        Some(b'\n') => Stop::Fault(&BARE_LF),
        Some(b'\r') => fault(bytes, at, &BARE_CR),
        Some(_) => fault(bytes, at, &CONTROL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines = Vec<(String, Vec<u8>)>;

    fn names(bytes: &[u8]) -> Result<(usize, Lines), Stop> {
        let mut head = Head::default();
        let end = read(bytes, 0, 3, &mut head, |_, _| Ok(true))?;
        let line = |field: bolide_semantics::Field<'_>| (field.name.to_owned(), field.value.into());
        Ok((end, head.fields().map(line).collect()))
    }

    #[test]
    fn names_become_lower_case_and_values_lose_their_blanks() {
        let long = "X".repeat(100);
        let text = format!("HoSt: \t a b\t\r\nX-Own:\r\n{long}:\tv\r\n\r\nrest");
        let (end, lines) = names(text.as_bytes()).unwrap();
        assert_eq!(&text[end..], "rest");
        let expected = [
            ("host".to_owned(), b"a b".to_vec()),
            ("x-own".to_owned(), Vec::new()),
            (long.to_lowercase(), b"v".to_vec()),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn every_fault_has_its_name() {
        let faults: [(&[u8], &Failure); 11] = [
            (b"a: b\n\r\n", &BARE_LF),
            (b"a: b\r\n\n", &BARE_LF),
            (b"a: b\rc\r\n\r\n", &BARE_CR),
            (b"a: b\r\r\n\r\n", &BARE_CR),
            (b"a: b\0c\r\n\r\n", &CONTROL),
            (b"a: b\r\n c\r\n\r\n", &FOLDED),
            (b" a: b\r\n\r\n", &FOLDED),
            (b"a : b\r\n\r\n", &SPACE_BEFORE_COLON),
            (b"a b\r\n\r\n", &SPACE_BEFORE_COLON),
            (b": b\r\n\r\n", &BAD_NAME),
            (b"a\r\n\r\n", &BAD_NAME),
        ];
        for (bytes, failure) in faults {
            assert_eq!(names(bytes), Err(Stop::Fault(failure)), "{bytes:?}");
        }
        assert_eq!(names(b"a:\r\nb:\r\nc:\r\nd:\r\n"), Err(Stop::Fault(&TOO_MANY_FIELDS)));
    }

    #[test]
    fn a_line_without_its_end_is_incomplete_whatever_it_holds() {
        for bytes in [&b""[..], b"a", b"a ", b"a:", b"a: b\r", b"a: \0", b" ", b"\r", b"a: b\r\n\r"]
        {
            assert_eq!(names(bytes), Err(Stop::Incomplete), "{bytes:?}");
        }
    }
}

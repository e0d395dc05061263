//! RFC 6455 §8.1: text is UTF-8, however it is cut into frames.

use simdutf8::compat::from_utf8;

/// Checks a text piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Utf8 {
    /// The beginning of a character that the next piece must complete.
    begun: [u8; 4],
    begun_length: u8,
}

impl Utf8 {
    /// Returns whether the text is right up to the end of `piece`, where a character may be incomplete.
    pub(crate) fn takes(&mut self, piece: &[u8]) -> bool {
        let mut rest = piece;
        while self.begun_length > 0
            && let Some((first, after)) = rest.split_first()
        {
            rest = after;
            let length = usize::from(self.begun_length);
            self.begun[length] = *first;
            match std::str::from_utf8(&self.begun[..=length]) {
                Ok(_) => self.begun_length = 0,
                Err(error) if error.error_len().is_some() => return false,
                Err(_) => self.begun_length += 1,
            }
        }
        match from_utf8(rest) {
            Ok(_) => true,
            Err(error) if error.error_len().is_some() => false,
            Err(error) => {
                let tail = &rest[error.valid_up_to()..];
                self.begun[..tail.len()].copy_from_slice(tail);
                self.begun_length = tail.len() as u8;
                true
            }
        }
    }

    /// Returns whether the text may end here; the next one begins.
    pub(crate) fn ends(&mut self) -> bool {
        std::mem::take(&mut self.begun_length) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_cut_judges_as_the_whole(
            mut bytes in "\\PC{0,20}".prop_map(String::into_bytes),
            wrong in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
            cuts in proptest::collection::vec(1_usize..6, 0..40),
        ) {
            if let Some((at, byte)) = wrong && !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut utf8 = Utf8::default();
            let mut rest = &bytes[..];
            let mut right = true;
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                right &= utf8.takes(piece);
                rest = after;
            }
            right = right && utf8.takes(rest) && utf8.ends();
            prop_assert_eq!(right, std::str::from_utf8(&bytes).is_ok());
        }
    }

    #[test]
    fn a_wrong_character_is_noticed_at_its_first_wrong_byte() {
        let mut utf8 = Utf8::default();
        assert!(utf8.takes(&[0xf4]));
        assert!(!utf8.takes(&[0x90]), "beyond U+10FFFF");
        let mut utf8 = Utf8::default();
        assert!(utf8.takes(&[0xed]));
        assert!(!utf8.takes(&[0xa0]), "a surrogate");
    }

    #[test]
    fn a_text_does_not_end_in_a_character() {
        let mut utf8 = Utf8::default();
        assert!(utf8.takes("é".as_bytes().split_at(1).0));
        assert!(!utf8.ends());
        assert!(utf8.takes(b"a") && utf8.ends(), "the next text begins anew");
    }
}

//! RFC 9112 §6: what the fields of a message say about its length and its connection.

use bolide_semantics::{FieldName, has_no_body, names_in, parse_content_length};
use http::{Method, StatusCode};

use crate::body::Body;
use crate::chunked::Chunked;
use crate::error::{
    BAD_CODING, BAD_LENGTH, CODING_IN_1_0, Failure, LENGTH_AND_CODING, REPEATED_CODING,
    REPEATED_LENGTH, UNKNOWN_CODING,
};
use crate::exchanges::Kind;

/// Facts that were noted while the field lines of a head were read.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    pub(crate) length: Option<u64>,
    chunked: bool,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    /// Both `Upgrade` and its mention in `Connection`.
    pub(crate) upgrade: bool,
    pub(crate) upgrade_listed: bool,
    pub(crate) expects_continue: bool,
}

impl Noted {
    /// Takes note of one line.
    #[inline]
    pub(crate) fn note(&mut self, name: FieldName, value: &[u8]) -> Result<(), &'static Failure> {
        use FieldName::{Connection, ContentLength, Expect, TransferEncoding, Upgrade};
        match name {
            Connection | ContentLength | Expect | TransferEncoding | Upgrade => {
                self.note_framing(name, value)
            }
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn note_framing(&mut self, name: FieldName, value: &[u8]) -> Result<(), &'static Failure> {
        match name {
            FieldName::ContentLength => {
                if self.length.is_some() {
                    return Err(&REPEATED_LENGTH);
                }
                self.length = Some(parse_content_length(value).ok_or(&BAD_LENGTH)?);
            }
            FieldName::TransferEncoding => {
                if self.chunked {
                    return Err(&REPEATED_CODING);
                }
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(other_coding(value));
                }
                self.chunked = true;
            }
            FieldName::Connection => self.note_connection(value),
            FieldName::Upgrade => self.upgrade = true,
            FieldName::Expect => {
                self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            _ => {}
        }
        Ok(())
    }

    fn note_connection(&mut self, value: &[u8]) {
        for name in names_in(value) {
            self.close |= name.eq_ignore_ascii_case(b"close");
            self.keep_alive |= name.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade_listed |= name.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// Returns whether the connection may be used again after this message (RFC 9112 §9.3).
    #[inline]
    pub(crate) fn persists(&self, version_10: bool) -> bool {
        !self.close && (!version_10 || self.keep_alive)
    }

    /// How a coded or counted body ends; `None` when there is neither coding nor length.
    #[inline]
    pub(crate) fn body(&self, version_10: bool) -> Result<Option<Body>, &'static Failure> {
        if self.chunked {
            return match (version_10, self.length) {
                (true, _) => Err(&CODING_IN_1_0),
                (_, Some(_)) => Err(&LENGTH_AND_CODING),
                _ => Ok(Some(Body::Chunked(Chunked::default()))),
            };
        }
        Ok(self.length.map(Body::Length))
    }
}

/// Why a `Transfer-Encoding` that is not simply `chunked` is refused. Without `chunked` at its end the
/// length of the message is unknown, whatever the rest means (RFC 9112 §6.3).
#[cold]
fn other_coding(value: &[u8]) -> &'static Failure {
    let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let is_chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if !codings.clone().all(bolide_semantics::is_token) {
        &BAD_CODING
    } else if codings.clone().filter(is_chunked).count() > 1 {
        &REPEATED_CODING
    } else if codings.next_back().as_ref().is_some_and(is_chunked) {
        &UNKNOWN_CODING
    } else {
        &BAD_CODING
    }
}

/// Returns whether the response to a request of this kind has no content, whatever its fields say.
#[inline]
pub(crate) fn response_has_no_body(kind: Kind, status: StatusCode) -> bool {
    kind == Kind::Head
        || (kind == Kind::Connect && status.is_success())
        || has_no_body(&Method::GET, status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coding(value: &[u8]) -> Result<(), &'static Failure> {
        Noted::default().note(FieldName::TransferEncoding, value)
    }

    #[test]
    fn only_one_coding_is_taken() {
        assert_eq!(coding(b"chunked"), Ok(()));
        assert_eq!(coding(b"Chunked"), Ok(()));
        assert_eq!(coding(b"gzip, chunked"), Err(&UNKNOWN_CODING));
        assert_eq!(coding(b"chunked, chunked"), Err(&REPEATED_CODING));
        for bad in [
            &b""[..],
            b"gzip",
            b"identity",
            b"xchunked",
            b"chunked, gzip",
            b"chunked;q=1",
            b"chunked,",
        ] {
            assert_eq!(coding(bad), Err(&BAD_CODING), "{bad:?}");
        }
    }

    #[test]
    fn persistence_depends_on_the_version() {
        let noted = |value: &[u8]| {
            let mut noted = Noted::default();
            noted.note(FieldName::Connection, value).unwrap();
            noted
        };
        assert!(noted(b"").persists(false));
        assert!(!noted(b"").persists(true));
        assert!(noted(b"Keep-Alive").persists(true));
        assert!(!noted(b"te, CLOSE").persists(false));
        assert!(!noted(b"keep-alive, close").persists(true));
    }

    #[test]
    fn a_length_and_a_coding_exclude_each_other() {
        let mut noted = Noted::default();
        noted.note(FieldName::ContentLength, b"5").unwrap();
        assert_eq!(noted.body(true), Ok(Some(Body::Length(5))));
        noted.note(FieldName::TransferEncoding, b"chunked").unwrap();
        assert_eq!(noted.body(false), Err(&LENGTH_AND_CODING));
        assert_eq!(noted.body(true), Err(&CODING_IN_1_0));
        assert_eq!(noted.note(FieldName::ContentLength, b"5"), Err(&REPEATED_LENGTH));
    }
}

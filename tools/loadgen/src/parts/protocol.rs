//! Messages between the parts of a run: messages of JSON, each after its length in four bytes.

use std::io::{self, Read, Write};

use bolide_probe::engine::{Counted, Look};
use bolide_probe::plan::Phase;
use serde::{Deserialize, Serialize};

use super::agreement::Agreement;
use super::secret::{Nonce, Proof};

/// Counts up when messages change.
pub(super) const VERSION: u32 = 1;

/// The longest message of a peer that has not proved that it knows the secret.
pub(super) const STRANGER_BYTES: usize = 4 * 1024;

/// The longest message: what a phase with 250,000 connections and 64 URLs came to has 4 MiB.
pub(super) const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Numbers have at most so many digits before the point, so that sums over all parts don't wrap.
const DIGITS: usize = 16;

/// The first message, of a part that comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Of these messages, and of the program.
    pub(super) version: (u32, String),
    /// Its number, from 1, and how many parts it knows of.
    pub(super) part: usize,
    pub(super) parts: usize,
    pub(super) host: String,
    pub(super) agreement: Agreement,
    pub(super) nonce: Nonce,
}

/// Result of a phase in one part.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) counted: Counted,
    /// When the server went away, after the start of the run.
    pub(super) died_after_ns: Option<u64>,
}

/// All messages. A part says hello and is challenged, proves that it knows the secret and is welcomed with such a
/// proof. The rest is led by part 1.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    Hello(Box<Hello>),
    Challenge(Nonce),
    Proof(Proof),
    Welcome(Proof),
    /// It may not take part, for this reason.
    Refused(String),
    /// Say what your clock says.
    Ping,
    Pong {
        ns: u64,
    },
    /// Connect to the server.
    Prepare,
    Prepared {
        connections: usize,
        threads: usize,
    },
    /// The server can't be reached, or the plan can't be carried out.
    Failed {
        what: String,
        is_plan: bool,
    },
    /// Make the connections of this phase.
    Begin(Box<Phase>),
    /// They are there.
    Ready,
    /// Begin when your clock says so.
    Start {
        at_ns: u64,
    },
    /// Look at 100 ms.
    Look(Box<Look>),
    /// Result of the phase.
    Found(Box<Found>),
    /// End the run; in the middle of a phase, with what was done.
    Stop,
    /// The sender is there.
    Alive,
    /// The run is over.
    End,
}

impl Message {
    /// Returns what it is called when it was not expected.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Challenge(_) => "challenge",
            Self::Proof(_) => "proof",
            Self::Welcome(_) => "welcome",
            Self::Refused(_) => "refused",
            Self::Ping => "ping",
            Self::Pong { .. } => "pong",
            Self::Prepare => "prepare",
            Self::Prepared { .. } => "prepared",
            Self::Failed { .. } => "failed",
            Self::Begin(_) => "begin",
            Self::Ready => "ready",
            Self::Start { .. } => "start",
            Self::Look(_) => "look",
            Self::Found(_) => "found",
            Self::Stop => "stop",
            Self::Alive => "alive",
            Self::End => "end",
        }
    }

    /// Sends it.
    pub(super) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = vec![0; 4];
        serde_json::to_writer(&mut bytes, self)?;
        let length = bytes.len() - 4;
        if length > MESSAGE_BYTES {
            return Err(io::Error::other(format!("a message of {length} bytes is too long")));
        }
        bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
        to.write_all(&bytes)
    }

    /// Waits for one of `most` bytes at most. The error is what was wrong, in words.
    pub(super) fn receive(from: &mut impl Read, most: usize) -> Result<Self, String> {
        let mut length = [0; 4];
        from.read_exact(&mut length).map_err(|error| trouble(&error))?;
        let length = u32::from_be_bytes(length) as usize;
        if length > most {
            return Err(format!(
                "a message of {length} bytes came, and at most {most} are accepted"
            ));
        }
        let mut bytes = Vec::new();
        // Memory grows with what has come, not with what was announced.
        let read = from.take(length as u64).read_to_end(&mut bytes);
        read.map_err(|error| trouble(&error))?;
        if bytes.len() < length {
            return Err(trouble(&io::ErrorKind::UnexpectedEof.into()));
        }
        if has_long_number(&bytes) {
            return Err(format!("a message with a number of more than {DIGITS} digits came"));
        }
        serde_json::from_slice(&bytes).map_err(|error| format!("a message is broken: {error}"))
    }
}

fn trouble(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it was silent".to_owned(),
        kind => kind.to_string(),
    }
}

/// Returns whether a number outside of texts has more digits before its point than any count of a run.
fn has_long_number(json: &[u8]) -> bool {
    let (mut digits, mut is_text, mut is_escaped, mut is_fraction) = (0, false, false, false);
    for byte in json {
        if is_text {
            (is_text, is_escaped) = (*byte != b'"' || is_escaped, *byte == b'\\' && !is_escaped);
            continue;
        }
        match byte {
            b'0'..=b'9' if !is_fraction => {
                digits += 1;
                if digits > DIGITS {
                    return true;
                }
            }
            b'0'..=b'9' => {}
            b'.' => is_fraction = true,
            other => {
                (digits, is_fraction) = (0, false);
                is_text = *other == b'"';
            }
        }
    }
    false
}

#[cfg(test)]
impl Hello {
    pub(super) fn fabricated() -> Self {
        Self {
            version: (VERSION, "1".into()),
            part: 2,
            parts: 4,
            host: "load2".into(),
            agreement: Agreement::default(),
            nonce: Nonce::new().unwrap(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.send(&mut bytes).unwrap();
        bytes
    }

    fn received(bytes: &[u8], most: usize) -> Result<Message, String> {
        Message::receive(&mut &bytes[..], most)
    }

    #[test]
    fn a_message_comes_as_it_was_sent() {
        let hello = Hello::fabricated();
        let bytes = sent(&Message::Hello(Box::new(hello.clone())));
        let Ok(Message::Hello(back)) = received(&bytes, STRANGER_BYTES) else { panic!("no hello") };
        assert_eq!(*back, hello);
        let both = [sent(&Message::Start { at_ns: 7 }), sent(&Message::End)].concat();
        let mut rest = &both[..];
        let first = Message::receive(&mut rest, 100).unwrap();
        assert!(matches!(first, Message::Start { at_ns: 7 }));
        assert!(matches!(Message::receive(&mut rest, 100), Ok(Message::End)));
    }

    #[test]
    fn what_is_broken_or_too_long_is_told() {
        for (bytes, what) in [
            (&b""[..], "the connection was closed"),
            (b"\0\0\0\x09\"", "the connection was closed"),
            (b"\xff\xff\xff\xff", "a message of 4294967295 bytes came, and at most 4096"),
            (b"\0\0\0\x05\"end!", "a message is broken"),
            (b"\0\0\0\x07\"never\"", "a message is broken"),
            (b"\0\0\0\x29{\"start\":{\"at_ns\":18446744073709551615}} ", "more than 16 digits"),
        ] {
            let told = received(bytes, STRANGER_BYTES).unwrap_err();
            assert!(told.starts_with(what) || told.contains(what), "{told}");
        }
    }

    #[test]
    fn digits_in_texts_and_fractions_are_no_counts() {
        assert!(!has_long_number(br#"{"a\"1":"12345678901234567890","b":0.12345678901234567}"#));
        assert!(has_long_number(br#"{"a":"\\","b":12345678901234567}"#));
        assert!(!has_long_number(b"[1234567890123456,1234567890123456]"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
            let _ = received(&[&length[..], &bytes].concat(), STRANGER_BYTES);
            let _ = received(&bytes, STRANGER_BYTES);
        }
    }
}

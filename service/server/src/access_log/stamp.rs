//! What every line of one connection begins with: made once, and again when its client says something else of itself.

use std::ops::Range;

use bolide_connection::HandshakeFacts;
use http::Version;

use super::entry::Asked;
use super::format::{LogFormat, version_text};
use super::text::{is_plain, json};
use crate::limits::LOG_STAMP_BYTES;

/// The beginning of a connection's lines, kept. In JSON: who the client is, by address, TLS, version, host and user
/// agent; else its address.
#[derive(Debug)]
pub(crate) struct Stamp {
    text: Vec<u8>,
    /// How much of the text is said of the connection, and stays.
    fixed: usize,
    /// Names the text among those of a worker; 0: what requests say is not in it.
    number: u64,
    version: Version,
    host: Range<usize>,
    user_agent: Range<usize>,
}

impl Stamp {
    pub(crate) fn new(format: LogFormat, peer: &str, tls: Option<&HandshakeFacts>) -> Self {
        let mut text = Vec::new();
        if format == LogFormat::Json {
            connection(&mut text, peer, tls);
        } else {
            text.extend_from_slice(peer.as_bytes());
        }
        let (fixed, nowhere) = (text.len(), 0..0);
        let version = Version::HTTP_11;
        Self { text, fixed, number: 0, version, host: nowhere.clone(), user_agent: nowhere }
    }

    /// What is said of the connection alone.
    #[inline]
    pub(super) fn fixed(&self) -> &[u8] {
        &self.text[..self.fixed]
    }

    /// The number of its text, if that says what this request says; 0 else.
    #[inline]
    pub(super) fn number_for(&self, asked: &Asked<'_>) -> u64 {
        let is_same = self.version == asked.version
            && self.text[self.host.clone()] == *asked.host
            && self.text[self.user_agent.clone()] == *asked.user_agent;
        if is_same { self.number } else { 0 }
    }

    /// What it says, once it has a number for the request.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Appends what the line of this request begins with, and keeps it under this number. What is long or needs
    /// escapes is made for each line.
    #[cold]
    pub(super) fn make(&mut self, line: &mut Vec<u8>, asked: &Asked<'_>, number: u64) {
        let start = line.len();
        line.extend_from_slice(self.fixed());
        line.extend_from_slice(b",\"version\":\"");
        line.extend_from_slice(version_text(asked.version).as_bytes());
        line.push(b'"');
        let mut value = |name: &[u8], value: &[u8]| {
            let mut range = 0..0;
            if !value.is_empty() {
                line.extend_from_slice(name);
                range = line.len() - start..line.len() - start + value.len();
                json(line, value);
                line.push(b'"');
            }
            range
        };
        let host = value(b",\"host\":\"", asked.host);
        let user_agent = value(b",\"user_agent\":\"", asked.user_agent);
        self.text.truncate(self.fixed);
        self.number = 0;
        let is_short = line.len() - start <= LOG_STAMP_BYTES;
        if is_short && is_plain(asked.host) && is_plain(asked.user_agent) {
            self.text.extend_from_slice(&line[start + self.fixed..]);
            (self.number, self.version) = (number, asked.version);
            (self.host, self.user_agent) = (host, user_agent);
        } else {
            self.text.shrink_to_fit();
            (self.host, self.user_agent) = (0..0, 0..0);
        }
    }
}

/// What a line in JSON says of the connection.
fn connection(text: &mut Vec<u8>, peer: &str, tls: Option<&HandshakeFacts>) {
    let mut string = |before: &[u8], value: &[u8]| {
        text.extend_from_slice(before);
        json(text, value);
    };
    string(b",\"peer\":\"", peer.as_bytes());
    if let Some(tls) = tls {
        string(b"\",\"tls\":{\"version\":\"", tls.version.as_bytes());
        string(b"\",\"cipher\":\"", tls.cipher.as_bytes());
        if let Some(alpn) = tls.alpn {
            string(b"\",\"alpn\":\"", alpn.as_bytes());
        }
        if let Some(name) = &tls.server_name {
            string(b"\",\"server_name\":\"", name.as_bytes());
        }
        let resumed: &[u8] = if tls.resumed { b"true}" } else { b"false}" };
        text.extend_from_slice(b"\",\"resumed\":");
        text.extend_from_slice(resumed);
    } else {
        text.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(host: &'a [u8], user_agent: &'a [u8]) -> Asked<'a> {
        Asked { host, user_agent, ..Asked::unread(Version::HTTP_2) }
    }

    fn made(stamp: &mut Stamp, asked: &Asked<'_>, number: u64) -> String {
        let mut line = b"before".to_vec();
        stamp.make(&mut line, asked, number);
        String::from_utf8(line.split_off(6)).unwrap()
    }

    #[test]
    fn what_stays_the_same_is_made_once() {
        let mut stamp = Stamp::new(LogFormat::Json, "unix", None);
        let first = asked(b"example", b"curl");
        assert_eq!(stamp.number_for(&first), 0, "it says nothing of requests yet");
        let wanted = ",\"peer\":\"unix\",\"version\":\"HTTP/2.0\",\"host\":\"example\",\"user_agent\":\"curl\"";
        assert_eq!(made(&mut stamp, &first, 7), wanted);
        assert_eq!(stamp.number_for(&first), 7);
        assert_eq!(stamp.text(), wanted.as_bytes());
        for other in [
            asked(b"example", b""),
            asked(b"other", b"curl"),
            Asked { version: Version::HTTP_11, ..first },
        ] {
            assert_eq!(stamp.number_for(&other), 0);
        }
        let bare = asked(b"", b"");
        assert_eq!(made(&mut stamp, &bare, 8), ",\"peer\":\"unix\",\"version\":\"HTTP/2.0\"");
        assert_eq!((stamp.number_for(&bare), stamp.number_for(&first)), (8, 0));
    }

    /// What needs escapes stands in the text otherwise than in the request: another request may look like it.
    #[test]
    fn what_is_escaped_is_not_taken_for_another_value() {
        let mut stamp = Stamp::new(LogFormat::Json, "unix", None);
        let odd = asked(b"example", b"a\\b");
        assert!(made(&mut stamp, &odd, 1).ends_with("\"user_agent\":\"a\\\\b\""));
        assert_eq!(stamp.number_for(&odd), 0);
        assert_eq!(stamp.number_for(&asked(b"example", b"a\\\\b")), 0);
        assert_eq!(stamp.text(), stamp.fixed());
    }

    #[test]
    fn log_flood_by_clients_with_long_names_keeps_little() {
        let mut stamp = Stamp::new(LogFormat::Json, "unix", None);
        let long = [b'x'; 2 * LOG_STAMP_BYTES];
        let wordy = asked(b"example", &long);
        assert!(made(&mut stamp, &wordy, 1).len() > 2 * LOG_STAMP_BYTES);
        assert_eq!(stamp.number_for(&wordy), 0);
        assert!(stamp.text.capacity() < LOG_STAMP_BYTES);
    }
}

//! Start of every line of one connection: made once, and again when its client says something else of itself.

use std::net::SocketAddr;
use std::ops::Range;

use bolide_connection::HandshakeFacts;
use http::Version;

use super::entry::Asked;
use super::format::LogFormat;
use super::text::{is_plain, json, version_text};
use crate::limits::LOG_STAMP_BYTES;

/// The beginning of a connection's lines, kept. In JSON: who the client is, by address, TLS, version, host and user
/// agent; else its address without the port.
#[derive(Debug)]
pub struct LinePrefix {
    text: Vec<u8>,
    /// How much of the text is said of the connection, and stays.
    fixed: usize,
    /// True if what requests say is in the text.
    is_whole: bool,
    is_tls: bool,
    version: Version,
    host: Range<u16>,
    user_agent: Range<u16>,
}

impl LinePrefix {
    /// That of lines of a connection from `peer`.
    pub fn new(format: &LogFormat, peer: &str, tls: Option<&HandshakeFacts>) -> Self {
        let mut text = Vec::new();
        if *format == LogFormat::Json {
            connection(&mut text, peer, tls);
        } else {
            // Those who read these formats expect a host here, without its port.
            match peer.parse::<SocketAddr>() {
                Ok(peer) => text.extend_from_slice(peer.ip().to_string().as_bytes()),
                Err(_) => text.extend_from_slice(peer.as_bytes()),
            }
        }
        let (fixed, version) = (text.len(), Version::HTTP_11);
        let (host, user_agent) = (0..0, 0..0);
        let is_tls = tls.is_some();
        Self { text, fixed, is_whole: false, is_tls, version, host, user_agent }
    }

    /// Returns what is said of the connection alone.
    #[inline]
    pub(super) fn fixed(&self) -> &[u8] {
        &self.text[..self.fixed]
    }

    /// Returns whether the connection has TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns whether its text says what this request says.
    #[inline]
    fn fits(&self, asked: &Asked<'_>) -> bool {
        let part = |range: &Range<u16>| &self.text[range.start.into()..range.end.into()];
        self.is_whole
            && self.version == asked.version
            && *part(&self.host) == *asked.host
            && *part(&self.user_agent) == *asked.user_agent
    }

    /// Appends what the line of this request begins with.
    #[inline]
    pub(super) fn put(&mut self, line: &mut Vec<u8>, asked: &Asked<'_>) {
        if self.fits(asked) {
            line.extend_from_slice(&self.text);
        } else {
            self.make(line, asked);
        }
    }

    /// The same, when it was not made before. What is long or needs escapes is made for each line.
    #[cold]
    fn make(&mut self, line: &mut Vec<u8>, asked: &Asked<'_>) {
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
            range.start as u16..range.end as u16
        };
        let host = value(b",\"host\":\"", asked.host);
        let user_agent = value(b",\"user_agent\":\"", asked.user_agent);
        self.text.truncate(self.fixed);
        let is_short = line.len() - start <= LOG_STAMP_BYTES;
        self.is_whole = is_short && is_plain(asked.host) && is_plain(asked.user_agent);
        if self.is_whole {
            self.text.extend_from_slice(&line[start + self.fixed..]);
            (self.version, self.host, self.user_agent) = (asked.version, host, user_agent);
        } else {
            self.text.shrink_to_fit();
        }
    }
}

const _: () = assert!(LOG_STAMP_BYTES <= u16::MAX as usize, "places in the text are of 16 bits");

/// Appends what a line in JSON says of the connection.
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

    fn made(prefix: &mut LinePrefix, asked: &Asked<'_>) -> String {
        let mut line = b"before".to_vec();
        prefix.put(&mut line, asked);
        String::from_utf8(line.split_off(6)).unwrap()
    }

    #[test]
    fn what_stays_the_same_is_made_once() {
        let mut prefix = LinePrefix::new(&LogFormat::Json, "unix", None);
        let first = asked(b"example", b"curl");
        assert!(!prefix.fits(&first), "it says nothing of requests yet");
        let wanted = ",\"peer\":\"unix\",\"version\":\"HTTP/2.0\",\"host\":\"example\",\"user_agent\":\"curl\"";
        for _ in 0..2 {
            assert_eq!(made(&mut prefix, &first), wanted);
            assert!(prefix.fits(&first));
        }
        for other in [
            asked(b"example", b""),
            asked(b"other", b"curl"),
            Asked { version: Version::HTTP_11, ..first },
        ] {
            assert!(!prefix.fits(&other));
        }
        let bare = asked(b"", b"");
        assert_eq!(made(&mut prefix, &bare), ",\"peer\":\"unix\",\"version\":\"HTTP/2.0\"");
        assert!(prefix.fits(&bare) && !prefix.fits(&first));
    }

    /// Checks that an escaped value fits no request: its text in the line may be the value of another request.
    #[test]
    fn what_is_escaped_is_not_taken_for_another_value() {
        let mut prefix = LinePrefix::new(&LogFormat::Json, "unix", None);
        let odd = asked(b"example", b"a\\b");
        assert!(made(&mut prefix, &odd).ends_with("\"user_agent\":\"a\\\\b\""));
        assert!(!prefix.fits(&odd));
        assert!(!prefix.fits(&asked(b"example", b"a\\\\b")));
        assert_eq!(prefix.text, prefix.fixed());
    }

    #[test]
    fn log_flood_by_clients_with_long_names_keeps_little() {
        let mut prefix = LinePrefix::new(&LogFormat::Json, "unix", None);
        let long = [b'x'; 2 * LOG_STAMP_BYTES];
        let wordy = asked(b"example", &long);
        assert!(made(&mut prefix, &wordy).len() > 2 * LOG_STAMP_BYTES);
        assert!(!prefix.fits(&wordy));
        assert!(prefix.text.capacity() < LOG_STAMP_BYTES);
    }
}

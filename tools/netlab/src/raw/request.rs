//! The request line.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::limits::{RAW_REQUEST_BYTES, RAW_SILENCE_TIMEOUT};

/// Which way the payload goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// To the client.
    Get,
    /// To the server.
    Put,
}

/// Request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Which way the payload goes.
    pub verb: Verb,
    /// How much, or the most.
    pub bytes: u64,
}

impl Request {
    /// As it is sent.
    pub fn line(self) -> String {
        let verb = match self.verb {
            Verb::Get => "GET",
            Verb::Put => "PUT",
        };
        format!("{verb} {}\n", self.bytes)
    }

    /// Reads a line, without its end.
    ///
    /// # Errors
    ///
    /// One sentence, if it is none.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let wrong =
            || "the request must be `GET <bytes>` or `PUT <bytes>` and a line feed".to_owned();
        let text = std::str::from_utf8(line).map_err(|_| wrong())?;
        let (verb, bytes) = text.trim_end_matches('\r').split_once(' ').ok_or_else(wrong)?;
        let verb = match verb {
            "GET" => Verb::Get,
            "PUT" => Verb::Put,
            _ => return Err(wrong()),
        };
        if bytes.is_empty() || !bytes.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let bytes = bytes.parse().map_err(|_| format!("{bytes} bytes are more than 2^64 - 1"))?;
        Ok(Self { verb, bytes })
    }
}

/// Reads a request line and not a byte beyond it.
pub(super) fn read(stream: &mut TcpStream, time: Duration) -> io::Result<Request> {
    let invalid = |sentence: String| io::Error::new(io::ErrorKind::InvalidData, sentence);
    let until = Instant::now() + time;
    let mut line = Vec::with_capacity(RAW_REQUEST_BYTES);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(invalid(format!("no request came within {} s", time.as_secs())));
        }
        stream.set_read_timeout(Some(left))?;
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => return Err(invalid("the connection ended before its request".to_owned())),
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if line.len() > RAW_REQUEST_BYTES {
            return Err(invalid(format!("the request is longer than {RAW_REQUEST_BYTES} bytes")));
        }
    }
    stream.set_read_timeout(Some(RAW_SILENCE_TIMEOUT))?;
    Request::parse(&line).map_err(invalid)
}

//! One connection as a client sees it: bytes out, responses in.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// How long a server may take for a response or for the end. Only failures wait that long.
const PATIENCE: Duration = Duration::from_secs(8);

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    /// The status code.
    pub(crate) status: u16,
    /// Names in lower case, with their values.
    pub(crate) fields: Vec<(String, String)>,
    /// The content as far as it came.
    pub(crate) content: Vec<u8>,
    /// True if it came to its end.
    pub(crate) complete: bool,
}

impl Response {
    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.0 == name).map(|field| field.1.as_str())
    }
}

/// Next bytes of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A response, or the first part of one.
    Response(Response),
    /// The end of the connection.
    Closed,
    /// Nothing, for longer than a client should wait.
    Silence,
    /// Bytes that no client understands, and why.
    Garbage(String),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    input: Vec<u8>,
    ended: bool,
}

/// Why reading stopped short.
enum Stop {
    End,
    Silence,
    Garbage(String),
}

impl Wire {
    /// Connects.
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, input: Vec::new(), ended: false })
    }

    /// Sends bytes, in one piece or each on its own. A server that has closed already doesn't hear
    /// them: that shows when its response is read.
    pub(crate) fn send(&mut self, bytes: &[u8], one_by_one: bool) {
        let size = if one_by_one { 1 } else { bytes.len().max(1) };
        for piece in bytes.chunks(size) {
            if self.stream.write_all(piece).is_err() {
                return;
            }
        }
    }

    /// Ends our side.
    pub(crate) fn half_close(&mut self) {
        // A peer that has closed already doesn't hear this either.
        drop(self.stream.shutdown(Shutdown::Write));
    }

    /// Reads the next response, or how the connection ends.
    pub(crate) fn next(&mut self, answers_head: bool) -> Next {
        match self.response(answers_head) {
            Ok(response) => Next::Response(response),
            Err(Stop::End) => Next::Closed,
            Err(Stop::Silence) => Next::Silence,
            Err(Stop::Garbage(why)) => Next::Garbage(why),
        }
    }

    fn response(&mut self, answers_head: bool) -> Result<Response, Stop> {
        let mut response = self.head()?;
        let no_content = matches!(response.status, 100..=199 | 204 | 304) || answers_head;
        let coding = response.field("transfer-encoding").map(str::to_ascii_lowercase);
        let length = response.field("content-length").map(str::to_owned);
        if coding.is_some() && length.is_some() {
            return Err(Stop::Garbage("both transfer-encoding and content-length".to_owned()));
        }
        let read = match (coding, length) {
            _ if no_content => Ok(()),
            (Some(coding), _) if coding == "chunked" => self.chunks(&mut response.content),
            (Some(coding), _) => return Err(Stop::Garbage(format!("coding {coding}"))),
            (None, Some(length)) => {
                let length =
                    length.parse().map_err(|_| Stop::Garbage(format!("length {length}")))?;
                self.bytes(length, &mut response.content)
            }
            (None, None) => self.until_the_end(&mut response.content),
        };
        match read {
            Ok(()) => response.complete = true,
            Err(Stop::Garbage(why)) => return Err(Stop::Garbage(why)),
            Err(Stop::End | Stop::Silence) => {}
        }
        Ok(response)
    }

    fn head(&mut self) -> Result<Response, Stop> {
        let line = self.line()?;
        let status = line.strip_prefix("HTTP/1.1 ").or_else(|| line.strip_prefix("HTTP/1.0 "));
        let digits = status.and_then(|rest| rest.get(..3));
        let has_space = status.is_some_and(|rest| rest.get(3..4) == Some(" "));
        let status = digits.and_then(|digits| digits.parse().ok()).filter(|_| has_space);
        let status = status.ok_or_else(|| Stop::Garbage(format!("status line {line:?}")))?;
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(Response { status, fields, content: Vec::new(), complete: false });
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(Stop::Garbage(format!("field line {line:?}")));
            };
            if name.is_empty() || name.contains([' ', '\t']) {
                return Err(Stop::Garbage(format!("field name {name:?}")));
            }
            fields.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
        }
    }

    fn chunks(&mut self, content: &mut Vec<u8>) -> Result<(), Stop> {
        loop {
            let line = self.line()?;
            let digits = line.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(digits, 16)
                .map_err(|_| Stop::Garbage(format!("chunk size {line:?}")))?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(());
            }
            self.bytes(size, content)?;
            if !self.line()?.is_empty() {
                return Err(Stop::Garbage("a chunk longer than its size".to_owned()));
            }
        }
    }

    fn bytes(&mut self, count: usize, content: &mut Vec<u8>) -> Result<(), Stop> {
        let wanted = content.len() + count;
        loop {
            let take = self.input.len().min(wanted - content.len());
            content.extend(self.input.drain(..take));
            if content.len() == wanted {
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn until_the_end(&mut self, content: &mut Vec<u8>) -> Result<(), Stop> {
        loop {
            content.append(&mut self.input);
            match self.fill() {
                Ok(()) => {}
                Err(Stop::End) => return Ok(()),
                Err(stop) => return Err(stop),
            }
        }
    }

    /// One line without its CRLF. A bare LF is garbage: servers end lines as the RFC says.
    fn line(&mut self) -> Result<String, Stop> {
        let mut from = 0;
        loop {
            if let Some(end) = self.input[from..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=from + end).collect();
                let line = String::from_utf8_lossy(&line).into_owned();
                return match line.strip_suffix("\r\n") {
                    Some(line) => Ok(line.to_owned()),
                    None => Err(Stop::Garbage(format!("line {line:?}"))),
                };
            }
            from = self.input.len();
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), Stop> {
        if self.ended {
            return Err(Stop::End);
        }
        let mut block = [0; 16 * 1024];
        match self.stream.read(&mut block) {
            Ok(count) if count > 0 => {
                self.input.extend_from_slice(&block[..count]);
                Ok(())
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                Err(Stop::Silence)
            }
            // A reset is an end: the server had unread bytes of ours when it closed.
            Ok(_) | Err(_) => {
                self.ended = true;
                if self.input.is_empty() {
                    Err(Stop::End)
                } else {
                    Err(Stop::Garbage(format!(
                        "the end after {:?}",
                        String::from_utf8_lossy(&self.input)
                    )))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Returns what a client reads from a server that sends this and ends.
    fn read(bytes: &'static str, answers_head: bool) -> Vec<Next> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(bytes.as_bytes()).unwrap();
        });
        let mut wire = Wire::connect(&address).unwrap();
        server.join().unwrap();
        let mut all = Vec::new();
        loop {
            let next = wire.next(answers_head);
            let last = !matches!(&next, Next::Response(response) if response.complete);
            all.push(next);
            if last {
                return all;
            }
        }
    }

    fn contents(all: &[Next]) -> Vec<String> {
        let content = |next: &Next| match next {
            Next::Response(response) => String::from_utf8_lossy(&response.content).into_owned(),
            Next::Closed => "end".to_owned(),
            Next::Silence => "silence".to_owned(),
            Next::Garbage(why) => format!("garbage: {why}"),
        };
        all.iter().map(content).collect()
    }

    #[test]
    fn responses_are_framed_by_length_chunks_or_the_end() {
        let two = read(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
             HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ncde\r\n0\r\n\r\n",
            false,
        );
        assert_eq!(contents(&two), ["ab", "cde", "end"]);
        assert_eq!(contents(&read("HTTP/1.0 200 OK\r\n\r\nabc", false)), ["abc", "end"]);
        let head = read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", true);
        assert_eq!(contents(&head), ["", "end"]);
    }

    #[test]
    fn a_response_that_breaks_off_is_not_complete() {
        let broken = read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", false);
        let Next::Response(response) = &broken[0] else { panic!("{broken:?}") };
        assert!(!response.complete);
    }

    #[test]
    fn what_no_client_understands_is_garbage() {
        for bytes in [
            "pong",
            "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
        ] {
            let all = contents(&read(bytes, false));
            assert!(all[0].starts_with("garbage"), "{bytes:?}: {all:?}");
        }
    }
}

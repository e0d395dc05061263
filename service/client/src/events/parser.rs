//! HTML §9.2.5, §9.2.6: from bytes to events, wherever they are split.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use memchr::{memchr, memchr2};

use crate::limits::{EVENT_BYTES, EVENT_NAME_BYTES};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Type of the event: `message`, if the server did not say.
    pub kind: String,
    /// Data of the event; several lines are joined by line feeds.
    pub data: String,
    /// The identifier that the server gave last, with this event or before; empty if it gave none. Events that
    /// follow each other share it.
    pub id: Arc<str>,
}

/// A line, or the data, kind or identifier of an event, is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// Names what is too long.
    pub what: &'static str,
    /// How long it may be, in bytes.
    pub bytes_max: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the {} is longer than {} bytes", self.what, self.bytes_max)
    }
}

impl std::error::Error for TooLong {}

/// Reads one stream of events. It is pure: bytes go in, in pieces of any size, and events come out, one at a
/// time.
///
/// ```
/// use bolide_client::EventParser;
///
/// let mut parser = EventParser::new();
/// assert_eq!(parser.next_event(&mut &b"data: fir"[..])?, None);
/// assert_eq!(parser.next_event(&mut &b"st\r\ndata: second\r"[..])?, None);
/// let mut piece = &b"\n\r\ndata: third\n\n"[..];
/// let mut data = Vec::new();
/// while let Some(event) = parser.next_event(&mut piece)? {
///     data.push(event.data);
/// }
/// assert_eq!(data, ["first\nsecond", "third"]);
/// # Ok::<(), bolide_client::TooLong>(())
/// ```
#[derive(Debug, Clone)]
pub struct EventParser {
    bytes_max: usize,
    /// A line that has not ended yet.
    line: Vec<u8>,
    /// The first line of the stream has been looked at: no byte order mark follows.
    has_begun: bool,
    /// A carriage return came last: a line feed belongs to it.
    after_return: bool,
    kind: String,
    data: String,
    /// The identifier for the event under way, and that of the last event.
    id: Arc<str>,
    last_id: Arc<str>,
    retry: Option<Duration>,
}

impl Default for EventParser {
    fn default() -> Self {
        Self::new()
    }
}

impl EventParser {
    /// A parser at the beginning of a stream, for events of up to
    /// [`EVENT_BYTES`](crate::limits::EVENT_BYTES).
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(EVENT_BYTES)
    }

    /// The same, for lines and data of up to `bytes_max`.
    #[must_use]
    pub fn with_limit(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            has_begun: false,
            after_return: false,
            kind: String::new(),
            data: String::new(),
            id: Arc::default(),
            last_id: Arc::default(),
            retry: None,
        }
    }

    /// The identifier of the last event: what `Last-Event-ID` says when the stream is asked for again.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_id
    }

    /// How long to wait before the stream is asked for again, if the server said so.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Begins anew with another connection: what was incomplete is dropped, and the identifier and the time
    /// to wait stay.
    pub fn restart(&mut self) {
        self.line.clear();
        self.has_begun = false;
        self.after_return = false;
        self.kind.clear();
        self.data.clear();
        self.id.clone_from(&self.last_id);
    }

    /// Reads on until an event is complete; `bytes` begins behind it then. `None`: all bytes are read.
    ///
    /// # Errors
    ///
    /// When a line or an event is too long; the stream can't be read further.
    pub fn next_event(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, TooLong> {
        if !bytes.is_empty() && mem::take(&mut self.after_return) {
            *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = memchr2(b'\n', b'\r', bytes) {
            let (head, rest) = bytes.split_at(at);
            *bytes = &rest[1..];
            if rest[0] == b'\r' {
                self.after_return = bytes.is_empty();
                *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            self.keep(head)?;
            let line = mem::take(&mut self.line);
            let event = self.end_of_line(&line)?;
            // It keeps its memory.
            self.line = line;
            self.line.clear();
            if event.is_some() {
                return Ok(event);
            }
        }
        if !bytes.is_empty() {
            self.after_return = false;
            self.keep(mem::take(bytes))?;
        }
        Ok(None)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > self.bytes_max {
            return Err(TooLong { what: "line or data of an event", bytes_max: self.bytes_max });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_of_line(&mut self, mut line: &[u8]) -> Result<Option<Event>, TooLong> {
        if !mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (name, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                append(&mut self.data, value, "line or data of an event", self.bytes_max)?;
                append(&mut self.data, b"\n", "line or data of an event", self.bytes_max)?;
            }
            b"event" => {
                self.kind.clear();
                append(&mut self.kind, value, "kind of an event", EVENT_NAME_BYTES)?;
            }
            b"id" if memchr(0, value).is_none() => {
                let mut id = String::new();
                append(&mut id, value, "identifier of an event", EVENT_NAME_BYTES)?;
                self.id = id.into();
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                // A number too large is as long as can be.
                let number = str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.retry = Some(Duration::from_millis(number.unwrap_or(u64::MAX)));
            }
            // Comments have an empty name; what is not known is passed over.
            _ => {}
        }
        Ok(None)
    }

    fn dispatch(&mut self) -> Option<Event> {
        self.last_id = Arc::clone(&self.id);
        let kind = mem::take(&mut self.kind);
        let mut data = mem::take(&mut self.data);
        data.pop()?;
        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
        Some(Event { kind, data, id: Arc::clone(&self.last_id) })
    }
}

/// Appends what `bytes` say to `text`, which may become `bytes_max` long; what is not UTF-8 becomes U+FFFD.
fn append(
    text: &mut String,
    bytes: &[u8],
    what: &'static str,
    bytes_max: usize,
) -> Result<(), TooLong> {
    for chunk in bytes.utf8_chunks() {
        let replacement = if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
        for part in [chunk.valid(), replacement] {
            if text.len() + part.len() > bytes_max {
                return Err(TooLong { what, bytes_max });
            }
            text.push_str(part);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! HTML §9.2.5, §9.2.6: from bytes to events, wherever they are split.

use std::fmt;
use std::mem;
use std::time::Duration;

use memchr::memchr2;

use crate::limits::EVENT_BYTES;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What kind of event it is: `message`, if the server did not say.
    pub kind: String,
    /// What it says; several lines are joined by line feeds.
    pub data: String,
    /// The identifier that the server gave last, with this event or before; empty if it gave none.
    pub id: String,
}

/// A line, or the data of an event, is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// How long it may be, in bytes.
    pub bytes_max: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an event of the stream is longer than {} bytes", self.bytes_max)
    }
}

impl std::error::Error for TooLong {}

/// Reads one stream of events. It is pure: bytes go in, in pieces of any size, and events come out.
///
/// ```
/// use bolide_client::EventParser;
///
/// let mut parser = EventParser::new();
/// let mut events = Vec::new();
/// parser.push(b"data: fir", &mut events)?;
/// parser.push(b"st\r\ndata: second\r", &mut events)?;
/// assert!(events.is_empty());
/// parser.push(b"\n\r\n", &mut events)?;
/// assert_eq!(events[0].data, "first\nsecond");
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
    id: String,
    last_id: String,
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
            id: String::new(),
            last_id: String::new(),
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

    /// Reads the next bytes of the stream; what they complete is appended to `events`.
    ///
    /// # Errors
    ///
    /// When a line or an event is too long; the stream can't be read further.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        if !bytes.is_empty() && mem::take(&mut self.after_return) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = memchr2(b'\n', b'\r', bytes) {
            let (head, rest) = bytes.split_at(at);
            bytes = &rest[1..];
            if rest[0] == b'\r' {
                self.after_return = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            self.keep(head)?;
            let line = mem::take(&mut self.line);
            self.end_of_line(&line, events)?;
            // It keeps its memory.
            self.line = line;
            self.line.clear();
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.after_return = false;
        self.keep(bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > self.bytes_max {
            return Err(TooLong { bytes_max: self.bytes_max });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_of_line(&mut self, mut line: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        if !mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let text = String::from_utf8_lossy(line);
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if self.data.len() + value.len() + 1 > self.bytes_max {
                    return Err(TooLong { bytes_max: self.bytes_max });
                }
                self.data.push_str(value);
                self.data.push('\n');
            }
            "event" => value.clone_into(&mut self.kind),
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                // A number too large is as long as can be.
                self.retry = Some(Duration::from_millis(value.parse().unwrap_or(u64::MAX)));
            }
            // Comments have an empty name; what is not known is passed over.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        self.last_id.clone_from(&self.id);
        let kind = mem::take(&mut self.kind);
        let mut data = mem::take(&mut self.data);
        if data.pop().is_none() {
            return;
        }
        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
        events.push(Event { kind, data, id: self.last_id.clone() });
    }
}

#[cfg(test)]
mod tests;

//! RFC 9113 §5.1: one stream: its state, its windows, and what it has to send.

use bolide_buffers::Chunk;
use bolide_semantics::{End, FieldRef, Misuse, has_no_body};
use http::{Method, StatusCode};

use crate::priority::Priority;
use crate::receive_window::ReceiveWindow;
use crate::unanswered::Unanswered;

/// A body's length that nobody announced.
pub(crate) const LENGTH_UNKNOWN: u64 = u64::MAX;

/// No slot: the end of a list.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// How far a message has come, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The final head has not been seen.
    Head,
    /// A body, a tunnel's bytes, or trailers may follow.
    Body,
    /// The stream has ended in this direction.
    Ended,
}

/// Where a stream waits to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It has nothing to send.
    Nowhere,
    /// In the scheduler's lists.
    Listed,
    /// For the peer to open the stream's window.
    Window,
}

/// One stream. The order of the fields is left to the compiler.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Zero when the slot is free.
    pub(crate) id: u32,
    pub(crate) receiving: Progress,
    pub(crate) sending: Progress,
    /// The request's method is CONNECT.
    pub(crate) connect: bool,
    /// CONNECT succeeded: bytes both ways, no message.
    pub(crate) tunnel: bool,
    /// The response to this request never has content (HEAD).
    pub(crate) head_request: bool,
    /// A gRPC call: its body may be slow, and pause for longer.
    pub(crate) patient: bool,
    /// The answer is complete: what still comes of the request is discarded.
    pub(crate) discarding: bool,
    /// Interim responses that have come.
    pub(crate) interim_count: u8,

    /// What the peer lets us send, in bytes. Negative after it lowered its initial size.
    pub(crate) send_window: i32,
    pub(crate) place: Place,
    pub(crate) priority: Priority,
    /// Everything given has been framed and the caller wants to hear when more may be given.
    pub(crate) hungry: bool,
    /// With the last byte of `chunk`, or with the trailers, the stream ends.
    pub(crate) end_after: bool,
    /// The rest of the chunk that was given last.
    pub(crate) chunk: Option<Chunk>,
    /// To be sent after `chunk`.
    pub(crate) trailers: Option<Box<PendingTrailers>>,
    /// Body bytes that the caller still owes, by its Content-Length.
    pub(crate) send_left: u64,
    /// The scheduler's list; also the list of free slots.
    pub(crate) next: u32,
    pub(crate) previous: u32,
    /// Since when it waits, and what the peer took since.
    pub(crate) waiting_ms: u32,
    pub(crate) taken_bytes: u32,
    /// What was sent and not answered by a WINDOW_UPDATE for this stream.
    pub(crate) unanswered: Unanswered,
    /// The peer has sent a WINDOW_UPDATE for this stream.
    pub(crate) updated: bool,

    pub(crate) window: ReceiveWindow,
    /// Received and not consumed, in bytes.
    pub(crate) unconsumed: u32,
    /// Body bytes that the peer still owes, by its Content-Length.
    pub(crate) receive_left: u64,
    /// When body bytes last came.
    pub(crate) received_ms: u32,
    /// Since when the rate is measured (or the rest is discarded), and what came since.
    pub(crate) rate_ms: u32,
    pub(crate) rate_bytes: u32,
    /// `rate_bytes` when the streams were last looked through.
    pub(crate) rate_mark: u32,
}

/// What a new stream begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) id: u32,
    pub(crate) send_window: u32,
    pub(crate) receive_window: u32,
    pub(crate) priority: Priority,
    pub(crate) now_ms: u32,
}

impl Stream {
    #[inline]
    pub(crate) fn new(opening: Opening) -> Self {
        Self {
            id: opening.id,
            receiving: Progress::Head,
            sending: Progress::Head,
            connect: false,
            tunnel: false,
            head_request: false,
            patient: false,
            discarding: false,
            interim_count: 0,
            send_window: opening.send_window as i32,
            place: Place::Nowhere,
            priority: opening.priority,
            hungry: false,
            end_after: false,
            chunk: None,
            trailers: None,
            send_left: LENGTH_UNKNOWN,
            next: NO_SLOT,
            previous: NO_SLOT,
            waiting_ms: 0,
            taken_bytes: 0,
            unanswered: Unanswered::default(),
            updated: false,
            window: ReceiveWindow::new(opening.receive_window),
            unconsumed: 0,
            receive_left: LENGTH_UNKNOWN,
            received_ms: opening.now_ms,
            rate_ms: opening.now_ms,
            rate_bytes: 0,
            rate_mark: 0,
        }
    }

    /// Takes the place of a stream that was forgotten. Field by field: a whole stream that is made and then
    /// copied is read before it has been written, for which a processor waits.
    #[inline]
    pub(crate) fn reopen(&mut self, opening: Opening) {
        debug_assert!(
            self.chunk.is_none() && self.trailers.is_none(),
            "what is forgotten is empty"
        );
        self.id = opening.id;
        self.receiving = Progress::Head;
        self.sending = Progress::Head;
        self.connect = false;
        self.tunnel = false;
        self.head_request = false;
        self.patient = false;
        self.discarding = false;
        self.interim_count = 0;
        self.send_window = opening.send_window as i32;
        self.place = Place::Nowhere;
        self.priority = opening.priority;
        self.hungry = false;
        self.end_after = false;
        self.send_left = LENGTH_UNKNOWN;
        self.next = NO_SLOT;
        self.previous = NO_SLOT;
        self.waiting_ms = 0;
        self.taken_bytes = 0;
        self.unanswered = Unanswered::default();
        self.updated = false;
        self.window = ReceiveWindow::new(opening.receive_window);
        self.unconsumed = 0;
        self.receive_left = LENGTH_UNKNOWN;
        self.received_ms = opening.now_ms;
        self.rate_ms = opening.now_ms;
        self.rate_bytes = 0;
        self.rate_mark = 0;
    }

    /// The head of the final response is being sent: what follows it.
    #[inline]
    pub(crate) fn announce(
        &mut self,
        status: StatusCode,
        length: u64,
        end: End,
    ) -> Result<(), Misuse> {
        let tunnel = self.connect && status.is_success();
        let bodiless = self.head_request || has_no_body(&Method::GET, status);
        let ends = end == End::Yes;
        if ends && !bodiless && !tunnel && !matches!(length, 0 | LENGTH_UNKNOWN) {
            return Err(Misuse::WrongLength);
        }
        self.tunnel = tunnel;
        self.send_left = match (tunnel, bodiless) {
            (true, _) => LENGTH_UNKNOWN,
            (false, true) => 0,
            (false, false) => length,
        };
        if tunnel {
            self.receive_left = LENGTH_UNKNOWN;
        }
        self.sending = Progress::Body;
        Ok(())
    }

    /// Whether the body may go on with so much data, and end there.
    #[inline]
    pub(crate) fn expects(&self, data: u32, end_stream: bool) -> bool {
        self.receive_left == LENGTH_UNKNOWN
            || (u64::from(data) <= self.receive_left
                && (!end_stream || u64::from(data) == self.receive_left))
    }

    /// Whether there is something to frame or to ask for.
    #[inline]
    pub(crate) fn wants_to_send(&self) -> bool {
        self.chunk.is_some() || self.hungry
    }

    /// The memory of what it was given and has not sent, in bytes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let chunk = self.chunk.as_ref().map_or(0, Chunk::held_bytes);
        chunk + self.trailers.as_ref().map_or(0, |trailers| trailers.held_bytes())
    }
}

/// Trailers that wait for a chunk to leave: header compression follows the order of sending.
#[derive(Debug, Default)]
pub(crate) struct PendingTrailers {
    text: Vec<u8>,
    /// For each line the length of its name and of its value, and whether it is sensitive.
    lines: Vec<(usize, usize, bool)>,
}

impl PendingTrailers {
    pub(crate) fn new(fields: &[FieldRef<'_>]) -> Self {
        let mut trailers = Self::default();
        for field in fields {
            trailers.text.extend_from_slice(field.name.as_bytes());
            trailers.text.extend_from_slice(field.value);
            trailers.lines.push((field.name.len(), field.value.len(), field.sensitive));
        }
        trailers
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.text.capacity() + self.lines.capacity() * size_of::<(usize, usize, bool)>()
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = FieldRef<'_>> + Clone {
        self.lines.iter().scan(0, |position, (name, value, sensitive)| {
            let value_start = *position + name;
            let name = &self.text[*position..value_start];
            *position = value_start + value;
            Some(FieldRef {
                known: bolide_semantics::FieldName::lookup(name),
                name: std::str::from_utf8(name).unwrap_or_default(),
                value: &self.text[value_start..*position],
                sensitive: *sensitive,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use bolide_semantics::FieldName;

    use super::*;

    #[test]
    fn a_stream_is_small() {
        assert!(size_of::<Stream>() <= 160, "{}", size_of::<Stream>());
    }

    #[test]
    fn a_place_is_as_good_as_new_when_it_is_used_again() {
        let opening = |id| Opening {
            id,
            send_window: id + 1,
            receive_window: id + 2,
            priority: Priority { urgency: id as u8, incremental: id == 5 },
            now_ms: id + 3,
        };
        let mut used = Stream::new(opening(3));
        used.announce(StatusCode::OK, 7, End::No).unwrap();
        used.receiving = Progress::Ended;
        (used.connect, used.tunnel, used.head_request, used.patient) = (true, true, true, true);
        (used.discarding, used.hungry, used.end_after, used.updated) = (true, true, true, true);
        used.place = Place::Window;
        (used.next, used.previous, used.waiting_ms, used.taken_bytes) = (1, 2, 3, 4);
        used.unanswered.sent(9);
        used.window.consumed = 8;
        (used.unconsumed, used.receive_left) = (5, 6);
        (used.rate_bytes, used.rate_mark) = (7, 8);
        used.reopen(opening(5));
        assert_eq!(format!("{used:?}"), format!("{:?}", Stream::new(opening(5))));
    }

    #[test]
    fn trailers_are_read_back_as_they_were_given() {
        let given = [
            FieldRef::known(FieldName::Etag, b"\"a\""),
            FieldRef { known: None, name: "grpc-status", value: b"0", sensitive: true },
        ];
        let trailers = PendingTrailers::new(&given);
        let back: Vec<_> = trailers.fields().collect();
        assert_eq!(back.len(), 2);
        assert_eq!((back[0].known, back[0].value), (Some(FieldName::Etag), &b"\"a\""[..]));
        assert_eq!((back[1].name, back[1].value), ("grpc-status", &b"0"[..]));
        assert!(back[1].sensitive && !back[0].sensitive);
    }
}

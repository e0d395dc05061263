//! `GET` and `POST /events?n=N&gap=MS&size=N`: Server-Sent Events at known times (HTML §9.2).

use std::time::{Duration, Instant};

use bolide_server::{
    Bytes, End, Exchange, Handler, HeaderValue, Io, Reply, Request, Response, StatusCode,
};

use crate::limits::{EVENT_GAP_MAX, EVENT_SIZE_BYTES_MAX, EVENTS_COUNT_MAX, EVENTS_PIECE_BYTES};

/// The end of a stream for clients of language models.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Handler of `/events`, for GET and POST; a request's content is discarded.
#[derive(Debug)]
pub(crate) struct Streams;

impl Handler for Streams {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        match Stream::of(request) {
            Ok(stream) => Reply::Exchange(Box::new(stream)),
            Err(what) => Response::text(what).with_status(StatusCode::BAD_REQUEST).into(),
        }
    }

    fn body_bytes_max(&self) -> Option<u64> {
        Some(u64::MAX)
    }
}

/// The events of one response: event k is due k gaps after the first, which is due at once.
#[derive(Debug)]
struct Stream {
    count: u64,
    gap: Duration,
    /// Each has so many bytes of data.
    size: usize,
    ends_with_done: bool,
    sent: u64,
    began: Instant,
}

/// A number of a query, from `least` to `most`.
fn number(request: &Request<'_>, name: &str, default: u64, most: u64) -> Result<u64, String> {
    let Some(text) = request.query_param(name) else { return Ok(default) };
    let number = text.parse().ok().filter(|number| *number <= most);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    number.filter(|_| is_number).ok_or_else(|| {
        format!("{name} is a number from 0 to {most}; n is the number of events, gap the time between them in \
                 milliseconds, size the bytes of data of each, and done=1 adds a last event, [DONE]\n")
    })
}

impl Stream {
    fn of(request: &Request<'_>) -> Result<Self, String> {
        let gap_ms_max = u64::try_from(EVENT_GAP_MAX.as_millis()).unwrap_or(u64::MAX);
        let size = number(request, "size", 32, EVENT_SIZE_BYTES_MAX)?;
        Ok(Self {
            count: number(request, "n", 10, EVENTS_COUNT_MAX)?,
            gap: Duration::from_millis(number(request, "gap", 100, gap_ms_max)?),
            size: usize::try_from(size).unwrap_or(usize::MAX),
            ends_with_done: number(request, "done", 0, 1)? == 1,
            sent: 0,
            began: request.now(),
        })
    }

    /// When an event is due.
    fn due_at(&self, event: u64) -> Instant {
        // Both are bounded, so that the product fits.
        self.began + Duration::from_millis(event * self.gap.as_millis() as u64)
    }

    /// Sends what is due, as far as the connection takes it.
    fn advance(&mut self, io: &mut Io<'_>) {
        while io.is_sendable() {
            let mut piece = Vec::new();
            while self.sent < self.count
                && piece.len() < EVENTS_PIECE_BYTES
                && self.due_at(self.sent) <= io.now()
            {
                self.put(&mut piece);
            }
            let ends = self.sent == self.count;
            if ends && self.ends_with_done {
                piece.extend_from_slice(DONE);
            }
            if piece.is_empty() && !ends {
                return io.wake_at(Some(self.due_at(self.sent)));
            }
            let end = if ends { End::Yes } else { End::No };
            if io.send(Bytes::from(piece), end).is_err() {
                return io.abort();
            }
        }
    }

    fn put(&mut self, piece: &mut Vec<u8>) {
        piece.extend_from_slice(b"id: ");
        piece.extend_from_slice(self.sent.to_string().as_bytes());
        piece.extend_from_slice(b"\ndata: ");
        piece.resize(piece.len() + self.size, b'x');
        piece.extend_from_slice(b"\n\n");
        self.sent += 1;
    }
}

impl Exchange for Stream {
    fn on_start(&mut self, io: &mut Io<'_>) {
        let response = Response::new(StatusCode::OK)
            .header("content-type", HeaderValue::from_static("text/event-stream"))
            .header("cache-control", HeaderValue::from_static("no-store"));
        io.start(&response, None);
        self.advance(io);
    }

    fn on_data(&mut self, data: Bytes, _: End, io: &mut Io<'_>) {
        io.consumed(data.len());
    }

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        self.advance(io);
    }

    fn on_wake(&mut self, io: &mut Io<'_>) {
        self.advance(io);
    }

    /// Ends the stream: only whole events were sent, so that the stream may end after any of them.
    fn on_shut_down(&mut self, io: &mut Io<'_>) {
        self.count = self.sent;
        self.advance(io);
    }
}

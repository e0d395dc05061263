//! A request's body: pulled by the service, from any thread, and filled by the worker.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bolide_server::{Bytes, HeaderMap, Io, PieceQueue};
use http_body::{Frame, SizeHint};

/// The body of a request.
///
/// It is read by the methods of [`http_body::Body`]. What was not read yet holds the client back:
/// over HTTP/2 by its windows, over HTTP/1.1 by the socket.
#[derive(Debug, Default)]
pub struct Body(Source);

/// Source of a body.
#[derive(Debug, Default)]
enum Source {
    #[default]
    Nowhere,
    /// It had arrived with its head, all of it; with whether its length was announced.
    Whole(Bytes, bool),
    /// From the worker, piece by piece.
    Inbox(Arc<Inbox>),
}

/// How much a reader gets before it has to return to its executor once.
///
/// A reader may ask until nothing is there before it looks at what it got, as multipart parsers do. If it runs on another
/// thread than the worker, which fills the body meanwhile, it may get to the body's end that way and hold all of it.
const ROW_BYTES_MAX: usize = 256 * 1024;

/// Why a request's body could not be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyError {
    what: &'static str,
}

impl fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the request's body is incomplete: {}", self.what)
    }
}

impl std::error::Error for BodyError {}

/// State that worker and service share.
struct Inbox {
    /// The exchange's.
    worker: Waker,
    state: Mutex<State>,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Inbox")
    }
}

#[derive(Default)]
struct State {
    pieces: PieceQueue,
    trailers: Option<HeaderMap>,
    /// Nothing more comes.
    ended: bool,
    failed: Option<BodyError>,
    /// Waker of the reader of the next piece.
    reader: Option<Waker>,
    /// Bytes that were read and not yet reported to the connection.
    read_bytes: usize,
    /// The service has asked for the body at least once.
    wanted: bool,
    /// The service has dropped the body.
    dropped: bool,
    /// The worker is at this exchange now and looks by itself.
    attended: bool,
    /// The length that the client has announced, less what was read.
    left: Option<u64>,
    /// Bytes that were read since the reader last had to wait.
    row_bytes: usize,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Body {
    /// A body without content.
    #[must_use]
    pub fn empty() -> Self {
        Self(Source::Nowhere)
    }

    /// How many bytes of it came with its head, if all of it did.
    pub(crate) fn whole_bytes(&self) -> usize {
        if let Source::Whole(bytes, _) = &self.0 { bytes.len() } else { 0 }
    }

    /// A body that has arrived; its bytes keep no worker's block.
    pub(crate) fn whole(bytes: Bytes, is_announced: bool) -> Self {
        let is_empty = bytes.is_empty();
        Self(if is_empty { Source::Nowhere } else { Source::Whole(bytes, is_announced) })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let inbox = match &mut self.0 {
            Source::Nowhere => return Poll::Ready(None),
            Source::Whole(bytes, _) => {
                let bytes = std::mem::take(bytes);
                self.0 = Source::Nowhere;
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            Source::Inbox(inbox) => inbox,
        };
        let mut state = inbox.lock();
        if state.row_bytes >= ROW_BYTES_MAX {
            state.row_bytes = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let told = !state.wanted;
        state.wanted = true;
        let polled = if let Some(piece) = state.pieces.pop() {
            state.read_bytes += piece.len();
            state.row_bytes += piece.len();
            if let Some(left) = &mut state.left {
                *left = left.saturating_sub(piece.len() as u64);
            }
            Poll::Ready(Some(Ok(Frame::data(piece))))
        } else if let Some(trailers) = state.trailers.take() {
            Poll::Ready(Some(Ok(Frame::trailers(trailers))))
        } else if let Some(error) = state.failed {
            // Told once: after an error a body is at its end.
            state.failed = None;
            state.ended = true;
            Poll::Ready(Some(Err(error)))
        } else if state.ended {
            Poll::Ready(None)
        } else {
            state.row_bytes = 0;
            if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
                state.reader = Some(cx.waker().clone());
            }
            Poll::Pending
        };
        // The worker has to open the window, or to tell the client to begin.
        let tells = !state.attended && !state.ended && (told || polled.is_ready());
        drop(state);
        if tells {
            inbox.worker.wake_by_ref();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let Source::Inbox(inbox) = &self.0 else { return matches!(self.0, Source::Nowhere) };
        let state = inbox.lock();
        state.ended && state.pieces.is_empty() && state.trailers.is_none() && state.failed.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Nowhere => SizeHint::with_exact(0),
            Source::Whole(_, false) => SizeHint::new(),
            Source::Whole(bytes, true) => SizeHint::with_exact(bytes.len() as u64),
            Source::Inbox(inbox) => {
                inbox.lock().left.map_or_else(SizeHint::new, SizeHint::with_exact)
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let Source::Inbox(inbox) = &self.0 else { return };
        let mut state = inbox.lock();
        state.dropped = true;
        state.reader = None;
        let unread = std::mem::take(&mut state.pieces).bytes();
        state.read_bytes += unread;
        let tells = !state.attended && unread > 0;
        drop(state);
        if tells {
            inbox.worker.wake_by_ref();
        }
    }
}

/// The worker's end of a request's body. Dropped before the end, it fails the body.
#[derive(Debug)]
pub(crate) struct Feed(Arc<Inbox>);

/// A body and its worker's end, which is attended.
pub(crate) fn body(length: Option<u64>, worker: &Waker) -> (Body, Feed) {
    let state = State { left: length, attended: true, ..State::default() };
    let inbox = Arc::new(Inbox { worker: worker.clone(), state: Mutex::new(state) });
    (Body(Source::Inbox(Arc::clone(&inbox))), Feed(inbox))
}

impl Feed {
    /// The worker turns to this exchange: reads need not ring.
    pub(crate) fn attend(&self) {
        self.0.lock().attended = true;
    }

    /// The worker leaves the exchange: what was read is reported, what was not is kept.
    pub(crate) fn leave(&self, io: &mut Io<'_>) {
        let mut state = self.0.lock();
        state.attended = false;
        let read_bytes = std::mem::take(&mut state.read_bytes);
        state.pieces.keep();
        let wanted = state.wanted;
        drop(state);
        if wanted {
            io.send_continue();
        }
        if read_bytes > 0 {
            io.consumed(read_bytes);
        }
    }

    /// A piece has arrived; the worker turns to this exchange.
    pub(crate) fn push(&self, piece: Bytes, is_last: bool) {
        let mut state = self.0.lock();
        state.attended = true;
        if state.dropped {
            state.read_bytes += piece.len();
        } else {
            state.pieces.push(piece);
        }
        state.ended |= is_last;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// The body has ended with trailers.
    pub(crate) fn finish(&self, trailers: HeaderMap) {
        self.0.lock().trailers = Some(trailers);
        self.push(Bytes::new(), true);
    }

    /// The body will not be completed.
    pub(crate) fn fail(&self, what: &'static str) {
        let mut state = self.0.lock();
        if state.ended {
            return;
        }
        state.failed = Some(BodyError { what });
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.fail("the exchange is over");
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use http_body::Body as _;

    use super::*;

    #[test]
    fn a_reader_that_asks_until_it_has_to_wait_gets_a_part() {
        let (body, feed) = body(None, Waker::noop());
        let (mut body, mut cx) = (pin!(body), Context::from_waker(Waker::noop()));
        for _ in 0..3 {
            let mut got = 0;
            loop {
                feed.push(Bytes::from_static(&[0; 64 * 1024]), false);
                match body.as_mut().poll_frame(&mut cx) {
                    Poll::Ready(frame) => got += frame.unwrap().unwrap().into_data().unwrap().len(),
                    Poll::Pending => break,
                }
                assert!(got <= ROW_BYTES_MAX, "{got} bytes without a pause");
            }
            assert_eq!(got, ROW_BYTES_MAX);
        }
    }
}

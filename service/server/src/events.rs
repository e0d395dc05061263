//! Server-Sent Events (WHATWG HTML §9.2) that any thread sends.

use std::fmt::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, header};
use thiserror::Error;

use crate::{BodyStream, Pull, Request, Response, Waker};

/// Memory that waits for one client at most, in bytes, but for the event that exceeds it: a sender that is faster than its client
/// waits then.
const QUEUE_BYTES: usize = 64 * 1024;

/// An event: its data, and what else is known of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerEvent<'a> {
    /// Any text: each of its lines becomes one of the event.
    pub data: &'a str,
    /// Its type, where it is not `message`: one line.
    pub name: Option<&'a str>,
    /// Identifier of the event, which a client that connects again sends as `Last-Event-ID`: one line.
    pub id: Option<&'a str>,
    /// After how long a client that has lost the connection connects again.
    pub retry: Option<Duration>,
}

/// Why an event was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EventError {
    /// The client has gone, or the response is over.
    #[error("the client has gone")]
    Gone,
    /// More waits for the client than it takes.
    #[error("the client takes events more slowly than they are sent")]
    Full,
    /// A name or an id of more than one line can't be written.
    #[error("the name or the id of an event has a line break in it")]
    LineBreak,
}

#[derive(Debug, Default)]
struct Queue {
    text: BytesMut,
    /// The stream has found nothing, and waits.
    is_awaited: bool,
    is_closed: bool,
    is_gone: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    taken: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends events to one client, from any thread. The stream ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct EventSender(Arc<Sending>);

#[derive(Debug)]
struct Sending {
    shared: Arc<Shared>,
    waker: Waker,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.waker.wake();
    }
}

impl EventSender {
    /// Sends an event, and waits while too much waits for the client: not for the thread of a worker.
    ///
    /// # Errors
    ///
    /// [`EventError::Gone`] or [`EventError::LineBreak`].
    pub fn send(&self, event: ServerEvent<'_>) -> Result<(), EventError> {
        let mut queue = self.0.shared.lock();
        while !queue.is_gone && queue.text.len() >= QUEUE_BYTES {
            queue = self.0.shared.taken.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        self.push(queue, event)
    }

    /// Sends an event if there is room for it.
    ///
    /// # Errors
    ///
    /// [`EventError`] says why it was not sent.
    pub fn try_send(&self, event: ServerEvent<'_>) -> Result<(), EventError> {
        let queue = self.0.shared.lock();
        if !queue.is_gone && queue.text.len() >= QUEUE_BYTES {
            return Err(EventError::Full);
        }
        self.push(queue, event)
    }

    fn push(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        event: ServerEvent<'_>,
    ) -> Result<(), EventError> {
        if queue.is_gone {
            return Err(EventError::Gone);
        }
        write(&mut queue.text, event)?;
        if std::mem::take(&mut queue.is_awaited) {
            self.0.waker.wake();
        }
        Ok(())
    }
}

fn write(text: &mut BytesMut, event: ServerEvent<'_>) -> Result<(), EventError> {
    let lines = [("event", event.name), ("id", event.id)];
    if lines.iter().any(|(_, value)| value.is_some_and(|value| value.contains(['\r', '\n']))) {
        return Err(EventError::LineBreak);
    }
    for (name, value) in lines {
        if let Some(value) = value {
            // Writing to memory never fails.
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    if let Some(retry) = event.retry {
        let _ = writeln!(text, "retry: {}", retry.as_millis());
    }
    // A line may end with CR, LF or both: each kind begins a new one.
    for line in event.data.replace("\r\n", "\n").split(['\r', '\n']) {
        let _ = writeln!(text, "data: {line}");
    }
    text.extend_from_slice(b"\n");
    Ok(())
}

/// The body of the response.
#[derive(Debug)]
struct EventStream(Arc<Shared>);

impl BodyStream for EventStream {
    fn pull(&mut self, bytes_max: usize) -> Pull {
        let mut queue = self.0.lock();
        if queue.text.is_empty() {
            queue.is_awaited = !queue.is_closed;
            return if queue.is_closed { Pull::End } else { Pull::Pending };
        }
        let length = queue.text.len().min(bytes_max);
        let piece: Bytes = queue.text.split_to(length).freeze();
        drop(queue);
        self.0.taken.notify_all();
        Pull::Data(piece)
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.0.lock().is_gone = true;
        self.0.taken.notify_all();
    }
}

impl Request<'_> {
    /// A response that is a stream of Server-Sent Events, and what sends them.
    ///
    /// ```
    /// use std::thread;
    /// use bolide_server::{Request, Response, Router, ServerEvent};
    ///
    /// fn ticks(request: &mut Request<'_>) -> Response {
    ///     let (events, response) = request.events();
    ///     thread::spawn(move || {
    ///         for number in 0..3 {
    ///             let data = number.to_string();
    ///             let event = ServerEvent { data: &data, name: Some("tick"), ..ServerEvent::default() };
    ///             // An error says that the client has gone.
    ///             if events.send(event).is_err() {
    ///                 break;
    ///             }
    ///         }
    ///     });
    ///     response
    /// }
    /// assert!(Router::new().get("/ticks", ticks).check().is_ok());
    /// ```
    #[must_use]
    pub fn events(&self) -> (EventSender, Response) {
        let shared = Arc::new(Shared::default());
        let sending = Sending { shared: Arc::clone(&shared), waker: self.waker() };
        let response = Response::stream(EventStream(shared))
            .header(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))
            .header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        (EventSender(Arc::new(sending)), response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(event: ServerEvent<'_>) -> Result<String, EventError> {
        let mut text = BytesMut::new();
        write(&mut text, event)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn an_event_is_written_line_by_line() {
        let data = "one\r\ntwo\rthree\n";
        let retry = Some(Duration::from_secs(2));
        let event = ServerEvent { data, name: Some("tick"), id: Some("7"), retry };
        let expected =
            "event: tick\nid: 7\nretry: 2000\ndata: one\ndata: two\ndata: three\ndata: \n\n";
        assert_eq!(text(event).unwrap(), expected);
        assert_eq!(text(ServerEvent::default()).unwrap(), "data: \n\n");
    }

    #[test]
    fn names_and_ids_have_one_line() {
        for bad in ["a\nb", "a\rdata: b"] {
            let named = ServerEvent { name: Some(bad), ..ServerEvent::default() };
            let identified = ServerEvent { id: Some(bad), ..ServerEvent::default() };
            assert_eq!(text(named), Err(EventError::LineBreak));
            assert_eq!(text(identified), Err(EventError::LineBreak));
        }
    }
}

//! HTML §9.2.2, §9.2.3: a stream of events that is asked for again when it breaks off.

use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderName, StatusCode};

use super::parser::{Event, EventParser};
use crate::limits::{
    EVENT_REDIRECTS_COUNT, RECONNECT_DELAY, RECONNECT_DELAY_MAX, RECONNECT_DELAY_MIN,
    RECONNECTS_COUNT,
};
use crate::{ClientError, ErrorKind, Request, Response};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Reads events, and asks for the stream again with `Last-Event-ID` when it breaks off or ends.
///
/// It is an iterator that waits for each event. It ends when the server says 204, and after an error that
/// another attempt would not help: a status other than 200, a body that is no event stream, or as many
/// failures in a row as are borne. A stream that ends without an event is a failure too; an event ends the row.
/// A stream may be quiet for as long as it likes, unless [`pause`](Self::pause) says otherwise. Redirections are
/// followed.
///
/// ```no_run
/// use bolide_client::Client;
///
/// let client = Client::new()?;
/// for event in client.get("https://example.org/news").events() {
///     let event = event?;
///     println!("{}: {}", event.kind, event.data);
/// }
/// # Ok::<(), bolide_client::ClientError>(())
/// ```
#[derive(Debug)]
pub struct EventSource {
    /// Request that is repeated; `None` when it is over.
    request: Option<Request>,
    response: Option<Response>,
    parser: EventParser,
    /// The part of the stream that has come and is not read yet.
    piece: Bytes,
    delay: Duration,
    /// In a row.
    failures: u32,
    failures_max: u32,
    pause: Option<Duration>,
    has_asked: bool,
    /// An event has come of this response.
    has_spoken: bool,
}

impl Request {
    /// Reads the response as a stream of events, which is asked for again when it breaks off. A body from a
    /// reader can't be: that is an error.
    #[must_use]
    pub fn events(self) -> EventSource {
        EventSource {
            request: Some(self),
            response: None,
            parser: EventParser::new(),
            piece: Bytes::new(),
            delay: RECONNECT_DELAY,
            failures: 0,
            failures_max: RECONNECTS_COUNT,
            pause: None,
            has_asked: false,
            has_spoken: false,
        }
    }
}

impl EventSource {
    /// How long to wait before the stream is asked for again, until the server says otherwise. Default: 3 s.
    /// After several failures in a row, each wait is twice the one before, up to a minute.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay.min(RECONNECT_DELAY_MAX);
        self
    }

    /// After how many failures in a row it gives up. Default: 10.
    #[must_use]
    pub fn failures_max(mut self, failures: u32) -> Self {
        self.failures_max = failures;
        self
    }

    /// For how long a stream may be quiet before it counts as broken off, for servers that are known to send
    /// something now and then. Default: as long as it likes.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = Some(pause);
        self
    }

    /// The identifier of the last event.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.parser.last_event_id()
    }

    /// How long it waits before the next attempt.
    fn wait(&self) -> Duration {
        let said = self.parser.retry().map(|said| said.max(RECONNECT_DELAY_MIN));
        let delay = said.unwrap_or(self.delay);
        let doublings = self.failures.saturating_sub(1).min(16);
        delay.saturating_mul(1 << doublings).min(RECONNECT_DELAY_MAX)
    }

    /// Asks for the stream. `Ok(None)`: the server has no more.
    fn ask(&self, request: &Request) -> Result<Option<Response>, ClientError> {
        let mut request = request.again()?;
        request.fields.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        request.fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let id = self.parser.last_event_id();
        if !id.is_empty()
            && let Ok(id) = HeaderValue::from_bytes(id.as_bytes())
        {
            request.fields.insert(LAST_EVENT_ID, id);
        }
        request.redirects_max = Some(EVENT_REDIRECTS_COUNT);
        let mut response = request.send()?;
        response.set_pause(self.pause);
        let failed = |what: String| {
            let what = format!("{}: {what}", response.url());
            Err(ClientError::new(ErrorKind::Response, what).touched())
        };
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NO_CONTENT => return Ok(None),
            status => return failed(format!("{status} is not a stream of events")),
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("text/event-stream") {
            return failed(format!("`{kind}` is not a stream of events"));
        }
        Ok(Some(response))
    }

    /// Another attempt may follow, or this is the end.
    fn failed(&mut self, error: ClientError) -> Option<Result<Event, ClientError>> {
        self.failures += 1;
        let may_pass = matches!(
            error.kind(),
            ErrorKind::Resolve
                | ErrorKind::Connect
                | ErrorKind::Timeout
                | ErrorKind::Full
                | ErrorKind::Protocol
                | ErrorKind::Closed
        );
        if may_pass && self.failures < self.failures_max {
            return None;
        }
        self.request = None;
        Some(Err(error))
    }

    /// Reads on until an event is complete. `Ok(None)`: the stream has ended.
    fn read(&mut self, response: &mut Response) -> Result<Option<Event>, ClientError> {
        loop {
            let mut rest = &*self.piece;
            let event = self.parser.next_event(&mut rest).map_err(|error| {
                let what = format!("{}: {error}", response.url());
                ClientError::new(ErrorKind::Response, what).touched()
            })?;
            self.piece.advance(self.piece.len() - rest.len());
            if event.is_some() {
                return Ok(event);
            }
            // Its block is free while the next one is waited for.
            self.piece = Bytes::new();
            match response.chunk()? {
                Some(piece) => self.piece = piece,
                None => return Ok(None),
            }
        }
    }
}

impl Iterator for EventSource {
    type Item = Result<Event, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(mut response) = self.response.take() {
                match self.read(&mut response) {
                    Ok(Some(event)) => {
                        self.failures = 0;
                        self.has_spoken = true;
                        self.response = Some(response);
                        return Some(Ok(event));
                    }
                    Ok(None) if self.has_spoken => {}
                    Ok(None) => {
                        let what = format!("{}: the stream ended without an event", response.url());
                        let error = ClientError::new(ErrorKind::Closed, what).touched();
                        if let Some(end) = self.failed(error) {
                            return Some(end);
                        }
                    }
                    Err(error) => {
                        if let Some(end) = self.failed(error) {
                            return Some(end);
                        }
                    }
                }
                continue;
            }
            let request = self.request.take()?;
            if std::mem::replace(&mut self.has_asked, true) {
                std::thread::sleep(self.wait());
            }
            self.parser.restart();
            self.piece = Bytes::new();
            let asked = self.ask(&request);
            self.request = Some(request);
            match asked {
                Ok(Some(response)) => {
                    self.has_spoken = false;
                    self.response = Some(response);
                }
                Ok(None) => {
                    self.request = None;
                    return None;
                }
                Err(error) => {
                    if let Some(end) = self.failed(error) {
                        return Some(end);
                    }
                }
            }
        }
    }
}

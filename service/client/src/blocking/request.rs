//! RFC 9110 §3.4: what a caller asks for.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bolide_eventloop::Destination;
use bolide_semantics::Scheme;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::client::Client;
use super::error::{ClientError, ErrorKind};
use super::pending_request::{Patience, PendingRequest};
use super::response::Response;

/// The schemes of URLs that requests go to.
pub(crate) const SCHEMES: [Scheme; 3] = [Scheme::Http, Scheme::Https, Scheme::H2c];

/// Content behind the head.
pub(crate) enum Content {
    /// Nothing.
    None,
    /// These bytes; they can be sent again.
    Bytes(Bytes),
    /// Bytes that this yields, of the length that was said, if one was.
    Reader(Box<dyn Read + Send>),
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("None"),
            Self::Bytes(bytes) => write!(formatter, "Bytes({})", bytes.len()),
            Self::Reader(_) => formatter.write_str("Reader"),
        }
    }
}

/// A request that is being put together. It goes out by [`send`](Self::send), or by
/// [`start`](Self::start) when its body is to be written piece by piece.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    pub(crate) client: Client,
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) fields: HeaderMap,
    pub(crate) content: Content,
    pub(crate) via: Vec<Destination>,
    pub(crate) timeout: Option<Duration>,
    /// How many redirections are followed if the client follows none.
    pub(crate) redirects_max: Option<u32>,
    pub(crate) error: Option<ClientError>,
}

impl Client {
    /// A request with any method. `url` is `http://HOST/PATH`, `https://HOST/PATH`, or `h2c://HOST/PATH` for
    /// HTTP/2 over cleartext by prior knowledge.
    pub fn request(&self, method: Method, url: &str) -> Request {
        Request::new(self.clone(), method, url)
    }

    /// A GET request.
    pub fn get(&self, url: &str) -> Request {
        self.request(Method::GET, url)
    }

    /// A HEAD request.
    pub fn head(&self, url: &str) -> Request {
        self.request(Method::HEAD, url)
    }

    /// A POST request.
    pub fn post(&self, url: &str) -> Request {
        self.request(Method::POST, url)
    }

    /// A PUT request.
    pub fn put(&self, url: &str) -> Request {
        self.request(Method::PUT, url)
    }

    /// A DELETE request.
    pub fn delete(&self, url: &str) -> Request {
        self.request(Method::DELETE, url)
    }
}

impl Request {
    pub(crate) fn new(client: Client, method: Method, url: &str) -> Self {
        Self {
            client,
            method,
            url: url.to_owned(),
            fields: HeaderMap::new(),
            content: Content::None,
            via: Vec::new(),
            timeout: None,
            redirects_max: None,
            error: None,
        }
    }

    /// Adds a field line. A name or a value that can't be sent fails the request when it is sent.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                self.fields.append(name, value);
            }
            (Err(_), _) => self.refuse(format!("`{name}` is not a field name")),
            (_, Err(_)) => self.refuse(format!("the value of `{name}` can't stand in a field")),
        }
        self
    }

    /// Adds these field lines.
    pub fn headers(mut self, fields: &HeaderMap) -> Self {
        for (name, value) in fields {
            self.fields.append(name, value.clone());
        }
        self
    }

    fn refuse(&mut self, what: String) {
        self.error.get_or_insert_with(|| ClientError::new(ErrorKind::Request, what));
    }

    /// Sends these bytes as the body.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        self.content = Content::Bytes(bytes.into());
        self
    }

    /// Sends what `reader` yields as the body, as fast as the server takes it: a thread reads it, also while the
    /// response comes already. It can be sent only once: a redirection that repeats the body fails. Without a
    /// `content-length` field its length is open.
    pub fn body_reader(mut self, reader: impl Read + Send + 'static) -> Self {
        self.content = Content::Reader(Box::new(reader));
        self
    }

    /// Connects to this Unix socket, whatever the URL's host is.
    pub fn unix_socket(self, path: impl AsRef<Path>) -> Self {
        self.via([Destination::Unix(path.as_ref().into())])
    }

    /// Connects to the first of these places that takes connections, whatever the URL's host is; `Host` and
    /// the certificate's name are the URL's. With [`Destination::Datagrams`], HTTP/3 is spoken.
    pub fn via(mut self, destinations: impl IntoIterator<Item = Destination>) -> Self {
        self.via = destinations.into_iter().collect();
        self
    }

    /// How long everything may take, with redirections and until the end of the response's body. Default: as
    /// long as no phase takes longer than the client's [limits](crate::ClientLimits) say.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same request, to be sent once more.
    ///
    /// # Errors
    ///
    /// When its body can't be sent again.
    pub(crate) fn again(&self) -> Result<Self, ClientError> {
        let content = match &self.content {
            Content::None => Content::None,
            Content::Bytes(bytes) => Content::Bytes(bytes.clone()),
            Content::Reader(_) => {
                let what = "a body from a reader can't be sent again";
                return Err(ClientError::new(ErrorKind::Request, what));
            }
        };
        Ok(Self {
            client: self.client.clone(),
            method: self.method.clone(),
            url: self.url.clone(),
            fields: self.fields.clone(),
            content,
            via: self.via.clone(),
            timeout: self.timeout,
            redirects_max: self.redirects_max,
            error: self.error.clone(),
        })
    }

    /// Has the head say how the body is framed.
    pub(crate) fn frame(&mut self) {
        self.fields.remove(TRANSFER_ENCODING);
        match &self.content {
            Content::None => {
                if matches!(self.method, Method::POST | Method::PUT | Method::PATCH) {
                    self.fields.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
                } else {
                    self.fields.remove(CONTENT_LENGTH);
                }
            }
            Content::Bytes(bytes) => {
                self.fields.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            }
            Content::Reader(_) => {}
        }
    }

    /// Makes it a GET without a body (RFC 9110 §15.4).
    pub(crate) fn become_get(&mut self) {
        self.method = Method::GET;
        self.content = Content::None;
        self.fields.remove(CONTENT_LENGTH);
        self.fields.remove(CONTENT_TYPE);
    }
}

/// The body of a request that is under way.
///
/// Writing waits as long as the server does not take what was written. A server that answers as it reads may
/// take nothing more when its response is not read: then [`Self::response`] is to be read by another thread.
/// Dropped before [`Self::finish`] or [`Self::close`], it breaks the request off.
#[derive(Debug)]
pub struct BodyWriter {
    pub(crate) pending: Arc<PendingRequest>,
    pub(crate) client: Client,
    pub(crate) patience: Patience,
    pub(crate) room: usize,
    pub(crate) url: String,
    pub(crate) is_ended: bool,
    pub(crate) is_answered: bool,
}

impl BodyWriter {
    /// Sends one more piece. `Ok(false)`: the server has answered completely and wants no more.
    ///
    /// # Errors
    ///
    /// When the exchange is over, or the server takes nothing for too long.
    pub fn send(&mut self, piece: impl Into<Bytes>) -> Result<bool, ClientError> {
        self.pending.push(piece.into(), self.room, &self.patience)
    }

    /// Waits for the head of the response while the body has not ended. To be called once; the body is ended by
    /// [`Self::close`] then.
    ///
    /// # Errors
    ///
    /// When there is no response, or it was taken before.
    pub fn response(&mut self) -> Result<Response, ClientError> {
        if std::mem::replace(&mut self.is_answered, true) {
            let what = "the response was already taken";
            return Err(ClientError::new(ErrorKind::Request, what).touched());
        }
        let response = self.pending.answer(&self.patience);
        let response = response.map_err(|error| error.about(&self.url))?;
        Ok(Response::new(
            Arc::clone(&self.pending),
            response,
            self.client.clone(),
            self.patience,
            self.url.clone(),
        ))
    }

    /// Ends the body, with trailers if there are any, and waits for nothing.
    pub fn close(mut self, trailers: Option<HeaderMap>) {
        self.is_ended = true;
        self.pending.finish(trailers);
    }

    /// Ends the body and waits for the head of the response.
    ///
    /// # Errors
    ///
    /// When there is no response.
    pub fn finish(mut self) -> Result<Response, ClientError> {
        self.is_ended = true;
        self.pending.finish(None);
        self.response()
    }

    /// Ends the body with trailers, and waits for the head of the response.
    ///
    /// # Errors
    ///
    /// When there is no response.
    pub fn finish_with_trailers(mut self, trailers: HeaderMap) -> Result<Response, ClientError> {
        self.is_ended = true;
        self.pending.finish(Some(trailers));
        self.response()
    }
}

impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(self.room.max(1))];
        if self.send(Bytes::copy_from_slice(piece))? || piece.is_empty() {
            return Ok(piece.len());
        }
        Err(io::Error::new(io::ErrorKind::BrokenPipe, "the server wants no more of the body"))
    }

    /// Does nothing: what was written is under way already.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        if !self.is_ended {
            self.pending.abandon();
        }
    }
}

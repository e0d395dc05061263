//! RFC 9110 §3.4: what a server answers.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{HeaderMap, StatusCode, Version};

use super::client::Client;
use super::error::{ClientError, ErrorKind};
use super::pending_request::{Patience, PendingRequest, ResponseHead};

/// A response: its head, and its body as it arrives.
///
/// The body is read by [`std::io::Read`], by [`Self::chunk`], or at once by [`Self::collect`]. What is not read
/// stays with the server, as far as it goes beyond the receive window. Dropped before its end, it gives the
/// exchange up; with HTTP/1.1 the connection ends with it.
pub struct Response {
    pending: Arc<PendingRequest>,
    head: ResponseHead,
    /// The client's thread lives as long as a response is read.
    client: Client,
    patience: Patience,
    url: String,
    unread: Bytes,
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, head, .. } = self;
        formatter
            .debug_struct("Response")
            .field("url", url)
            .field("head", head)
            .finish_non_exhaustive()
    }
}

impl Response {
    pub(crate) fn new(
        pending: Arc<PendingRequest>,
        head: ResponseHead,
        client: Client,
        patience: Patience,
        url: String,
    ) -> Self {
        Self { pending, head, client, patience, url, unread: Bytes::new() }
    }

    /// From here on its body may pause for so long; `None`: as long as it likes.
    pub(crate) fn set_pause(&mut self, pause: Option<Duration>) {
        self.patience.pause = pause;
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The version that it came by.
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The field lines.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.head.fields
    }

    /// The value of the first field line with this name, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.fields.get(name)?.to_str().ok()
    }

    /// Returns what was asked for in the end, after redirections.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next piece of the body as it arrived: `None` at its end.
    ///
    /// # Errors
    ///
    /// When the response breaks off, or the server pauses for too long.
    pub fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        if !self.unread.is_empty() {
            return Ok(Some(std::mem::take(&mut self.unread)));
        }
        self.pending.piece(&self.patience).map_err(|error| error.touched().about(&self.url))
    }

    /// The rest of the body, up to the client's limit of
    /// [`collected_bytes`](crate::ClientLimits::collected_bytes).
    ///
    /// # Errors
    ///
    /// When it is longer, or breaks off.
    pub fn collect(&mut self) -> Result<Bytes, ClientError> {
        let limit = self.client.limits().collected_bytes;
        let Some(first) = self.chunk()? else { return Ok(Bytes::new()) };
        let mut collected = Vec::new();
        let mut next = Some(first);
        while let Some(piece) = next {
            if collected.len() + piece.len() > limit {
                let what = format!("{}: the response is longer than {limit} bytes", self.url);
                return Err(ClientError::new(ErrorKind::Response, what).touched());
            }
            collected.extend_from_slice(&piece);
            next = self.chunk()?;
        }
        Ok(collected.into())
    }

    /// The same as text.
    ///
    /// # Errors
    ///
    /// As [`Self::collect`], and when it is not UTF-8.
    pub fn text(&mut self) -> Result<String, ClientError> {
        let bytes = self.collect()?;
        String::from_utf8(bytes.into()).map_err(|_| {
            let what = format!("{}: the response is not UTF-8", self.url);
            ClientError::new(ErrorKind::Response, what).touched()
        })
    }

    /// The trailers, once the body was read to its end; `None` before that, and when there are none.
    #[must_use]
    pub fn trailers(&self) -> Option<HeaderMap> {
        let state = self.pending.lock();
        if state.down_ended && state.down.is_empty() { state.down_trailers.clone() } else { None }
    }
}

impl Read for Response {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if self.unread.is_empty() {
            match self.chunk()? {
                Some(piece) => self.unread = piece,
                None => return Ok(0),
            }
        }
        let count = into.len().min(self.unread.len());
        self.unread.copy_to_slice(&mut into[..count]);
        Ok(count)
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.pending.abandon();
    }
}

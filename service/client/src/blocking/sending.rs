//! RFC 9110 §9.2.2, §15.4: requests on their way, sent again where that is safe, and where responses lead.

use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

use bolide_eventloop::Destination;
use bolide_semantics::{Scheme, Url};
use bytes::{Bytes, BytesMut};
use http::Method;
use http::header::USER_AGENT;

use super::client::{Client, Redirects, Versions};
use super::error::{ClientError, ErrorKind};
use super::pending_request::{Command, Job, Origin, Patience, PendingRequest, RequestHead};
use super::redirect;
use super::request::{BodyWriter, Content, Request, SCHEMES};
use super::response::Response;

/// How large the pieces are that a body is read in, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

impl Request {
    /// Sends the request and waits for the head of the response.
    ///
    /// # Errors
    ///
    /// [`ClientError`] says what went wrong, and whether the request may be sent again. A response with any
    /// status is a response, not an error.
    pub fn send(self) -> Result<Response, ClientError> {
        self.client.clone().carry_out(self)
    }

    /// Begins the request and returns what its body is written to, which waits for no response. Redirections are
    /// not followed, and nothing is sent again.
    ///
    /// # Errors
    ///
    /// [`ClientError`] says what went wrong.
    pub fn start(self) -> Result<BodyWriter, ClientError> {
        self.client.clone().begin(self)
    }
}

impl Client {
    fn patience(&self, latest: Option<Instant>) -> Patience {
        let limits = self.limits();
        Patience {
            wait: limits.wait_timeout,
            response: limits.response_timeout,
            pause: Some(limits.pause_timeout),
            latest,
        }
    }

    /// Hands a request to the client's thread. `up`: its body, and whether that is all of it.
    fn hand_in(
        &self,
        request: &Request,
        target: &Url,
        up: Option<Bytes>,
        ends: bool,
        latest: Option<Instant>,
    ) -> Result<Arc<PendingRequest>, ClientError> {
        let mut destinations = if request.via.is_empty() {
            self.destinations(target, latest)?
        } else {
            request.via.clone()
        };
        if self.engine.settings.versions == Versions::Http3 {
            if target.scheme != Scheme::Https {
                let what = "HTTP/3 needs a URL with https";
                return Err(ClientError::new(ErrorKind::Request, what));
            }
            for destination in &mut destinations {
                if let Destination::Inet(address) = *destination {
                    *destination = Destination::Datagrams(address);
                }
            }
        }
        let (dial, is_prior) = self.dial(target)?;
        let mut fields = request.fields.clone();
        if let Some(name) = &self.engine.settings.user_agent {
            fields.entry(USER_AGENT).or_insert_with(|| name.clone());
        }
        let head = RequestHead {
            method: request.method.clone(),
            scheme: target.scheme.of_requests().name(),
            authority: target.authority(),
            path: target.path.clone(),
            fields,
        };
        let pending = Arc::new(PendingRequest::new(head, up, ends, Arc::clone(&self.engine.post)));
        let origin = Origin {
            is_tls: target.scheme == Scheme::Https,
            is_prior,
            host: target.host.to_ascii_lowercase(),
            port: target.port(),
            via: request.via.clone(),
        };
        let job = Job { origin, dial, destinations, pending: Arc::clone(&pending) };
        self.engine.post.send(Command::Begin(Box::new(job)));
        Ok(pending)
    }

    /// Sends a request, follows where it leads, and waits for the head of the response.
    fn carry_out(&self, mut request: Request) -> Result<Response, ClientError> {
        let latest = request.timeout.map(|timeout| Instant::now() + timeout);
        let mut target = checked(&mut request)?;
        let mut redirections = 0;
        loop {
            request.frame();
            let about = |error: ClientError| error.about(&target.to_string());
            let response = self.ask(&mut request, &target, latest).map_err(about)?;
            let count_max = match (self.engine.settings.redirects, request.redirects_max) {
                (Redirects::Follow { count_max }, _) => count_max,
                (Redirects::Return, Some(count_max)) => count_max,
                (Redirects::Return, None) => return Ok(response),
            };
            let Some(next) = redirect::next(&mut request, &target, &response)? else {
                return Ok(response);
            };
            redirections += 1;
            if redirections > count_max {
                let what = format!("more than {count_max} redirections");
                return Err(about(ClientError::new(ErrorKind::Redirect, what).touched()));
            }
            target = next;
        }
    }

    /// One request and its response; sent again where that is safe.
    fn ask(
        &self,
        request: &mut Request,
        target: &Url,
        latest: Option<Instant>,
    ) -> Result<Response, ClientError> {
        let is_idempotent = request.method.is_idempotent();
        let mut retries_left = self.limits().retries_count;
        loop {
            let patience = self.patience(latest);
            let answered = match &mut request.content {
                Content::Reader(reader) => {
                    let mut reader = std::mem::replace(reader, Box::new(std::io::empty()));
                    let pending = self.hand_in(request, target, None, false, latest)?;
                    let (room, sender) = (self.limits().upload_bytes, Arc::clone(&pending));
                    let pumping = std::thread::Builder::new().name("bolide-upload".into());
                    pumping.spawn(move || pump(&mut reader, &sender, room, &patience)).map_err(
                        |error| {
                            pending.abandon();
                            ClientError::new(ErrorKind::Body, format!("no thread: {error}"))
                        },
                    )?;
                    retries_left = 0;
                    pending.answer(&patience).map(|response| (pending, response))
                }
                content => {
                    let up = match content {
                        Content::Bytes(bytes) => Some(bytes.clone()),
                        _ => None,
                    };
                    let pending = self.hand_in(request, target, up, true, latest)?;
                    pending.answer(&patience).map(|response| (pending, response))
                }
            };
            match answered {
                Ok((pending, response)) => {
                    let client = self.clone();
                    return Ok(Response::new(
                        pending,
                        response,
                        client,
                        patience,
                        target.to_string(),
                    ));
                }
                Err(error) => {
                    if error.kind() == ErrorKind::Connect {
                        self.engine.addresses.forget(target);
                    }
                    let is_safe = matches!(error.kind(), ErrorKind::Closed)
                        && (error.is_retry_safe() || (is_idempotent && error.unanswered));
                    if !is_safe || retries_left == 0 {
                        return Err(error);
                    }
                    retries_left -= 1;
                }
            }
        }
    }

    /// Begins a request whose body is to be written.
    fn begin(&self, mut request: Request) -> Result<BodyWriter, ClientError> {
        let latest = request.timeout.map(|timeout| Instant::now() + timeout);
        let target = checked(&mut request)?;
        request.content = Content::Reader(Box::new(std::io::empty()));
        request.frame();
        let about = |error: ClientError| error.about(&target.to_string());
        let pending = self.hand_in(&request, &target, None, false, latest).map_err(about)?;
        Ok(BodyWriter {
            pending,
            client: self.clone(),
            patience: self.patience(latest),
            room: self.limits().upload_bytes,
            url: target.to_string(),
            is_ended: false,
            is_answered: false,
        })
    }
}

/// Returns where a request goes, if it can be sent at all.
fn checked(request: &mut Request) -> Result<Url, ClientError> {
    if let Some(error) = request.error.take() {
        return Err(error);
    }
    if request.method == Method::CONNECT {
        let what = "CONNECT is not supported: it is for proxies";
        return Err(ClientError::new(ErrorKind::Request, what));
    }
    Url::parse(&request.url, &SCHEMES)
        .map_err(|error| ClientError::new(ErrorKind::Request, error.to_string()))
}

/// Sends what `reader` yields, as far as the server wants it.
fn pump(reader: &mut dyn Read, pending: &Arc<PendingRequest>, room: usize, patience: &Patience) {
    loop {
        let mut piece = BytesMut::zeroed(PIECE_BYTES);
        let count = match reader.read(&mut piece) {
            Ok(0) => return pending.finish(None),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let what = format!("the request's body can't be read: {error}");
                return pending.give_up(ClientError::new(ErrorKind::Body, what).touched());
            }
        };
        piece.truncate(count);
        // The response may have come before the body was wanted; of an error, the caller is told.
        if !pending.push(piece.freeze(), room, patience).unwrap_or(false) {
            return;
        }
    }
}

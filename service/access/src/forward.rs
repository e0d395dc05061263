//! Forward authentication: another server says who may pass.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bolide_client::{Client, ClientError};
use bolide_semantics::{Scheme, Url, is_hop_by_hop};
use bolide_server::{
    FieldName, Handler, HeaderMap, HeaderName, HeaderValue, Offload, OffloadLimits, Reply, Request,
    Responder, Response, StatusCode,
};

use crate::basic::AuthError;
use crate::limits::{
    FORWARD_BODY_BYTES, FORWARD_THREADS_COUNT, FORWARD_TIMEOUT, FORWARD_WAITING_COUNT,
};
use crate::user;

/// Fields of a request that say who its sender is.
const SENT: [&str; 8] = [
    "authorization",
    "cookie",
    "accept",
    "accept-language",
    "origin",
    "user-agent",
    "traceparent",
    "x-request-id",
];

/// Server that is asked about requests, and the fields that its response adds to them.
#[derive(Debug)]
pub struct ForwardAuth {
    url: String,
    copied: Vec<HeaderName>,
    /// The field that names the user.
    user: Option<HeaderName>,
    timeout: Duration,
    waiting: AtomicUsize,
    /// Of this server alone, so that a slow one delays no request of another route.
    threads: Offload,
}

/// Fields that a request gets.
type Given = Arc<Mutex<Granted>>;

/// Statement of the other server about a request.
#[derive(Debug, Default)]
struct Granted {
    fields: Vec<(HeaderName, HeaderValue)>,
    user: Option<String>,
}

impl ForwardAuth {
    /// Requests are asked about by a GET of this URL.
    ///
    /// # Errors
    ///
    /// It is not a URL that begins with `http://` or `https://`.
    pub fn new(url: &str) -> Result<Self, AuthError> {
        Url::parse(url, &Scheme::HTTP).map_err(|error| AuthError(error.to_string()))?;
        let (url, copied, waiting) = (url.to_owned(), Vec::new(), AtomicUsize::new(0));
        let offload_threads_count = FORWARD_THREADS_COUNT;
        let threads =
            Offload::new(OffloadLimits { offload_threads_count, ..OffloadLimits::default() });
        Ok(Self { url, copied, user: None, timeout: FORWARD_TIMEOUT, waiting, threads })
    }

    /// The same with fields that a request gets from the response that lets it pass; from clients it never has them.
    #[must_use]
    pub fn copied(self, copied: Vec<HeaderName>) -> Self {
        Self { copied, ..self }
    }

    /// The same with a field of that response that names the user, for the access log. Default: none.
    #[must_use]
    pub fn user(self, name: HeaderName) -> Self {
        Self { user: Some(name), ..self }
    }

    /// The same with another deadline. Default: [`FORWARD_TIMEOUT`].
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The handler with this before it.
    pub(crate) fn guard(self: &Arc<Self>, handler: Rc<dyn Handler>) -> Asking {
        Asking { auth: Arc::clone(self), handler }
    }

    /// Returns what the other server is sent of a request.
    fn fields(request: &Request<'_>) -> HeaderMap {
        let mut fields = HeaderMap::new();
        let mut add = |name: &'static str, value: &[u8]| {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                fields.insert(name, value);
            }
        };
        let head = request.head();
        for name in SENT {
            // HTTP/2 may send cookies in several fields (RFC 9113 §8.2.3).
            let values: Vec<&[u8]> =
                head.fields().filter(|field| field.name == name).map(|field| field.value).collect();
            if !values.is_empty() {
                let between: &[u8] = if name == "cookie" { b"; " } else { b", " };
                add(name, &values.join(between));
            }
        }
        add("x-forwarded-method", head.method().as_str().as_bytes());
        add("x-forwarded-proto", request.scheme().as_bytes());
        add("x-forwarded-uri", head.path_and_query().as_bytes());
        if let Some(host) = request.client_authority() {
            add("x-forwarded-host", host.as_bytes());
        }
        if let Some(client) = request.client() {
            add("x-forwarded-for", client.to_string().as_bytes());
        }
        fields
    }

    /// Sends the question, and reads the response.
    fn ask(
        &self,
        fields: &HeaderMap,
        deadline: Instant,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), Failed> {
        let client = client()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failed);
        }
        let mut response = client.get(&self.url).headers(fields).timeout(left).send()?;
        let mut body = Vec::new();
        if !response.status().is_success() {
            while let Some(piece) = response.chunk()? {
                if body.len() + piece.len() > FORWARD_BODY_BYTES {
                    return Err(Failed);
                }
                body.extend_from_slice(&piece);
            }
        }
        Ok((response.status(), response.headers().clone(), body))
    }

    /// Passes the request on or responds to it, as the other server says.
    fn decide(&self, fields: &HeaderMap, deadline: Instant, responder: Responder, given: &Given) {
        match self.ask(fields, deadline) {
            Ok((status, fields, _)) if status.is_success() => {
                let of = |name: &HeaderName| {
                    fields
                        .get_all(name)
                        .iter()
                        .map(|value| (name.clone(), value.clone()))
                        .collect::<Vec<_>>()
                };
                let user = self.user.as_ref().and_then(|name| fields.get(name));
                let user = user.map(|user| String::from_utf8_lossy(user.as_bytes()).into_owned());
                *given.lock().unwrap_or_else(PoisonError::into_inner) =
                    Granted { fields: self.copied.iter().flat_map(of).collect(), user };
                responder.pass_on();
            }
            Ok((status, fields, body)) => responder.respond(as_it_is(status, fields, body)),
            Err(Failed) => responder.respond(StatusCode::BAD_GATEWAY),
        }
    }
}

/// The memory of these fields, in bytes.
fn allocated_bytes(fields: &HeaderMap) -> usize {
    /// Of one field in the map: a name, a value, its hash and its place.
    const EACH_BYTES: usize = 112;
    fields.capacity() * EACH_BYTES + fields.values().map(HeaderValue::len).sum::<usize>()
}

/// The other server did not say.
struct Failed;

impl From<ClientError> for Failed {
    fn from(_: ClientError) -> Self {
        Self
    }
}

/// One for the process, made when it is needed first.
fn client() -> Result<&'static Client, Failed> {
    static CLIENT: OnceLock<Result<Client, ClientError>> = OnceLock::new();
    CLIENT.get_or_init(Client::new).as_ref().map_err(|_| Failed)
}

/// The other server's response, for the client.
fn as_it_is(status: StatusCode, mut fields: HeaderMap, body: Vec<u8>) -> Response {
    let named: Vec<HeaderName> = fields
        .get_all("connection")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    named.iter().for_each(|name| drop(fields.remove(name)));
    let is_ours = |name: &HeaderName| {
        FieldName::lookup(name.as_str().as_bytes()).is_some_and(|known| {
            is_hop_by_hop(known)
                || matches!(known, FieldName::ContentLength | FieldName::Trailer | FieldName::Date)
        })
    };
    let ours: Vec<HeaderName> = fields.keys().filter(|name| is_ours(name)).cloned().collect();
    ours.iter().for_each(|name| drop(fields.remove(name)));
    Response::new(status).fields(fields).own_body(body)
}

/// A handler of requests that another server lets pass.
pub(crate) struct Asking {
    auth: Arc<ForwardAuth>,
    handler: Rc<dyn Handler>,
}

/// One of those who wait.
struct Waiting(Arc<ForwardAuth>);

impl Waiting {
    fn new(auth: &Arc<ForwardAuth>) -> Option<Self> {
        let before = auth.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Self(Arc::clone(auth));
        (before < FORWARD_WAITING_COUNT).then_some(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Handler for Asking {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        // Two could mean one thing there, and another one behind.
        if request.head().get_all(FieldName::Authorization).nth(1).is_some() {
            return Response::error(StatusCode::BAD_REQUEST).into();
        }
        let Some(waiting) = Waiting::new(&self.auth) else { return busy().into() };
        let fields = ForwardAuth::fields(request);
        let deadline = request.now() + self.auth.timeout;
        let (responder, given) = (request.responder(), Given::default());
        let next = Passed {
            auth: Arc::clone(&self.auth),
            asked_bytes: allocated_bytes(&fields),
            given: Arc::clone(&given),
            handler: Rc::clone(&self.handler),
        };
        // Without a thread the responder is dropped, which is a 500.
        let _ = self
            .auth
            .threads
            .resume(move || waiting.0.decide(&fields, deadline, responder, &given));
        Reply::LaterOr(Rc::new(next))
    }

    fn takes(&self, path: &str) -> bool {
        self.handler.takes(path)
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.handler.body_bytes_max()
    }
}

/// The handler of one request, with the fields that the other server gives.
struct Passed {
    auth: Arc<ForwardAuth>,
    /// Memory that the question keeps until it is answered.
    asked_bytes: usize,
    given: Given,
    handler: Rc<dyn Handler>,
}

impl Handler for Passed {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = &given.user {
            user::note(request, name);
        }
        if self.auth.copied.is_empty() {
            drop(given);
            return self.handler.handle(request);
        }
        let mut head = request.head().clone();
        // Some servers take an underscore for a hyphen.
        let is_one = |own: &HeaderName, name: &str| {
            own.as_str().bytes().eq(name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte }))
        };
        head.retain_fields(|name| !self.auth.copied.iter().any(|own| is_one(own, name)));
        for (name, value) in &given.fields {
            head.append(name.as_str(), value.as_bytes());
        }
        drop(given);
        request.with_head(&head, |request| self.handler.handle(request))
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.handler.body_bytes_max()
    }

    fn held_bytes(&self) -> usize {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let user = given.user.as_ref().map_or(0, String::len);
        let own = size_of::<Self>() + size_of::<Granted>() + self.asked_bytes;
        own + user + given.fields.iter().map(|(_, value)| value.len()).sum::<usize>()
    }
}

/// As many wait as may.
pub(crate) fn busy() -> Response {
    Response::error(StatusCode::SERVICE_UNAVAILABLE).header("retry-after", "1")
}

//! Checks before the handler of a route.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bolide_server::{
    FieldName, Handler, HeaderName, HeaderValue, Networks, Policy, Reply, Request, Response,
    ResponseFields, StatusCode,
};

use crate::bandwidth::{Bandwidth, SlowedContent};
use crate::basic::{BasicAuth, Checked};
use crate::concurrency::Concurrency;
use crate::forward::{ForwardAuth, busy};
use crate::rate::{RateLimit, Verdict};
use crate::user;

/// A client certificate that a route takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedCertificate {
    /// The SHA-256 of the certificate.
    Fingerprint([u8; 32]),
    /// The subject as RFC 4514 writes it, such as `CN=alice,O=Example`.
    Subject(String),
}

/// Conditions for the clients of a route, and limits of their requests. Default: everyone, as many as they like.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// None: every address.
    pub allow: Option<Networks>,
    /// They win over `allow`.
    pub deny: Networks,
    /// Certificates one of which the client must have shown; an empty list: any that the listener accepts.
    pub certificates: Option<Vec<AllowedCertificate>>,
    /// How many requests a client may send; shared by all workers.
    pub rate: Option<Arc<RateLimit>>,
    /// How fast content goes to a client; shared by all workers.
    pub bandwidth: Option<Arc<Bandwidth>>,
    /// How fast content of requests is taken from a client; shared by all workers.
    pub upload_bandwidth: Option<Arc<Bandwidth>>,
    /// How many requests a client may have open; shared by all workers.
    pub concurrency: Option<Arc<Concurrency>>,
    /// Users, one of whose passwords a client must know; shared by all workers.
    pub basic: Option<Arc<BasicAuth>>,
    /// Another server that lets requests pass, or does not; shared by all workers.
    pub forward: Option<Arc<ForwardAuth>>,
}

impl Access {
    /// Returns whether everyone may send as many requests as they like.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.allow.is_none()
            && self.deny.is_empty()
            && self.certificates.is_none()
            && self.rate.is_none()
            && self.bandwidth.is_none()
            && self.upload_bandwidth.is_none()
            && self.concurrency.is_none()
            && self.basic.is_none()
            && self.forward.is_none()
    }

    /// The handler with this before it.
    #[must_use]
    pub fn guard(&self, handler: impl Handler) -> Guarded {
        let handler: Rc<dyn Handler> = Rc::new(handler);
        let handler = match &self.forward {
            Some(forward) => Rc::new(forward.guard(handler)),
            None => handler,
        };
        Guarded { access: self.clone(), handler }
    }

    /// The response to a request that does not get through.
    fn refuse(&self, request: &Request<'_>) -> Option<Response> {
        let forbidden = || Some(Response::error(StatusCode::FORBIDDEN));
        if self.allow.is_some() || !self.deny.is_empty() {
            let client = request.client();
            let is_allowed = self.allow.as_ref().is_none_or(|allow| allow.contains(client));
            if !is_allowed || self.deny.contains(client) {
                return forbidden();
            }
        }
        if let Some(certificates) = &self.certificates {
            let facts = request.tls_shared();
            let shown = facts.as_ref().and_then(|facts| facts.client.as_ref());
            let is_one = |allowed: &AllowedCertificate| match allowed {
                AllowedCertificate::Fingerprint(fingerprint) => {
                    shown.is_some_and(|shown| shown.fingerprint == *fingerprint)
                }
                AllowedCertificate::Subject(subject) => {
                    shown.is_some_and(|shown| shown.subject == *subject)
                }
            };
            if shown.is_none() || !(certificates.is_empty() || certificates.iter().any(is_one)) {
                return forbidden();
            }
        }
        if let Some(bandwidth) = &self.bandwidth {
            bandwidth.apply(request, SlowedContent::Response);
        }
        if let Some(bandwidth) = &self.upload_bandwidth {
            bandwidth.apply(request, SlowedContent::Request);
        }
        if let Some(concurrency) = &self.concurrency {
            let Some(open) = concurrency.begin(request) else { return Some(too_many_open()) };
            request.set_policy(Rc::new(open));
        }
        let rate = self.rate.as_ref()?;
        match rate.count_request(request) {
            Verdict::Passes { left, more_in } => {
                request.set_policy(Rc::new(RateFields::new(rate, left, more_in)));
                None
            }
            Verdict::Refused(wait) => {
                request.set_policy(Rc::new(RateFields::new(rate, 0, wait)));
                let response = Response::error(StatusCode::TOO_MANY_REQUESTS);
                Some(response.header("retry-after", seconds(wait).to_string()))
            }
        }
    }
}

/// RFC 6585 §4: as many requests of the client are open as may be.
fn too_many_open() -> Response {
    Response::error(StatusCode::TOO_MANY_REQUESTS).header("retry-after", "1")
}

/// Seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Fields that tell a client of a rate limit, whatever the response is (draft-ietf-httpapi-ratelimit-headers-10).
#[derive(Debug)]
struct RateFields {
    policy: HeaderValue,
    state: HeaderValue,
}

static RATE_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static RATE_STATE: HeaderName = HeaderName::from_static("ratelimit");

impl RateFields {
    /// So many requests are left, and one more after this time.
    fn new(rate: &RateLimit, left: u32, more_in: Duration) -> Self {
        let state = format!("\"client\";r={left};t={}", seconds(more_in));
        // Digits and quotes are a value.
        let state = HeaderValue::try_from(state).unwrap_or_else(|_| HeaderValue::from_static(""));
        Self { policy: rate.policy(), state }
    }
}

impl Policy for RateFields {
    fn edit<'p>(&'p self, fields: &mut ResponseFields<'p>) {
        fields.add(&RATE_POLICY, &self.policy);
        fields.add(&RATE_STATE, &self.state);
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.state.len()
    }
}

/// A handler that only those reach who may.
#[derive(Clone)]
pub struct Guarded {
    access: Access,
    handler: Rc<dyn Handler>,
}

impl std::fmt::Debug for Guarded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Guarded").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Handler for Guarded {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        if let Some(response) = self.access.refuse(request) {
            return response.into();
        }
        let Some(basic) = &self.access.basic else { return self.handler.handle(request) };
        match basic.check(request.head().get(FieldName::Authorization), request.now()) {
            Checked::Right(name) => {
                user::note(request, &name);
                self.handler.handle(request)
            }
            Checked::Wrong => basic.unauthorized().into(),
            Checked::Unknown(credentials) => {
                let user = credentials.user.clone();
                if basic.verify(credentials, request.client(), || request.responder()) {
                    let handler = Rc::clone(&self.handler);
                    return Reply::LaterOr(Rc::new(user::Of { user, handler }));
                }
                busy().into()
            }
        }
    }

    fn takes(&self, path: &str) -> bool {
        self.handler.takes(path)
    }

    /// Returns false where something has to be waited for, first or for each piece: the body comes later.
    fn takes_whole_bodies(&self) -> bool {
        let waits = self.access.basic.is_some() || self.access.upload_bandwidth.is_some();
        !waits && self.handler.takes_whole_bodies()
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.handler.body_bytes_max()
    }
}

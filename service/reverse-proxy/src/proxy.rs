//! The handler.

use std::cell::RefCell;
use std::rc::Rc;

use bolide_semantics::has_dot_segment;
use bolide_server::{Handler, Method, Reply, Request, Response, StatusCode};

use crate::failure::Failure;
use crate::forwarded_request::ForwardedRequest;
use crate::outgoing;
use crate::shared_exchange::{Flow, SharedExchange};
use crate::tunnels::Wish;
use crate::worker::Worker;
use crate::{DotSegments, ProxySettings};

/// Answers requests with what an upstream says: one for each worker.
///
/// ```no_run
/// use bolide_reverse_proxy::{ProxySettings, ReverseProxy, Upstream};
/// use bolide_server::{Router, Server};
///
/// let settings = ProxySettings::new(vec![Upstream::parse("http://127.0.0.1:9000")?])?;
/// Server::new()
///     .http("127.0.0.1:8080")
///     .run(move || Router::new().fallback(ReverseProxy::new(&settings)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Fields that concern one connection end at the proxy; `Via`, and what [`Origin`](crate::Origin) says, are
/// added. Request bodies of any length pass, for they are not kept. When no upstream answers, the client gets a
/// 502, 503 or 504 with the reason in `Proxy-Status` (RFC 9209). A request is repeated only when the upstream
/// has certainly not acted on it, or when it is idempotent and no response has begun; and never once some of its
/// body has left.
#[derive(Debug)]
pub struct ReverseProxy {
    worker: Rc<Worker>,
}

/// Methods that are allowed (RFC 9110 §10.2.1): TRACE would show what the proxy adds.
const ALLOWED: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

/// A reverse proxy chooses where requests go: CONNECT to a host and a port of the client's choice
/// (RFC 9110 §9.3.6) would make it an open door, and HTTP in a tunnel passes by all that it reads.
const NO_FORWARD_PROXY: &str = "bolide; error=http_request_denied; details=\"this is a reverse proxy: \
     CONNECT without a protocol, or with one that is HTTP or TLS, goes nowhere\"";

/// RFC 3986 §6.2.2.3: clients resolve dot segments. Routes are chosen by the path as it is sent, so an upstream that resolves
/// them could be asked for what no route leads to.
const NO_DOT_SEGMENTS: &str =
    "bolide; error=http_request_error; details=\"the path has a dot segment\"";

impl ReverseProxy {
    /// A worker's part of a proxy. Its connections are made when requests need them.
    #[must_use]
    pub fn new(settings: &ProxySettings) -> Self {
        Self { worker: Rc::new(Worker::new(settings)) }
    }
}

impl Drop for ReverseProxy {
    fn drop(&mut self) {
        self.worker.retire();
    }
}

impl Handler for ReverseProxy {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        match *request.method() {
            Method::CONNECT if !request.head().protocol().is_some_and(outgoing::passes) => {
                return Response::error(StatusCode::NOT_IMPLEMENTED)
                    .header("proxy-status", NO_FORWARD_PROXY)
                    .into();
            }
            Method::TRACE => {
                let response = Response::error(StatusCode::METHOD_NOT_ALLOWED);
                return response.header("allow", ALLOWED).into();
            }
            Method::OPTIONS if outgoing::hops_left(request.head()) == Some(0) => {
                let response = Response::new(StatusCode::NO_CONTENT);
                return response.header("allow", ALLOWED).into();
            }
            _ => {}
        }
        let settings = &self.worker.settings;
        if settings.pseudonym.is_in(request.head()) {
            self.worker.looped(request.now());
            return Failure::LOOP.response().into();
        }
        let refuses_dots = settings.dot_segments == DotSegments::Refuse;
        if refuses_dots && has_dot_segment(request.path().as_bytes()) {
            let response = Response::error(StatusCode::BAD_REQUEST);
            return response.header("proxy-status", NO_DOT_SEGMENTS).into();
        }
        let mut head = outgoing::head(request, settings.origin, &settings.pseudonym);
        let mut wish = Wish::of(request.head(), request.has_body()).map(Box::new);
        if let Some(wish) = &mut wish {
            wish.put_into(&mut head, self.worker.backends.borrow_mut().bytes());
        }
        let up = if request.has_body() { Flow::default() } else { Flow::none() };
        let state = Rc::new(RefCell::new(SharedExchange::new(head, up, wish)));
        Reply::Exchange(Box::new(ForwardedRequest::new(Rc::clone(&self.worker), state, request)))
    }

    fn body_bytes_max(&self) -> Option<u64> {
        Some(u64::MAX)
    }
}

//! Handlers of requests.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use bolide_semantics::{AbortReason, End, Head};
use bytes::Bytes;

use crate::{Io, Request, Response};

/// Answers requests of one route. One value per worker, so it needs no lock.
pub trait Handler: 'static {
    /// Answers at once, takes the exchange over, or promises a response for later.
    fn handle(&self, request: &mut Request<'_>) -> Reply;

    /// Returns whether it answers this path, by any method: a router that has no route for it does not, and what
    /// stands before answers as if nothing stood behind. Asked only of a handler that stands behind another.
    /// Default: `true`, every path.
    fn takes(&self, path: &str) -> bool {
        let _ = path;
        true
    }

    /// Returns whether a short body that has arrived with its head is handed over with the request, for
    /// [`Request::take_body`]. It is copied for that. Default: `false`.
    fn takes_whole_bodies(&self) -> bool {
        false
    }

    /// The largest request body, in bytes, if not the server's default.
    fn body_bytes_max(&self) -> Option<u64> {
        None
    }

    /// Called in place of [`Self::handle`] when the server refuses the request because of its body: the
    /// [policy](Request::set_policy) that is set here holds for that response. Default: none is set.
    fn on_refusal(&self, request: &mut Request<'_>) {
        let _ = request;
    }

    /// The memory that a handler of one request alone keeps because of it, in bytes. Default: 0, as for handlers of
    /// routes.
    fn held_bytes(&self) -> usize {
        0
    }

    /// The handlers among which each request has its own, if this stands for several. Asked when it becomes part of a
    /// [`Router`](crate::Router), and for each request after that. Default: `None`, it stands for itself.
    fn alternatives(&self) -> Option<&dyn Alternatives> {
        None
    }
}

/// Handlers with conditions that stand for one route.
pub trait Alternatives {
    /// The handler of this request. `None`: for this request, the route is not there, and other routes are looked for.
    fn of(&self, request: &Request<'_>) -> Option<&dyn Handler>;
}

impl<F, R> Handler for F
where
    F: Fn(&mut Request<'_>) -> R + 'static,
    R: Into<Reply>,
{
    #[inline]
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        self(request).into()
    }
}

/// Calls the handler, whose reply takes the place of `reply`: replies are large. False: it panicked, which is a 500 and
/// nothing more.
#[inline]
pub(crate) fn call(handler: &dyn Handler, request: &mut Request<'_>, reply: &mut Reply) -> bool {
    catch_unwind(AssertUnwindSafe(|| *reply = handler.handle(request))).is_ok()
}

/// Decision of a handler.
#[allow(
    clippy::large_enum_variant,
    reason = "most are responses, which a box would cost an allocation each"
)]
pub enum Reply {
    /// This is the response. What is left of the request's body is not looked at.
    Now(Response),
    /// The exchange goes on with this object: it reads the body, answers when it likes, streams.
    Exchange(Box<dyn Exchange>),
    /// A [`Responder`](crate::Responder) will answer. The request's body is discarded.
    Later,
    /// The same, or the responder [passes the request on](crate::Responder::pass_on) to this handler. The request's
    /// body waits for it: the client sends no more than its window allows.
    LaterOr(Rc<dyn Handler>),
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(response) => formatter.debug_tuple("Now").field(response).finish(),
            Self::Exchange(exchange) => formatter.debug_tuple("Exchange").field(exchange).finish(),
            Self::Later => formatter.write_str("Later"),
            Self::LaterOr(_) => formatter.write_str("LaterOr"),
        }
    }
}

impl<R: Into<Response>> From<R> for Reply {
    #[inline]
    fn from(response: R) -> Self {
        Self::Now(response.into())
    }
}

/// One exchange in the hands of its handler: the request's body arrives, orders go out through
/// [`Io`].
///
/// Everything happens on the worker's thread. Nothing is called after the response is complete.
pub trait Exchange: fmt::Debug {
    /// Returns whether a client that waits for `100 Continue` is told to go on before [`Self::on_start`].
    /// Otherwise [`Io::send_continue`] does so when the body is wanted.
    fn continues_at_once(&self) -> bool {
        true
    }

    /// Returns whether [`Self::on_client_end`] is wanted. Over HTTP/1.1 it costs reading ahead: at most one
    /// block of what the client sends before it has its response is kept.
    fn watches_client(&self) -> bool {
        false
    }

    /// The exchange begins. A client that waits for `100 Continue` has been told to go on.
    fn on_start(&mut self, io: &mut Io<'_>);

    /// A piece of the body, possibly empty when it is the last. Once used, report it with
    /// [`Io::consumed`], or the client will be stopped. The bytes share a large block: what is kept
    /// for long goes through [`bolide_buffers::detach`].
    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>);

    /// The body has ended with these trailers. The default treats it as an empty last piece.
    fn on_trailers(&mut self, trailers: &Head, io: &mut Io<'_>) {
        let _ = trailers;
        self.on_data(Bytes::new(), End::Yes, io);
    }

    /// [`Io::send`] takes the next piece.
    fn on_sendable(&mut self, io: &mut Io<'_>) {
        let _ = io;
    }

    /// A [`Waker`](crate::Waker) or [`LocalWaker`](crate::LocalWaker) of this exchange was used, or the time
    /// of [`Io::wake_at`] has come.
    fn on_wake(&mut self, io: &mut Io<'_>) {
        let _ = io;
    }

    /// The server is to end, or needs the connection's room: an exchange without an end of its own should
    /// come to one. The default does nothing: what is under way may finish.
    fn on_shut_down(&mut self, io: &mut Io<'_>) {
        let _ = io;
    }

    /// The client of an HTTP/1.1 connection has ended its side. Nearly always it is gone; one that
    /// only sends no more and still reads its response can't be told apart. Called once, when
    /// [`Self::watches_client`], and not for a tunnel, whose end is a last piece of data.
    fn on_client_end(&mut self, io: &mut Io<'_>) {
        let _ = io;
    }

    /// The memory that it keeps because of what its client sends, or does not take, in bytes: beyond its own size, and beyond data that is
    /// not [consumed](Io::consumed), which is the connection's. What all exchanges of a
    /// connection keep is bounded by `connection_held_bytes_max`.
    fn held_bytes(&self) -> usize {
        0
    }

    /// The client is gone, or has given the exchange up.
    fn on_abort(&mut self, reason: AbortReason) {
        let _ = reason;
    }
}

/// A handler that is called with what several share: a clone of `state`, such as an `Arc` or an `Rc`.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use bolide_server::{Router, with_state};
///
/// let visits = Arc::new(AtomicU64::new(0));
/// let routes = move || {
///     Router::new()
///         .get("/", with_state(&visits, |visits, _| format!("{}", visits.fetch_add(1, Ordering::Relaxed))))
///         .get("/visits", with_state(&visits, |visits, _| format!("{}", visits.load(Ordering::Relaxed))))
/// };
/// assert!(routes().check().is_ok());
/// ```
pub fn with_state<S, F, R>(
    state: &S,
    handle: F,
) -> impl for<'r, 'a> Fn(&'r mut Request<'a>) -> R + use<S, F, R>
where
    S: Clone + 'static,
    F: Fn(&S, &mut Request<'_>) -> R + 'static,
    R: Into<Reply>,
{
    let state = state.clone();
    move |request| handle(&state, request)
}

/// A handler that may read request bodies up to `bytes_max` bytes.
#[derive(Debug)]
pub struct BodyLimit<H> {
    bytes_max: u64,
    handler: H,
}

/// Lets `handler` read request bodies of up to `bytes_max` bytes, whatever the server's default.
pub fn body_limit<H: Handler>(bytes_max: u64, handler: H) -> BodyLimit<H> {
    BodyLimit { bytes_max, handler }
}

impl<H: Handler> Handler for BodyLimit<H> {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        self.handler.handle(request)
    }

    fn body_bytes_max(&self) -> Option<u64> {
        Some(self.bytes_max)
    }
}

//! One exchange that a service did not answer at once.

use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bolide_server::{AbortReason, Bytes, End, Exchange, Head, Io, Reply, Response, StatusCode};
use tower_service::Service;

use crate::body::{Body, Feed};
use crate::informational::Outlet;
use crate::panics::{Name, caught};
use crate::spare::Place;
use crate::translated::{self, Asked, Piece, Stream, Translated};
use crate::tunnel::{OFFER_BYTES, Offer, Tunnel};
use crate::wake::Ring;
use crate::worker::Worker;

/// How often an exchange that wakes itself is polled before the others get their turn.
const POLLS_COUNT: usize = 8;

/// A request on its way through a service.
pub(crate) struct Call<S: Service<http::Request<Body>>> {
    /// Until the service is ready.
    waiting: Option<(S, http::Request<Body>)>,
    future: Place<S::Future>,
}

impl<S: Service<http::Request<Body>>> Call<S> {
    /// One that has not begun, with a place for its future.
    #[inline]
    pub(crate) fn new(future: Place<S::Future>) -> Self {
        Self { waiting: None, future }
    }

    /// Gives the request to the service, if that is ready, and polls for the first time.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        mut service: S,
        request: http::Request<Body>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, S::Error>> {
        if service.poll_ready(cx)?.is_pending() {
            self.waiting = Some((service, request));
            return Poll::Pending;
        }
        self.future.put(service.call(request)).poll(cx)
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<S::Response, S::Error>> {
        if let Some((service, _)) = &mut self.waiting {
            ready!(service.poll_ready(cx))?;
        }
        if let Some((mut service, request)) = self.waiting.take() {
            return self.future.put(service.call(request)).poll(cx);
        }
        match self.future.get() {
            Some(future) => future.poll(cx),
            None => Poll::Pending,
        }
    }

    /// The place of the future, for the next one; the future is gone.
    #[inline]
    pub(crate) fn into_place(mut self) -> Place<S::Future> {
        self.future.clear();
        self.future
    }

    /// The future, if it has begun.
    fn into_future(self) -> Option<Place<S::Future>> {
        self.waiting.is_none().then_some(self.future)
    }
}

/// How far an exchange is.
pub(crate) enum Stage<S: Service<http::Request<Body>>, B> {
    /// The service is at work.
    Called(Call<S>),
    /// It has answered, and nothing of that was sent.
    Answered(Translated<B>),
    /// The rest of the body is sent.
    Streaming(Stream<B>),
    Tunnel(Tunnel),
    Over,
}

/// An exchange in the hands of a service.
pub(crate) struct Open<S: Service<http::Request<Body>>, B> {
    pub(crate) worker: Rc<Worker<S, B>>,
    pub(crate) ring: Ring,
    pub(crate) feed: Option<Feed>,
    pub(crate) asked: Asked,
    pub(crate) offer: Option<Offer>,
    /// For informational responses, until the response begins.
    pub(crate) outlet: Option<Outlet>,
    /// Name in the log.
    pub(crate) name: Name,
    pub(crate) stage: Stage<S, B>,
    /// The memory of the request, as the service has it: its head, and the body that came with it.
    pub(crate) request_bytes: usize,
}

impl<S: Service<http::Request<Body>>, B> fmt::Debug for Open<S, B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Called(_) => "called",
            Stage::Answered(_) => "answered",
            Stage::Streaming(_) => "streaming",
            Stage::Tunnel(_) => "tunnel",
            Stage::Over => "over",
        };
        formatter.debug_struct("Open").field("stage", &stage).finish_non_exhaustive()
    }
}

impl<S, B> Open<S, B>
where
    S: Service<http::Request<Body>, Response = http::Response<B>>,
    B: http_body::Body,
{
    fn attend(&mut self) {
        if let Some(feed) = &self.feed {
            feed.attend();
        }
    }

    /// Does `first`, which attends to the request's body, then polls what it, or another before it, has
    /// woken.
    fn turn(&mut self, io: &mut Io<'_>, due: bool, first: impl FnOnce(&mut Self)) {
        let mut due = self.ring.bell.state.begin() || due;
        first(self);
        let mut polls = 0;
        loop {
            if due {
                let waker = std::mem::replace(&mut self.ring.waker, Waker::noop().clone());
                let mut cx = Context::from_waker(&waker);
                let name = std::mem::take(&mut self.name);
                if caught(|| self.advance(&mut cx, io), || name.clone()).is_none() {
                    self.stage = Stage::Over;
                    io.respond(Response::error(StatusCode::INTERNAL_SERVER_ERROR));
                    io.abort();
                }
                self.name = name;
                self.ring.waker = waker;
            }
            due = self.ring.bell.state.end();
            if !due {
                break;
            }
            polls += 1;
            if polls == POLLS_COUNT {
                // It goes on waking itself: the others first.
                self.ring.bell.ask_for_turn();
                break;
            }
            self.ring.bell.state.begin();
        }
        if let Some(feed) = &self.feed {
            feed.leave(io);
        }
    }

    /// Goes as far as it can.
    fn advance(&mut self, cx: &mut Context<'_>, io: &mut Io<'_>) {
        if let Stage::Called(call) = &mut self.stage {
            let polled = call.poll(cx);
            if let Some(outlet) = &self.outlet {
                outlet.send(io);
            }
            let Poll::Ready(result) = polled else { return };
            let mut whole = Reply::Later;
            let rest = translated::translate(result, self.asked, cx, &self.worker, &mut whole);
            if let Stage::Called(call) = std::mem::replace(&mut self.stage, Stage::Over) {
                self.worker.futures.give(call.into_place());
            }
            self.stage = Stage::Answered(rest.unwrap_or(Translated::Whole(whole)));
        }
        if let Stage::Answered(_) = &self.stage {
            if let Some(outlet) = self.outlet.take() {
                outlet.send(io);
            }
            self.begin(io);
        }
        match &mut self.stage {
            Stage::Streaming(stream) => {
                if pump(stream, cx, io) {
                    self.stage = Stage::Over;
                }
            }
            Stage::Tunnel(tunnel) => tunnel.relay(cx, io),
            Stage::Called(_) | Stage::Answered(_) | Stage::Over => {}
        }
    }

    /// Sends the head.
    fn begin(&mut self, io: &mut Io<'_>) {
        let Stage::Answered(response) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return;
        };
        match response {
            Translated::Whole(Reply::Now(response)) => io.respond(response),
            Translated::Whole(_) => {}
            Translated::Stream(stream) => {
                io.start(&stream.head, stream.length);
                self.stage = Stage::Streaming(stream);
            }
            Translated::Switch(head) => {
                if let Some(offer) = self.offer.take() {
                    io.start(&head, None);
                    self.stage = Stage::Tunnel(offer.accept());
                }
            }
        }
    }

    /// The client has gone.
    fn give_up(&mut self) {
        if let Some(feed) = &self.feed {
            feed.fail("the client has gone");
        }
        if let Stage::Called(call) = std::mem::replace(&mut self.stage, Stage::Over)
            && let Some(finish) = self.worker.finish
            && let Some(future) = call.into_future()
        {
            finish(&self.worker.runtime, future);
        }
    }
}

/// Sends what the body has, as long as the connection takes it. Whether that was all.
fn pump<B: http_body::Body>(stream: &mut Stream<B>, cx: &mut Context<'_>, io: &mut Io<'_>) -> bool {
    while io.is_sendable() {
        let second = stream.second.take().map_or(Piece::Pending, |second| *second);
        let piece = match std::mem::replace(&mut stream.front, second) {
            Piece::Pending => translated::next(&mut stream.body, cx),
            piece => piece,
        };
        let (data, end) = match piece {
            Piece::Pending => return false,
            Piece::Data(data) => (data, End::No),
            Piece::Last(data) => (data, End::Yes),
            Piece::End => (Bytes::new(), End::Yes),
            Piece::Trailers(trailers) => {
                io.finish_with(&trailers);
                return true;
            }
            Piece::Failed => {
                io.abort();
                return true;
            }
        };
        if let Err(data) = io.send(data, end) {
            let data = if end == End::Yes { Piece::Last(data) } else { Piece::Data(data) };
            stream.second = match std::mem::replace(&mut stream.front, data) {
                Piece::Pending => None,
                second => Some(Box::new(second)),
            };
            return false;
        }
        if end == End::Yes {
            return true;
        }
    }
    false
}

impl<S, B> Exchange for Open<S, B>
where
    S: Service<http::Request<Body>, Response = http::Response<B>>,
    B: http_body::Body,
{
    fn continues_at_once(&self) -> bool {
        false
    }

    fn watches_client(&self) -> bool {
        true
    }

    fn held_bytes(&self) -> usize {
        let response = match &self.stage {
            Stage::Answered(Translated::Stream(stream)) | Stage::Streaming(stream) => {
                stream.held_bytes()
            }
            Stage::Tunnel(tunnel) => tunnel.held_bytes(),
            _ => 0,
        };
        let offer = if self.offer.is_some() { OFFER_BYTES } else { 0 };
        self.request_bytes + response + offer
    }

    fn on_start(&mut self, io: &mut Io<'_>) {
        let due = matches!(self.stage, Stage::Answered(_));
        if due || self.feed.is_some() {
            // Attended since it was made: what the handler has read is told now.
            self.turn(io, due, |_| {});
        }
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        let is_tunnel = matches!(self.stage, Stage::Tunnel(_));
        self.turn(io, is_tunnel, |open| match (&mut open.stage, &open.feed) {
            (Stage::Tunnel(tunnel), _) => tunnel.push(data, end),
            (_, Some(feed)) => feed.push(data, end == End::Yes),
            (_, None) => {}
        });
    }

    fn on_trailers(&mut self, head: &Head, io: &mut Io<'_>) {
        self.turn(io, false, |open| {
            if let Some(feed) = &open.feed {
                feed.finish(open.worker.translator.borrow_mut().trailers(head));
            }
        });
    }

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        self.turn(io, true, Self::attend);
    }

    fn on_wake(&mut self, io: &mut Io<'_>) {
        // A mail may come after its cause was seen to.
        if self.ring.bell.state.is_rung() {
            self.turn(io, true, Self::attend);
        }
    }

    fn on_client_end(&mut self, io: &mut Io<'_>) {
        self.give_up();
        io.abort();
    }

    fn on_abort(&mut self, _: AbortReason) {
        self.give_up();
    }
}

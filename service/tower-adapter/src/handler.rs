//! A tower service as a handler of one worker.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};

use bolide_server::{Handler, Reply, Request, RequestBody, Response, StatusCode};
use http::{Method, Version};
use tokio::runtime;
use tower_service::Service;

use crate::body::{Body, Feed, body};
use crate::client::{Client, Extend};
use crate::exchange::{Call, Open, Stage};
use crate::informational::{Outlet, informational};
use crate::panics::caught;
use crate::spare::{Place, Spare};
use crate::translated::{self, Asked, Translated};
use crate::tunnel::{Offer, may_switch};
use crate::wake::Ring;
use crate::worker::{Finish, Worker};

/// Parts of which a worker is made on its thread.
pub(crate) struct Recipe<S: Service<http::Request<Body>>, M> {
    pub(crate) make: M,
    pub(crate) runtime: runtime::Handle,
    pub(crate) finish: Option<Finish<S::Future>>,
    pub(crate) extend: Vec<Extend>,
    /// True if services are offered informational responses.
    pub(crate) informs: bool,
    pub(crate) body_bytes_max: u64,
}

/// A service that answers every request of a worker.
pub(crate) struct TowerHandler<S: Service<http::Request<Body>>, B, M> {
    recipe: Recipe<S, M>,
    /// Made by the first request: the router that the server checks beforehand needs none.
    worker: OnceCell<Rc<Worker<S, B>>>,
}

impl<S, B, M> TowerHandler<S, B, M>
where
    S: Service<http::Request<Body>, Response = http::Response<B>>,
    M: Fn() -> S,
{
    pub(crate) fn new(recipe: Recipe<S, M>) -> Self {
        Self { recipe, worker: OnceCell::new() }
    }

    fn worker(&self) -> &Rc<Worker<S, B>> {
        self.worker.get_or_init(|| {
            Rc::new(Worker {
                service: (self.recipe.make)(),
                runtime: self.recipe.runtime.clone(),
                finish: self.recipe.finish,
                extend: self.recipe.extend.clone(),
                informs: self.recipe.informs,
                translator: RefCell::default(),
                heads: RefCell::default(),
                rings: Spare::default(),
                futures: Spare::default(),
                bodies: Spare::default(),
            })
        })
    }
}

impl<S, B, M> Handler for TowerHandler<S, B, M>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    B: http_body::Body + 'static,
    M: Fn() -> S + 'static,
{
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let worker = self.worker();
        let head = request.head();
        let path = || head.path_and_query().split('?').next().unwrap_or_default();
        // Written where it is to be: a reply is large, and on its way through results it is copied.
        let mut reply = Reply::Later;
        let name = || (head.method().clone(), path().into());
        if caught(|| answer(worker, request, &mut reply), name).is_none() {
            reply = Response::error(StatusCode::INTERNAL_SERVER_ERROR).into();
        }
        reply
    }

    fn takes_whole_bodies(&self) -> bool {
        true
    }

    fn body_bytes_max(&self) -> Option<u64> {
        Some(self.recipe.body_bytes_max)
    }
}

/// Gives the request to the service. What is not answered at once is left open.
#[inline]
fn answer<S, B>(worker: &Rc<Worker<S, B>>, request: &mut Request<'_>, reply: &mut Reply)
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    B: http_body::Body + 'static,
{
    let ring = Ring::of(request, worker.rings.take());
    let (body, feed) = body_of(request, &ring);
    let whole_bytes = body.whole_bytes();
    let translated = worker.translator.borrow_mut().translate(request.head(), body);
    let Some(mut translated) = translated else {
        return *reply = Response::error(StatusCode::BAD_REQUEST).into();
    };
    for extend in &worker.extend {
        extend(&Client::of(request), translated.extensions_mut());
    }
    let mut cx = Context::from_waker(&ring.waker);
    let mut offer = None;
    if may_switch(request)
        && let Some((made, handle)) = Offer::make(&mut cx)
    {
        offer = Some(made);
        translated.extensions_mut().insert(handle);
    }
    let mut outlet = None;
    if worker.informs && request.version() != Version::HTTP_10 {
        let (handle, made) = informational(&ring.bell);
        outlet = Some(made);
        translated.extensions_mut().insert(handle);
    }
    let asked = Asked {
        is_head: *request.method() == Method::HEAD,
        is_connect: *request.method() == Method::CONNECT,
        has_offer: offer.is_some(),
    };
    let mut call = Call::new(worker.futures.take().unwrap_or_else(Place::new));
    let stage = match call.begin(worker.service.clone(), translated, &mut cx) {
        Poll::Pending => Stage::Called(call),
        Poll::Ready(result) => {
            let rest = translated::translate(result, asked, &mut cx, worker, reply);
            worker.futures.give(call.into_place());
            if rest.is_none() && outlet.as_ref().is_none_or(Outlet::is_empty) {
                return worker.rings.give(ring);
            }
            let whole = || Translated::Whole(std::mem::replace(reply, Reply::Later));
            Stage::Answered(rest.unwrap_or_else(whole))
        }
    };
    if ring.bell.state.end() {
        // The mail arrives when the exchange is open.
        ring.bell.ask_for_turn();
    }
    let worker = Rc::clone(worker);
    let name = (request.method().clone(), request.path().into());
    let request_bytes = request.head().allocated_bytes() + whole_bytes;
    let open = Open { worker, ring, feed, asked, offer, outlet, name, stage, request_bytes };
    *reply = Reply::Exchange(Box::new(open));
}

/// The request's body, and the worker's end of it unless all of it has arrived.
#[inline]
fn body_of(request: &mut Request<'_>, ring: &Ring) -> (Body, Option<Feed>) {
    if !request.has_body() {
        return (Body::empty(), None);
    }
    let length = request.body_length();
    if let RequestBody::Whole(bytes) = request.take_body() {
        return (Body::whole(bytes, length.is_some()), None);
    }
    let (body, feed) = body(length, &ring.waker);
    (body, Some(feed))
}

//! A tower service as a handler of one worker.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bolide_server::{Handler, Reply, Request, Response, StatusCode};
use http::Method;
use tokio::runtime;
use tower_service::Service;

use crate::answer::{self, Answer, Asked};
use crate::body::Body;
use crate::client::{Client, Extend};
use crate::exchange::{Call, Open, Stage};
use crate::request;
use crate::spare::{Place, Spare};
use crate::tunnel::{Offer, may_switch};
use crate::wake::Bell;

/// What to do with the future of a client that has gone.
pub(crate) type Finish<F> = fn(&runtime::Handle, Place<F>);

/// What one worker keeps for its exchanges.
pub(crate) struct Worker<S: Service<http::Request<Body>>, B> {
    service: S,
    pub(crate) runtime: runtime::Handle,
    pub(crate) finish: Option<Finish<S::Future>>,
    extend: Vec<Extend>,
    bells: Spare<Arc<Bell>>,
    pub(crate) futures: Spare<Place<S::Future>>,
    pub(crate) bodies: Spare<Place<B>>,
}

/// What a worker is made of, on its thread.
pub(crate) struct Recipe<S: Service<http::Request<Body>>, M> {
    pub(crate) make: M,
    pub(crate) runtime: runtime::Handle,
    pub(crate) finish: Option<Finish<S::Future>>,
    pub(crate) extend: Vec<Extend>,
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
            let _entered = self.recipe.runtime.enter();
            Rc::new(Worker {
                service: (self.recipe.make)(),
                runtime: self.recipe.runtime.clone(),
                finish: self.recipe.finish,
                extend: self.recipe.extend.clone(),
                bells: Spare::default(),
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
        let bell = Bell::of(request, worker.bells.take());
        let Some((mut translated, feed)) = request::translate(request, &bell) else {
            return Reply::Now(Response::error(StatusCode::BAD_REQUEST));
        };
        for extend in &worker.extend {
            extend(&Client::of(request), translated.extensions_mut());
        }
        let _entered = worker.runtime.enter();
        let waker = Waker::from(Arc::clone(&bell));
        let mut cx = Context::from_waker(&waker);
        let mut offer = None;
        if may_switch(request)
            && let Some((made, handle)) = Offer::make(&mut cx)
        {
            offer = Some(made);
            translated.extensions_mut().insert(handle);
        }
        let asked = Asked {
            is_head: *request.method() == Method::HEAD,
            is_connect: *request.method() == Method::CONNECT,
            has_offer: offer.is_some(),
        };
        let place = worker.futures.take().unwrap_or_else(Place::new);
        let mut call = Call::new(worker.service.clone(), translated, place);
        let stage = match call.poll(&mut cx) {
            Poll::Pending => Stage::Called(call),
            Poll::Ready(result) => {
                let answer = match result {
                    Ok(response) => answer::translate(response, asked, &mut cx, &worker.bodies),
                    Err(_) => Answer::Whole(Response::error(StatusCode::INTERNAL_SERVER_ERROR)),
                };
                worker.futures.give(call.into_place());
                match answer {
                    Answer::Whole(response) => {
                        drop(waker);
                        worker.bells.give(bell);
                        return Reply::Now(response);
                    }
                    answer => Stage::Answered(answer),
                }
            }
        };
        if let Some(feed) = &feed {
            feed.leave_early();
        }
        if bell.state.end() {
            // The mail arrives when the exchange is open.
            bell.ask_for_turn();
        }
        let worker = Rc::clone(worker);
        Reply::Exchange(Box::new(Open { worker, bell, feed, asked, offer, stage }))
    }

    fn body_bytes_max(&self) -> Option<u64> {
        Some(self.recipe.body_bytes_max)
    }
}

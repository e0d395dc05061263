//! State that the exchanges of one worker share.

use std::cell::RefCell;

use tokio::runtime;
use tower_service::Service;

use crate::body::Body;
use crate::client::Extend;
use crate::request::Translator;
use crate::response_heads::ResponseHeads;
use crate::spare::{Place, Spare};
use crate::wake::Ring;

/// Treatment of the future of a client that has gone.
pub(crate) type Finish<F> = fn(&runtime::Handle, Place<F>);

/// State of one worker for its exchanges.
pub(crate) struct Worker<S: Service<http::Request<Body>>, B> {
    pub(crate) service: S,
    pub(crate) runtime: runtime::Handle,
    pub(crate) finish: Option<Finish<S::Future>>,
    pub(crate) extend: Vec<Extend>,
    pub(crate) informs: bool,
    pub(crate) translator: RefCell<Translator>,
    pub(crate) heads: RefCell<ResponseHeads>,
    pub(crate) rings: Spare<Ring>,
    pub(crate) futures: Spare<Place<S::Future>>,
    pub(crate) bodies: Spare<Place<B>>,
}

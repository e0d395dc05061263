//! Services of hyper's own trait.

use std::task::{Context, Poll};

use tower_service::Service;

/// A service of [`hyper::service::Service`], such as hyper's `service_fn` makes, as one of tower's,
/// which is always ready. [`serve`](crate::serve) takes it when its futures are `Send`, it is
/// `Clone`, and it takes requests with [`Body`](crate::Body), or with any body if it is generic.
#[derive(Debug, Clone, Copy)]
pub struct HyperService<S>(S);

impl<S> HyperService<S> {
    /// `service` as it is.
    pub const fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S, R> Service<R> for HyperService<S>
where
    S: hyper::service::Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> S::Future {
        self.0.call(request)
    }
}

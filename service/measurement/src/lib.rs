//! The measurement endpoints: `/ping`, `/echo`, `/{size}`, and a landing page that lists them.
//!
//! They are handlers like any user's, built on the public handler API alone.

mod bulk;
mod echo;
mod landing;
pub mod limits;

use bolide_server::{Method, Router, body_limit};

pub use echo::ECHO_BYTES_MAX;

/// The routes: `GET /` and those of [`endpoints`].
#[must_use]
pub fn routes(router: Router) -> Router {
    endpoints(router.get("/", landing::page))
}

/// The routes without the page that lists them: `GET /ping`, `GET /echo?size=N`, `POST /echo`, `/{size}`. A
/// size is what no other route answers.
#[must_use]
pub fn endpoints(router: Router) -> Router {
    ping(router)
        .get("/echo", echo::fill)
        .handle(Method::POST, "/echo", body_limit(u64::MAX, echo::echo))
        .claim(bulk::is_size, bulk::Sizes)
}

/// `GET /ping` alone.
#[must_use]
pub fn ping(router: Router) -> Router {
    router.get("/ping", |_| "pong")
}

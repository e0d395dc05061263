//! The measurement endpoints: `/ping`, `/echo`, and a landing page that lists them.
//!
//! They are handlers like any user's, built on the public handler API alone.

mod echo;
mod landing;

use bolide_server::{Method, Router, body_limit};

pub use echo::ECHO_BYTES_MAX;

/// The routes: `GET /` , `GET /ping`, `GET /echo?size=N`, `POST /echo`.
#[must_use]
pub fn routes(router: Router) -> Router {
    router.get("/", landing::page).get("/ping", |_| "pong").get("/echo", echo::fill).handle(
        Method::POST,
        "/echo",
        body_limit(u64::MAX, echo::echo),
    )
}

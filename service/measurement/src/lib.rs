//! The measurement endpoints: `/ping`, `/echo`, `/events`, `/{size}`, `/ws`, ndt7, responsiveness, and a landing page
//! that lists them.
//!
//! They are handlers like any user's, built on the public handler API alone.

mod bulk;
mod echo;
mod events;
mod landing;
pub mod limits;
mod ndt7;
mod responsiveness;
mod websocket;

use bolide_server::websocket::Options;
use bolide_server::{Method, Router};

pub use echo::ECHO_BYTES_MAX;
pub use ndt7::{Ndt7Settings, finish_archives};

/// Settings of the endpoints.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Of ndt7.
    pub ndt7: Ndt7Settings,
    /// How the WebSocket connections of `/ws` and of ndt7 are kept. Their subprotocols, and compression at `/ws`, are
    /// added. Clients of ndt7 send messages of up to 16 MiB.
    pub websocket: Options,
}

impl From<Ndt7Settings> for Settings {
    fn from(ndt7: Ndt7Settings) -> Self {
        Self { ndt7, ..Self::default() }
    }
}

/// The routes: `GET /` and those of [`endpoints`].
#[must_use]
pub fn routes(router: Router) -> Router {
    routes_with(router, &Settings::default())
}

/// The same with settings.
#[must_use]
pub fn routes_with(router: Router, settings: &Settings) -> Router {
    endpoints_with(router.get("/", landing::page), settings)
}

/// The routes without the page that lists them: `GET /ping`, `GET /echo?size=N`, `POST /echo`, events at
/// known times at `/events?n=N&gap=MS&size=N`, the WebSocket echo `/ws`, ndt7 at `/ndt/v7/download` and `/ndt/v7/upload`, and for responsiveness `/.well-known/nq` with
/// `/small`, `/large` and `/slurp`. `/{size}` is what no other route answers.
#[must_use]
pub fn endpoints(router: Router) -> Router {
    endpoints_with(router, &Settings::default())
}

/// The same with settings.
#[must_use]
pub fn endpoints_with(router: Router, settings: &Settings) -> Router {
    let router = websocket::route(router, &settings.websocket);
    let router = responsiveness::routes(ndt7::routes(router, settings));
    ping(router)
        .handle(Method::GET, "/echo", echo::Fills)
        .handle(Method::POST, "/echo", echo::Echoes)
        .handle(Method::GET, "/events", events::Streams)
        .handle(Method::POST, "/events", events::Streams)
        .claim(bulk::is_size, bulk::Sizes)
}

/// The paths that [`endpoints`] route, without `/{size}`: an application's own routes can't have them.
#[must_use]
pub fn paths() -> Vec<String> {
    endpoints(Router::new()).paths().map(str::to_owned).collect()
}

/// `GET /ping` alone.
#[must_use]
pub fn ping(router: Router) -> Router {
    router.get("/ping", |_| "pong")
}

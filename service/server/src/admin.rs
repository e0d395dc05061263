//! What an operator's listener answers: metrics and health.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, StatusCode};

use crate::metrics::{Exposition, Metrics, ServerState};
use crate::{PROFILE_ONE_IN, Profile, Request, Response, Router};

/// Adds what others count to a scrape, such as a proxy's upstreams.
#[derive(Clone)]
pub struct MetricSource(Arc<dyn Fn(&mut Exposition) + Send + Sync>);

impl fmt::Debug for MetricSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MetricSource")
    }
}

impl MetricSource {
    /// A source that writes its samples when somebody asks.
    pub fn new(write: impl Fn(&mut Exposition) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }
}

const INDEX: &str = "\
/metrics  what the server counts, in the text format of Prometheus
/healthz  200 while the process answers
/readyz   200 while the server takes requests, 503 while it starts or drains
/profile  GET: where the CPU time goes, in JSON; PUT ?one-in=64: measure one turn in 64; DELETE: none
";

/// The most turns of which one is measured.
const ONE_IN_MAX: u32 = 1_000_000;

/// The routes of an operator's listener, for a server of its own beside the one that is watched:
/// `/metrics`, `/healthz`, `/readyz`, and `/profile` when the server has a [`Profile`](crate::Profile).
///
/// ```no_run
/// use bolide_server::{Metrics, Router, Server, admin_routes};
///
/// let metrics = Metrics::new();
/// let watched = metrics.clone();
/// let admin = Server::new().workers(1).http("127.0.0.1:9090");
/// let admin = admin.start(move || admin_routes(&watched, &[]))?;
/// let server = Server::new().http("127.0.0.1:8080").metrics(&metrics);
/// server.run(|| Router::new().get("/ping", |_| "pong"))?;
/// # Ok::<(), bolide_server::Error>(())
/// ```
#[must_use]
pub fn admin_routes(metrics: &Metrics, sources: &[MetricSource]) -> Router {
    let (scraped, watched) = (metrics.clone(), metrics.clone());
    let sources = sources.to_vec();
    Router::new()
        .get("/", |_| INDEX)
        .get("/metrics", move |_| {
            let mut text = Exposition::new();
            scraped.snapshot().write(&mut text);
            for MetricSource(write) in &sources {
                write(&mut text);
            }
            let content_type = HeaderValue::from_static(Exposition::CONTENT_TYPE);
            Response::with_type(content_type, text.into_text())
        })
        .get("/healthz", |_| "ok\n")
        .get("/readyz", move |_| match watched.state() {
            ServerState::Ready => Response::text("ready\n"),
            ServerState::Starting => unready("starting\n"),
            ServerState::Draining => unready("draining\n"),
        })
        .get("/profile", with_profile(metrics, |profile, _| shown(profile)))
        .put("/profile", with_profile(metrics, turn_on))
        .delete(
            "/profile",
            with_profile(metrics, |profile, _| {
                profile.set_one_in(0);
                shown(profile)
            }),
        )
}

/// A handler that does something with the profile of the server that is watched.
fn with_profile(
    metrics: &Metrics,
    answer: impl Fn(&Profile, &Request<'_>) -> Response + 'static,
) -> impl Fn(&mut Request<'_>) -> Response + 'static {
    let watched = metrics.clone();
    move |request| match watched.profile() {
        Some(profile) => answer(profile, request),
        None => Response::text("the server was started with no profile\n")
            .with_status(StatusCode::NOT_FOUND),
    }
}

fn turn_on(profile: &Profile, request: &Request<'_>) -> Response {
    let asked = request.query_param("one-in");
    let one_in = asked.as_ref().map_or(Ok(PROFILE_ONE_IN), |asked| asked.parse());
    match one_in {
        Ok(one_in @ 1..=ONE_IN_MAX) => {
            profile.set_one_in(one_in);
            shown(profile)
        }
        _ => {
            let asked = asked.unwrap_or_default();
            let what =
                format!("one-in={asked}: give a number from 1 to {ONE_IN_MAX}, such as 64\n");
            Response::text(what).with_status(StatusCode::BAD_REQUEST)
        }
    }
}

fn shown(profile: &Profile) -> Response {
    let json = HeaderValue::from_static("application/json");
    Response::with_type(json, profile.snapshot().json() + "\n")
}

fn unready(why: &'static str) -> Response {
    Response::text(why).with_status(StatusCode::SERVICE_UNAVAILABLE)
}

//! What an operator's listener answers: metrics and health.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, StatusCode};

use crate::metrics::{Exposition, Metrics, ServerState};
use crate::{Response, Router};

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
";

/// The routes of an operator's listener, for a server of its own beside the one that is watched:
/// `/metrics`, `/healthz`, `/readyz`.
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
}

fn unready(why: &'static str) -> Response {
    Response::text(why).with_status(StatusCode::SERVICE_UNAVAILABLE)
}

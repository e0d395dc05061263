//! Responses of an operator's listener: metrics and health.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderValue, StatusCode};

use crate::{PROFILE_ONE_IN, Profile, Request, Response, Router};
use bolide_observability::{Exposition, Metrics, ServerState};

/// Adds what others count to a scrape, such as a proxy's upstreams.
#[derive(Clone)]
pub struct MetricSource(Arc<dyn Fn(&mut Exposition) + Send + Sync>);

impl fmt::Debug for MetricSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MetricSource")
    }
}

impl MetricSource {
    /// A source that writes its samples on request.
    pub fn new(write: impl Fn(&mut Exposition) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }
}

const INDEX: &str = "\
/metrics  what the server counts, in the text format of Prometheus
/healthz  200 while the process responses
/readyz   200 while the server takes requests, 503 while it starts or drains
/profile  GET: where the CPU time goes, in JSON; PUT ?one-in=64: measure one turn in 64; DELETE: none
";

/// The most turns of which one is measured.
const ONE_IN_MAX: u32 = 1_000_000;

/// The routes of an operator's listener, for a server of its own next to the one that is watched:
/// `/metrics`, `/healthz`, `/readyz`, and `/profile` when the server has a [`Profile`](crate::Profile).
///
/// A page of another site could have a browser on the operator's machine send requests here (DNS rebinding). So a request names
/// `localhost`, a loopback address, the address that it was sent to or one of `names`, and an `Origin` is the same as what it
/// names; otherwise the response is 421 or 403.
///
/// ```no_run
/// use bolide_server::{Metrics, Router, Server, admin_routes};
///
/// let metrics = Metrics::new();
/// let watched = metrics.clone();
/// let admin = Server::new().workers(1).http("127.0.0.1:9090");
/// let admin = admin.start(move || admin_routes(&watched, &[], &[]))?;
/// let server = Server::new().http("127.0.0.1:8080").metrics(&metrics);
/// server.run(|| Router::new().get("/ping", |_| "pong"))?;
/// # Ok::<(), bolide_server::Error>(())
/// ```
#[must_use]
pub fn admin_routes(metrics: &Metrics, sources: &[MetricSource], names: &[String]) -> Router {
    let names: Names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let (scraped, watched) = (metrics.clone(), metrics.clone());
    let sources = sources.to_vec();
    let metrics_text = move |_: &Request<'_>| {
        let mut text = Exposition::new();
        scraped.snapshot().write(&mut text);
        for MetricSource(write) in &sources {
            write(&mut text);
        }
        let content_type = HeaderValue::from_static(Exposition::CONTENT_TYPE);
        Response::with_type(content_type, text.into_text())
    };
    let readiness = move |_: &Request<'_>| match watched.state() {
        ServerState::Ready => Response::text("ready\n"),
        ServerState::Starting => unready("starting\n"),
        ServerState::Draining => unready("draining\n"),
    };
    let turn_off = with_profile(metrics, |profile, _| {
        profile.set_one_in(0);
        shown(profile)
    });
    Router::new()
        .get("/", own(&names, |_| Response::text(INDEX)))
        .get("/metrics", own(&names, metrics_text))
        .get("/healthz", own(&names, |_| Response::text("ok\n")))
        .get("/readyz", own(&names, readiness))
        .get("/profile", own(&names, with_profile(metrics, |profile, _| shown(profile))))
        .put("/profile", own(&names, with_profile(metrics, turn_on)))
        .delete("/profile", own(&names, turn_off))
}

/// Names of the listener, in lower case, besides those that it always has.
type Names = Rc<[String]>;

/// A handler for requests that are meant for this listener.
fn own(
    names: &Names,
    respond: impl Fn(&Request<'_>) -> Response + 'static,
) -> impl Fn(&mut Request<'_>) -> Response + 'static {
    let names = Rc::clone(names);
    move |request| {
        // HTTP/1.0 has no Host, and no browser sends it.
        let Some(authority) = request.authority() else { return respond(request) };
        let local = request.local().map(|local| local.ip());
        if !is_own(authority, local, &names) {
            let what = "this listener has another name: use its address, or add the name to `names` in [admin]\n";
            return Response::text(what).with_status(StatusCode::MISDIRECTED_REQUEST);
        }
        let origin = request.header("origin");
        let is_same = |origin: &str| {
            let site = origin.split_once("://").map_or(origin, |(_, site)| site);
            site.eq_ignore_ascii_case(authority)
        };
        if !origin.is_none_or(is_same) {
            let what = "pages of other sites may not send requests to this listener\n";
            return Response::text(what).with_status(StatusCode::FORBIDDEN);
        }
        respond(request)
    }
}

/// Returns whether an authority names this listener, which a client has reached at `local`; none on a Unix socket, which no
/// browser reaches.
fn is_own(authority: &str, local: Option<IpAddr>, names: &[String]) -> bool {
    let Some(local) = local else { return true };
    let without_port = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let host = without_port.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address == local.to_canonical() || names.contains(&host)
        }
        Err(_) => {
            let host = host.trim_end_matches('.');
            host == "localhost"
                || host.ends_with(".localhost")
                || names.iter().any(|name| name == host)
        }
    }
}

/// A handler that does something with the profile of the server that is watched.
fn with_profile(
    metrics: &Metrics,
    respond: impl Fn(&Profile, &Request<'_>) -> Response + 'static,
) -> impl Fn(&Request<'_>) -> Response + 'static {
    let watched = metrics.clone();
    move |request| match watched.profile() {
        Some(profile) => respond(profile, request),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_knows_its_names() {
        let local = Some("10.1.2.3".parse().unwrap());
        let names = ["metrics.example".to_owned()];
        for own in [
            "localhost",
            "LocalHost:9090",
            "a.localhost",
            "127.0.0.1:9090",
            "127.9.9.9",
            "[::1]",
            "[::1]:9090",
            "10.1.2.3:9090",
            "[::ffff:10.1.2.3]:9090",
            "Metrics.Example:9090",
        ] {
            assert!(is_own(own, local, &names), "{own}");
        }
        for foreign in
            ["evil.example", "evil.example:9090", "localhost.evil.example", "10.1.2.4", "", ":"]
        {
            assert!(!is_own(foreign, local, &names), "{foreign}");
            assert!(is_own(foreign, None, &names), "{foreign}");
        }
    }
}

//! Servers to measure, and plans for them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_measure::plan::{Amount, Connecting, Direction, Plan, Transfer, Trusted, Version};
use bolide_measure::report::Report;
use bolide_measure::target;
use bolide_measure::transfer;
use bolide_probe::plan::{Origin, ServerAddress, ServerProcesses};
use bolide_probe::stop::Stop;
use bolide_server::{
    BodyStream, Bytes, ConnectionLimits, End, Exchange, Http2Limits, Identity, Io, Limits, Pull,
    Reply, Request, Response, Router, Running, Server, StatusCode, Tls, body_limit, http2_limits,
};
use http::Method;

/// Zeros, as many as were asked for.
#[derive(Debug)]
struct Zeros {
    length: u64,
    left: u64,
}

impl BodyStream for Zeros {
    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn pull(&mut self, bytes_max: usize) -> Pull {
        static BLOCK: [u8; 65_536] = [0; 65_536];
        let piece = BLOCK.len().min(bytes_max).min(self.left as usize);
        self.left -= piece as u64;
        let data = Bytes::from_static(&BLOCK[..piece]);
        if self.left == 0 { Pull::Last(data) } else { Pull::Data(data) }
    }
}

/// Reads and forgets, then answers 204.
#[derive(Debug)]
struct Sink;

impl Exchange for Sink {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        if end == End::Yes {
            io.respond(Response::new(StatusCode::NO_CONTENT));
        }
    }
}

fn size(request: &Request<'_>) -> Option<u64> {
    request.param("size")?.parse().ok()
}

fn download(request: &mut Request<'_>) -> Response {
    match size(request) {
        Some(length) if length > 0 => Response::stream(Zeros { length, left: length }),
        Some(_) => Response::text(""),
        None => Response::error(StatusCode::BAD_REQUEST),
    }
}

fn upload(_: &mut Request<'_>) -> Reply {
    Reply::Exchange(Box::new(Sink))
}

/// The resources of a responsiveness server.
fn config(request: &mut Request<'_>) -> Response {
    let host = request.authority().unwrap_or_default().to_owned();
    resources(request, &host)
}

/// Names the resources of another server, by its port.
fn config_elsewhere(request: &mut Request<'_>) -> Response {
    let host = format!("127.0.0.1:{}", request.param("port").unwrap_or_default());
    resources(request, &host)
}

fn resources(request: &Request<'_>, host: &str) -> Response {
    let scheme = if request.tls().is_some() { "https" } else { "http" };
    let url = |path: &str| format!("{scheme}://{host}/{path}");
    let urls = serde_json::json!({
        "small_download_url": url("small"),
        "large_download_url": url("large"),
        "upload_url": url("slurp"),
    });
    Response::text(serde_json::json!({ "version": 1, "urls": urls }).to_string())
}

fn router() -> Router {
    let sink = || body_limit(u64::MAX, upload);
    Router::new()
        .get("/{size}", download)
        .handle(Method::PUT, "/{size}", sink())
        .handle(Method::POST, "/{size}", sink())
        .get("/ping", |_: &mut Request<'_>| "pong")
        .get("/.well-known/nq", config)
        .get("/elsewhere/{port}", config_elsewhere)
        .get("/small", |_: &mut Request<'_>| "s")
        .get("/large", |_: &mut Request<'_>| {
            Response::stream(Zeros { length: 8 << 30, left: 8 << 30 })
        })
        .handle(Method::POST, "/slurp", sink())
        .get("/half/{size}", |request: &mut Request<'_>| {
            let length = size(request).unwrap_or(2);
            Response::stream(Zeros { length: length / 2, left: length / 2 })
        })
        .put("/refused", |_: &mut Request<'_>| Response::error(StatusCode::FORBIDDEN))
}

/// A server that runs until it is dropped.
pub(crate) struct Planted {
    running: Option<Running>,
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
}

impl Planted {
    pub(crate) fn start() -> Self {
        Self::with(Limits::default())
    }

    /// One whose windows for uploads have so many bytes.
    pub(crate) fn with_windows(bytes: u32) -> Self {
        let h2 = Http2Limits {
            windows: http2_limits::Windows {
                stream_window_bytes: bytes,
                stream_window_bytes_max: bytes,
                connection_window_bytes: bytes,
                connection_window_bytes_max: bytes,
            },
            ..Http2Limits::default()
        };
        let connection = ConnectionLimits { h2: Arc::new(h2), ..ConnectionLimits::default() };
        Self::with(Limits { connection, ..Limits::default() })
    }

    fn with(limits: Limits) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        let running = Server::new()
            .http("127.0.0.1:0")
            .https("127.0.0.1:0", &Tls::new(&identity).unwrap())
            .http3(true)
            .workers(1)
            .limits(limits)
            .drain(Duration::ZERO)
            .start(router)
            .unwrap();
        let addresses: Vec<_> = running.addresses().into_iter().flatten().collect();
        Self { running: Some(running), http: addresses[0], https: addresses[1] }
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down();
            running.join().unwrap();
        }
    }
}

/// A plan for `scheme://address/path`.
pub(crate) fn plan(scheme: &str, address: SocketAddr, path: &str) -> Plan {
    let url = target::parse(&format!("{scheme}://{address}{path}")).unwrap();
    let expected_bytes = target::size(&url.path);
    Plan {
        connecting: Connecting {
            origin: Origin {
                is_https: url.scheme.is_tls(),
                authority: url.authority(),
                addresses: vec![ServerAddress::Inet(address)],
            },
            version: Version::Negotiated,
            trusted: Trusted::Any,
            window_bytes: None,
            frame_bytes: None,
            timeout: Duration::from_secs(5),
        },
        transfer: Transfer {
            direction: Direction::Download,
            method: Method::GET,
            path: path.to_owned(),
            expected_bytes,
            amount: Amount::Whole,
            is_ndt7: false,
            streams: 1,
            connections: 1,
        },
        target: url,
        probing: None,
        server: ServerProcesses::Unwatched,
        stop: Stop::default(),
    }
}

/// The same as an upload.
pub(crate) fn upload_plan(scheme: &str, address: SocketAddr, path: &str, amount: Amount) -> Plan {
    let mut plan = plan(scheme, address, path);
    plan.transfer.direction = Direction::Upload;
    plan.transfer.method = Method::PUT;
    plan.transfer.expected_bytes = None;
    plan.transfer.amount = amount;
    plan
}

/// The same over HTTP/2.
pub(crate) fn over_h2(mut plan: Plan) -> Plan {
    plan.connecting.version = Version::Http2;
    plan
}

/// The same over HTTP/3.
pub(crate) fn over_h3(mut plan: Plan) -> Plan {
    plan.connecting.version = Version::Http3;
    plan
}

/// The same over HTTP/1.1.
pub(crate) fn over_h1(mut plan: Plan) -> Plan {
    plan.connecting.version = Version::Http1;
    plan
}

/// Carries it out.
pub(crate) fn measure(plan: &Plan) -> Report {
    transfer::run(plan, &mut |_| {}).unwrap()
}

/// Carries out what must succeed.
pub(crate) fn measured(plan: &Plan) -> Report {
    let report = measure(plan);
    assert_eq!(report.end.error, None);
    report
}

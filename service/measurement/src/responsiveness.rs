//! Responsiveness under working conditions (draft-ietf-ippm-responsiveness-09): `/.well-known/nq` and the
//! resources that it names.

use bolide_server::{
    BodyStream, Bytes, End, Exchange, HeaderValue, Io, Method, Pull, Reply, Request, Response,
    Router, body_limit,
};

/// The length of `/large`: 8 GiB, in bytes.
const LARGE_BYTES: u64 = 8 << 30;

/// Block that `/large` is cut from.
static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];

/// `/.well-known/nq` and `/config`, `/small`, `/large`, `/slurp`.
pub(crate) fn routes(router: Router) -> Router {
    router
        .get("/.well-known/nq", config)
        .get("/config", config)
        .get("/small", |_| bytes().body(Bytes::from_static(&ZEROS[..1])))
        .get("/large", |_| {
            Response::stream(Large { left: LARGE_BYTES })
                .header("content-type", HeaderValue::from_static("application/octet-stream"))
        })
        .handle(Method::POST, "/slurp", body_limit(u64::MAX, slurp))
}

fn bytes() -> Response {
    Response::with_type(HeaderValue::from_static("application/octet-stream"), Bytes::new())
}

/// Returns where everything is, in today's names and in those of older clients.
fn config(request: &mut Request<'_>) -> Response {
    let scheme = if request.tls().is_some() { "https" } else { "http" };
    let host = request.authority().unwrap_or("localhost");
    let url = |path: &str| format!("{scheme}://{host}{path}");
    let (small, large, upload) = (url("/small"), url("/large"), url("/slurp"));
    let urls = serde_json::json!({
        "small_download_url": small,
        "large_download_url": large,
        "upload_url": upload,
        "small_https_download_url": small,
        "large_https_download_url": large,
        "https_upload_url": upload,
    });
    let body = serde_json::json!({ "version": 1, "urls": urls }).to_string();
    Response::with_type(HeaderValue::from_static("application/json"), body)
}

#[derive(Debug)]
struct Large {
    left: u64,
}

impl BodyStream for Large {
    fn length(&self) -> Option<u64> {
        Some(LARGE_BYTES)
    }

    fn pull(&mut self, bytes_max: usize) -> Pull {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let piece = bytes_max.min(ZEROS.len()).min(left);
        self.left -= piece as u64;
        let data = Bytes::from_static(&ZEROS[..piece]);
        if self.left == 0 { Pull::Last(data) } else { Pull::Data(data) }
    }
}

/// `POST /slurp`: 200 once everything was read and thrown away.
fn slurp(request: &mut Request<'_>) -> Reply {
    if request.has_body() { Reply::Exchange(Box::new(Slurp)) } else { Reply::Now(bytes()) }
}

#[derive(Debug)]
struct Slurp;

impl Exchange for Slurp {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        if end == End::Yes {
            io.respond(bytes());
        }
    }
}

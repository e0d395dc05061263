//! ndt7 (M-Lab's Network Diagnostic Tool, protocol v0.11): `/ndt/v7/download` and `/ndt/v7/upload`.
//!
//! A test is a WebSocket connection that is kept full for ten seconds in one direction; the server tells what
//! TCP has measured four times a second.

mod archive;
mod measurement;
mod request;
mod test;
mod time;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bolide_server::websocket::WebSocket;
use bolide_server::{HeaderMap, HeaderValue, Reply, Request, Response, Router, StatusCode};

use crate::Settings;
use archive::Archive;
pub use archive::finish_archives;
use test::Test;

/// The subprotocol.
const PROTOCOL: &str = "net.measurementlab.ndt.v7";

/// Settings of the ndt7 endpoints.
#[derive(Debug, Clone, Default)]
pub struct Ndt7Settings {
    /// A directory that gets a file `ndt7-…json.gz` for each test, written after its end
    /// ([`finish_archives`] waits for that). It must exist. Default: none.
    pub archive: Option<PathBuf>,
}

/// The direction of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Download,
    Upload,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// The two tests, over HTTP/1.1 and HTTP/2, with and without TLS.
pub(crate) fn routes(router: Router, settings: &Settings) -> Router {
    let archive =
        settings.ndt7.archive.as_ref().map(|directory| Arc::new(Archive::new(directory.clone())));
    let options = Rc::new(settings.websocket.clone().protocol(PROTOCOL).require_protocol());
    [Direction::Download, Direction::Upload].into_iter().fold(router, |router, direction| {
        let (archive, options) = (archive.clone(), Rc::clone(&options));
        let path = format!("/ndt/v7/{}", direction.name());
        router.websocket(&path, move |request: &mut Request<'_>| -> Reply {
            let asked = match request::Asked::parse(request.query(), direction) {
                Ok(asked) => asked,
                Err(what) => {
                    let response = Response::text(format!("{what}\n"));
                    return response.with_status(StatusCode::BAD_REQUEST).into();
                }
            };
            let test = Test::new(direction, asked, archive.clone());
            // A page of any origin may measure.
            let mut fields = HeaderMap::new();
            fields.insert("access-control-allow-origin", HeaderValue::from_static("*"));
            WebSocket::accept_with(request, &options, fields, test)
        })
    })
}

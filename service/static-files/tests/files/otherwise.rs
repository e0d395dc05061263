//! Files first, and another handler for the rest.

use std::rc::Rc;
use std::time::Duration;

use bolide_server::{Handler, Request, Router, Running, Server};
use bolide_static_files::StaticFiles;
use tempfile::TempDir;

use crate::client::Client;

struct Both {
    running: Option<Running>,
    _directory: TempDir,
}

impl Both {
    fn new(routes: impl Fn(&StaticFiles) -> Router + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("file"), "a file").expect("a file");
        std::fs::create_dir(directory.path().join("empty")).expect("a directory");
        let files = StaticFiles::new(directory.path()).expect("a root");
        let running = Server::new()
            .workers(1)
            .drain(Duration::from_secs(5))
            .http("127.0.0.1:0")
            .start(move || routes(&files))
            .expect("a free port");
        Self { running: Some(running), _directory: directory }
    }

    /// The status and the body.
    fn ask(&self, method: &str, path: &str) -> (u16, String) {
        let running = self.running.as_ref().expect("it runs");
        let address = running.addresses()[0].expect("an address");
        let response = Client::of(address).ask(method, path, &[]);
        (response.status, String::from_utf8_lossy(&response.body).into_owned())
    }
}

impl Drop for Both {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down();
            let _ = running.join();
        }
    }
}

fn other(request: &mut Request<'_>) -> String {
    format!("other: {} {}", request.method(), request.path())
}

#[test]
fn the_fallback_answers_what_no_file_does() {
    let both =
        Both::new(|files| files.routes(Router::new().get("/ping", |_| "pong").fallback(other)));
    for _ in 0..2 {
        assert_eq!(both.ask("GET", "/file"), (200, "a file".to_owned()));
        for path in ["/none", "/empty/", "/.hidden", "/%00", "/"] {
            assert_eq!(both.ask("GET", path), (200, format!("other: GET {path}")));
        }
    }
    assert_eq!(both.ask("GET", "/ping"), (200, "pong".to_owned()));
    assert_eq!(both.ask("PUT", "/file"), (200, "other: PUT /file".to_owned()));
}

#[test]
fn a_handler_of_files_keeps_to_reading() {
    let both = Both::new(|files| {
        let below = files.clone().under("/a/").handler(None);
        let or = files.clone().under("/b").handler(Some(Rc::new(other) as Rc<dyn Handler>));
        Router::new().below("/a/", below).below("/b/", or)
    });
    assert_eq!(both.ask("GET", "/a/file"), (200, "a file".to_owned()));
    assert_eq!(both.ask("GET", "/a/none").0, 404);
    assert_eq!(both.ask("PUT", "/a/file").0, 405);
    assert_eq!(both.ask("OPTIONS", "/a/file").0, 204);
    assert_eq!(both.ask("GET", "/b/file"), (200, "a file".to_owned()));
    assert_eq!(both.ask("GET", "/b/none"), (200, "other: GET /b/none".to_owned()));
}

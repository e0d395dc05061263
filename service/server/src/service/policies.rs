//! Effects of a policy: it holds for every final response of its exchange, and a derived head is what inner handlers see.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};

use crate::{
    Alternatives, Bytes, Fields, Handler, Policy, Reply, Request, Response, ResponseFields, Router,
    Server, collect,
};

static NAME: HeaderName = HeaderName::from_static("x-policy");

/// Adds a field, has a page for some errors, and lets nothing take long.
#[derive(Debug)]
struct Rules {
    value: HeaderValue,
    timeout: Option<Duration>,
}

impl Policy for Rules {
    fn edit<'p>(&'p self, fields: &mut ResponseFields<'p>) {
        fields.add(&NAME, &self.value);
    }

    fn error_page(&self, status: StatusCode) -> Option<(Bytes, HeaderValue)> {
        let page = Bytes::from(format!("page of {}", status.as_str()));
        (status != StatusCode::FORBIDDEN).then(|| (page, HeaderValue::from_static("text/x-page")))
    }

    fn response_timeout(&self) -> Option<Duration> {
        self.timeout
    }
}

/// A handler with rules.
struct Ruled<H>(Rc<Rules>, H);

fn ruled<H: Handler>(handler: H) -> Ruled<H> {
    Ruled(Rc::new(Rules { value: HeaderValue::from_static("1"), timeout: None }), handler)
}

impl<H: Handler> Handler for Ruled<H> {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        self.on_refusal(request);
        self.1.handle(request)
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.1.body_bytes_max()
    }

    fn on_refusal(&self, request: &mut Request<'_>) {
        request.set_policy(Rc::<Rules>::clone(&self.0));
    }
}

/// Takes requests whose query is this one.
struct ByQuery(&'static str, Box<dyn Handler>);

impl Alternatives for ByQuery {
    fn of(&self, request: &Request<'_>) -> Option<&dyn Handler> {
        (request.query() == Some(self.0)).then_some(&*self.1)
    }
}

impl Handler for ByQuery {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        self.1.handle(request)
    }

    fn alternatives(&self) -> Option<&dyn Alternatives> {
        Some(self)
    }
}

fn rewriting(target: &'static str, inner: impl Handler) -> impl Handler {
    let inner: Rc<dyn Handler> = Rc::new(inner);
    move |request: &mut Request<'_>| {
        let mut head = request.head().clone();
        let path = head.push_text(target.as_bytes());
        head.set_path(path);
        request.with_head(&head, |request| inner.handle(request))
    }
}

fn shown(request: &mut Request<'_>) -> Response {
    Response::text(format!("{} {:?}", request.path(), request.query()))
}

fn router() -> Router {
    let type_of = (HeaderName::from_static("x-shared"), HeaderValue::from_static("1"));
    let fields = Fields::new([type_of]);
    let later = |request: &mut Request<'_>| {
        let responder = request.responder();
        std::thread::spawn(move || responder.pass_on());
        Reply::LaterOr(Rc::new(shown))
    };
    let slow =
        Rules { value: HeaderValue::from_static("1"), timeout: Some(Duration::from_millis(20)) };
    let never = |request: &mut Request<'_>| {
        std::mem::forget(request.responder());
        Reply::Later
    };
    Router::new()
        .handle(
            http::Method::GET,
            "/shared",
            ruled(move |_: &mut Request<'_>| Response::text("shared").with_fields(&fields)),
        )
        .handle(
            http::Method::GET,
            "/panics",
            ruled(|_: &mut Request<'_>| -> Response { panic!("on purpose") }),
        )
        .handle(
            http::Method::GET,
            "/own",
            ruled(|_: &mut Request<'_>| Response::error(StatusCode::NOT_FOUND).body("own text")),
        )
        .handle(
            http::Method::GET,
            "/forbidden",
            ruled(|_: &mut Request<'_>| Response::error(StatusCode::FORBIDDEN)),
        )
        .handle(http::Method::GET, "/twice", ruled(ruled(|_: &mut Request<'_>| "twice")))
        .handle_post("/small", ruled(crate::body_limit(3, collect(|_, body| Response::from(body)))))
        .handle(http::Method::GET, "/rewritten", rewriting("/other?b=2", ruled(shown)))
        .handle(http::Method::GET, "/later", rewriting("/other", later))
        .handle(http::Method::GET, "/slow", Ruled(Rc::new(slow), never))
        .get("/plain", |_| Response::error(StatusCode::NOT_FOUND))
        .any("/a/b/", ByQuery("exact", Box::new(|_: &mut Request<'_>| "exact")))
        .any("/a/{id}/", ByQuery("pattern", Box::new(|_: &mut Request<'_>| "pattern")))
        .any("/{*rest}", ByQuery("rest", Box::new(|_: &mut Request<'_>| "rest")))
        .below("/a/b/", ByQuery("deep", Box::new(|_: &mut Request<'_>| "deep")))
        .below("/a/", |_: &mut Request<'_>| "below")
        .host(
            "h",
            Router::new().below("/a/b/", ByQuery("host", Box::new(|_: &mut Request<'_>| "host"))),
        )
        .first(Router::new().fallback(ByQuery("first", Box::new(|_: &mut Request<'_>| "first"))))
}

/// The responses to requests that one connection sends.
fn ask(requests: &[&str]) -> Vec<String> {
    ask_of(router, requests)
}

/// The same of another router.
fn ask_of(router: fn() -> Router, requests: &[&str]) -> Vec<String> {
    let server = Server::new().workers(1).http("127.0.0.1:0").start(router).unwrap();
    let address = server.addresses()[0].unwrap();
    let responses = requests.iter().map(|request| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "{}",
            request.replace("\r\n\r\n", "\r\nhost: h\r\nconnection: close\r\n\r\n")
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    });
    let responses = responses.collect();
    server.shut_down();
    server.join().unwrap();
    responses
}

#[test]
fn a_policy_holds_for_every_final_response() {
    let gets = ["/shared", "/panics", "/own", "/forbidden", "/twice", "/plain"];
    let gets: Vec<String> =
        gets.iter().map(|path| format!("GET {path} HTTP/1.1\r\n\r\n")).collect();
    let responses = ask(&gets.iter().map(String::as_str).collect::<Vec<_>>());
    let expected = [
        ("200", 1, "shared"),
        ("500", 1, "page of 500"),
        ("404", 1, "own text"),
        ("403", 1, "403 Forbidden\n"),
        ("200", 2, "twice"),
        ("404", 0, "404 Not Found\n"),
    ];
    for (response, (status, count, body)) in responses.iter().zip(expected) {
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert_eq!(response.matches("x-policy: 1\r\n").count(), count, "{response}");
        assert!(response.ends_with(&format!("\r\n\r\n{body}")), "{response}");
        assert_eq!(response.matches("content-type: ").count(), 1, "{response}");
    }
    assert!(responses[0].contains("x-shared: 1\r\n"), "{}", responses[0]);
    assert!(responses[1].contains("content-type: text/x-page\r\n"), "{}", responses[1]);
}

#[test]
fn a_policy_holds_for_requests_that_no_route_takes() {
    let router =
        || Router::new().get("/get", |_| "got").refusals(ruled(|_: &mut Request<'_>| "never"));
    let requests = ["GET /none", "POST /get", "BREW /none", "GET /get"];
    let requests = requests.map(|line| format!("{line} HTTP/1.1\r\n\r\n"));
    let responses = ask_of(router, &requests.each_ref().map(String::as_str));
    let expected =
        [("404", 1, "page of 404"), ("405", 1, ""), ("501", 1, "page of 501"), ("200", 0, "got")];
    for (response, (status, count, body)) in responses.iter().zip(expected) {
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert_eq!(response.matches("x-policy: 1\r\n").count(), count, "{response}");
        assert!(response.ends_with(body), "{response}");
    }
}

#[test]
fn a_policy_holds_for_bodies_that_are_refused_and_responses_that_take_too_long() {
    let announced = "POST /small HTTP/1.1\r\ncontent-length: 4\r\n\r\nabcd";
    let chunked =
        "POST /small HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n";
    for (response, status) in
        ask(&[announced, chunked, "GET /slow HTTP/1.1\r\n\r\n"]).iter().zip(["413", "413", "503"])
    {
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        assert!(response.contains("x-policy: 1\r\n"), "{response}");
        assert!(response.ends_with(&format!("page of {status}")), "{response}");
    }
}

#[test]
fn an_inner_handler_sees_the_derived_head_also_when_it_is_asked_later() {
    let responses = ask(&["GET /rewritten?a=1 HTTP/1.1\r\n\r\n", "GET /later HTTP/1.1\r\n\r\n"]);
    assert!(responses[0].ends_with("/other Some(\"b=2\")"), "{}", responses[0]);
    assert!(responses[0].contains("x-policy: 1\r\n"), "{}", responses[0]);
    assert!(responses[1].ends_with("/other None"), "{}", responses[1]);
}

#[test]
fn a_route_whose_condition_does_not_hold_is_not_there() {
    for (target, body) in [
        ("/a/b/?exact", "exact"),
        ("/a/b/?pattern", "pattern"),
        ("/a/b/?rest", "rest"),
        ("/a/b/?deep", "deep"),
        ("/a/b/?host", "host"),
        ("/a/b/?first", "first"),
        ("/a/b/?none", "below"),
        ("/a/b/c?rest", "rest"),
        ("/a/b/c?deep", "deep"),
        ("/a/b/c", "below"),
        ("/shared?first", "first"),
        ("/none?none", "404 Not Found\n"),
    ] {
        for method in ["GET", "DELETE"] {
            if target.starts_with("/shared") && method == "DELETE" {
                continue;
            }
            let response = &ask(&[&format!("{method} {target} HTTP/1.1\r\n\r\n")])[0];
            assert!(
                response.ends_with(&format!("\r\n\r\n{body}")),
                "{method} {target}: {response}"
            );
        }
    }
}

//! The requests, made from the number of their connection and their own.

use bytes::Bytes;
use fastrand::Rng;
use http::Method;

/// A request, and the content of its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// GET or POST.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Its fields; names in lower case.
    pub fields: Vec<(&'static str, String)>,
    /// Its content; empty: it has none.
    pub body: Bytes,
    /// The content of the response.
    pub response: Bytes,
}

impl Request {
    fn get(path: String, fields: Vec<(&'static str, String)>, response: Bytes) -> Self {
        Self { method: Method::GET, path, fields, body: Bytes::new(), response }
    }

    /// To the endpoint that sends content back.
    fn post(fields: Vec<(&'static str, String)>, body: Bytes) -> Self {
        let (path, response) = ("/echo".to_owned(), body.clone());
        Self { method: Method::POST, path, fields, body, response }
    }

    #[cfg(test)]
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.0 == name).map(|field| field.1.as_str())
    }
}

/// `/ping`, as a plain client asks for it.
pub(crate) fn same_ping() -> Request {
    let fields = vec![("user-agent", "instructions/1.0".to_owned())];
    Request::get("/ping".to_owned(), fields, Bytes::from_static(b"pong"))
}

/// `/ping` with a query of its own, as a browser asks that has `person` before it.
pub(crate) fn browser(person: usize, query: u64) -> Request {
    let (query, secret) = (scattered(query), scattered(!(person as u64)));
    let version = 100 + person;
    let fields = [
        (
            "user-agent",
            format!(
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/{version}.0.0.0 Safari/537.36"
            ),
        ),
        (
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
                .to_owned(),
        ),
        ("accept-language", "de-DE,de;q=0.9,en-US;q=0.8".to_owned()),
        ("accept-encoding", "gzip, deflate, br, zstd".to_owned()),
        ("referer", format!("https://www.example.com/catalogue/{}?page=2", secret >> 40)),
        ("cookie", format!("session={secret:016x}; theme=dark; consent=necessary")),
        ("cache-control", "max-age=0".to_owned()),
        ("upgrade-insecure-requests", "1".to_owned()),
        ("sec-fetch-dest", "document".to_owned()),
        ("sec-fetch-mode", "navigate".to_owned()),
        ("sec-fetch-site", "same-origin".to_owned()),
        ("sec-fetch-user", "?1".to_owned()),
    ];
    let path = format!("/ping?item={query:016x}&page=2");
    Request::get(path, fields.into(), Bytes::from_static(b"pong"))
}

/// A call with a small message, as a generated client makes it for one `customer`.
pub(crate) fn rpc(customer: usize) -> Request {
    let secret = scattered(customer as u64);
    let fields = [
        ("content-type", "application/grpc".to_owned()),
        ("te", "trailers".to_owned()),
        ("user-agent", format!("grpc-rust/1.{customer}.0")),
        ("grpc-accept-encoding", "identity,gzip,deflate".to_owned()),
        ("grpc-timeout", "5S".to_owned()),
        ("x-customer", format!("customer-{customer}")),
        ("x-session", format!("{secret:016x}")),
        ("x-api-version", "2024-11-05".to_owned()),
        ("accept-language", "en".to_owned()),
        ("accept", "application/grpc".to_owned()),
    ];
    Request::post(fields.into(), Bytes::from_static(b"\0\0\0\0\x07\x0a\x05world"))
}

/// A POST of 1 KiB.
pub(crate) fn echo() -> Request {
    let fields = [
        ("user-agent", "instructions/1.0".to_owned()),
        ("content-type", "application/octet-stream".to_owned()),
        ("content-length", "1024".to_owned()),
    ];
    Request::post(fields.into(), Bytes::from_static(&[b'x'; 1024]))
}

/// A file by its number.
pub(crate) fn file(number: usize) -> Request {
    let fields = vec![("user-agent", "instructions/1.0".to_owned())];
    Request::get(format!("/{}", file_name(number)), fields, file_content(number).into())
}

pub(crate) fn file_name(number: usize) -> String {
    format!("page-{number:03}.html")
}

pub(crate) fn file_content(number: usize) -> String {
    format!("{number:05}\n")
}

/// A number that looks random, another one for each.
fn scattered(number: u64) -> u64 {
    Rng::with_seed(number).u64(..)
}

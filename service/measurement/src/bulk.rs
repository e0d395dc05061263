//! `GET /{size}` answers as many zero bytes, `PUT` and `POST /{size}` read and discard a body.

use bolide_server::{
    BodyStream, Bytes, End, Exchange, Handler, HeaderValue, Io, Method, Pull, Reply, Request,
    Response, StatusCode,
};

use crate::limits::SIZE_BYTES_MAX;

/// Block that downloads are cut from. It is small enough to stay in a core's cache.
static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];

/// The methods that are answered.
const ALLOWED: &str = "GET, HEAD, OPTIONS, POST, PUT";

/// Handler of `/{size}`, for any method.
#[derive(Debug)]
pub(crate) struct Sizes;

/// Returns whether `path` is a size, right or wrong: one segment that begins with a digit.
pub(crate) fn is_size(path: &str) -> bool {
    let segment = path.strip_prefix('/').unwrap_or_default();
    segment.starts_with(|first: char| first.is_ascii_digit()) && !segment.contains('/')
}

/// The number in the path, or what to say about it.
fn size_of(path: &str) -> Result<u64, String> {
    let digits = path.strip_prefix('/').unwrap_or_default();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let what = "the path /{size} takes a number of bytes in decimal digits and nothing else, \
                    such as /1048576\n";
        return Err(what.to_owned());
    }
    // A number with too many digits for 64 bits is too large as well.
    match digits.parse() {
        Ok(size) if size <= SIZE_BYTES_MAX => Ok(size),
        _ => Err(format!("the size in the path is at most {SIZE_BYTES_MAX} bytes (1 TiB)\n")),
    }
}

fn refusal(what: String) -> Response {
    Response::text(what).with_status(StatusCode::BAD_REQUEST)
}

fn zeros(size: u64) -> Response {
    let response = match usize::try_from(size).ok().and_then(|size| ZEROS.get(..size)) {
        Some(all) => Response::new(StatusCode::OK).body(Bytes::from_static(all)),
        None => Response::stream(Zeros { length: size, left: size }),
    };
    // What was kept or transformed on its way measures nothing.
    let cache = HeaderValue::from_static("no-store, no-transform");
    let media_type = HeaderValue::from_static("application/octet-stream");
    response.header("content-type", media_type).header("cache-control", cache)
}

impl Handler for Sizes {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let size = size_of(request.path());
        match (request.method(), size) {
            (&Method::OPTIONS, _) => {
                Response::new(StatusCode::NO_CONTENT).header("allow", ALLOWED).into()
            }
            (&Method::GET | &Method::HEAD | &Method::PUT | &Method::POST, Err(what)) => {
                refusal(what).into()
            }
            (&Method::GET | &Method::HEAD, Ok(size)) => zeros(size).into(),
            (&Method::PUT | &Method::POST, Ok(_)) if request.has_body() => {
                Reply::Exchange(Box::new(Discard))
            }
            (&Method::PUT | &Method::POST, Ok(_)) => Response::new(StatusCode::NO_CONTENT).into(),
            _ => Response::error(StatusCode::METHOD_NOT_ALLOWED).header("allow", ALLOWED).into(),
        }
    }

    /// A body may be longer than the size in its path: chunked, its length is not known before.
    fn body_bytes_max(&self) -> Option<u64> {
        Some(SIZE_BYTES_MAX)
    }
}

/// More than fits in one piece.
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
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let piece = bytes_max.min(ZEROS.len()).min(left);
        self.left -= piece as u64;
        let data = Bytes::from_static(&ZEROS[..piece]);
        if self.left == 0 { Pull::Last(data) } else { Pull::Data(data) }
    }
}

/// An upload that goes nowhere.
#[derive(Debug)]
struct Discard;

impl Exchange for Discard {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        if end == End::Yes {
            io.respond(Response::new(StatusCode::NO_CONTENT));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_that_begins_with_a_digit_is_a_size() {
        for path in ["/0", "/1048576", "/12x", "/1.5", "/0x10"] {
            assert!(is_size(path), "{path}");
        }
        for path in ["/", "/x1", "/1/2", "/1/", "/-1", "/%31", "//1", "*", ""] {
            assert!(!is_size(path), "{path}");
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for path in ["/12x", "/1.5", "/0x10", "/1099511627777", "/99999999999999999999999"] {
            assert!(size_of(path).is_err(), "{path}");
        }
        for (path, size) in
            [("/0", 0), ("/00", 0), ("/262145", 262_145), ("/1099511627776", 1 << 40)]
        {
            assert_eq!(size_of(path).unwrap(), size, "{path}");
        }
    }

    #[test]
    fn the_stream_is_exactly_as_long_as_asked_for() {
        let length = 3 * ZEROS.len() as u64 + 7;
        let mut body = Zeros { length, left: length };
        assert_eq!(body.length(), Some(length));
        let mut sum = 0;
        loop {
            match body.pull(100_000) {
                Pull::Data(data) => sum += data.len() as u64,
                Pull::Last(data) => {
                    assert_eq!(sum + data.len() as u64, length);
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

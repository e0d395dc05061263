//! `GET /echo?size=N` answers N bytes; `POST /echo` answers what it is sent.

use bolide_server::{
    AbortReason, BodyStream, Bytes, End, Exchange, Handler, HeaderValue, Io, PieceQueue, Pull,
    Reply, Request, RequestBody, Response, StatusCode, Version,
};

/// The largest `size`, in bytes.
pub const ECHO_BYTES_MAX: u64 = 1 << 30;

/// The `size` when none is given, in bytes.
const ECHO_BYTES_DEFAULT: u64 = 64;

const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Block that responses are cut from.
static FILL: [u8; 256 * 1024] = [b'x'; 256 * 1024];

/// `GET /echo?size=N`: N times `x`.
#[derive(Debug, Default)]
pub(crate) struct Fills;

impl Handler for Fills {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let Some(size) = size_of(request) else {
            let what = format!("size is a number of bytes from 0 to {ECHO_BYTES_MAX}\n");
            return Reply::Now(Response::text(what).with_status(StatusCode::BAD_REQUEST));
        };
        match usize::try_from(size).ok().and_then(|size| FILL.get(..size)) {
            Some(all) => {
                Reply::Now(Response::bytes(Bytes::new()).own_body(Bytes::from_static(all)))
            }
            None => {
                let fill = Fill { length: size, left: size };
                Reply::Now(Response::stream(fill).header("content-type", BINARY))
            }
        }
    }
}

/// How many bytes are asked for, if that is a number and allowed.
fn size_of(request: &Request<'_>) -> Option<u64> {
    let size = match request.query_param("size") {
        None => Some(ECHO_BYTES_DEFAULT),
        Some(size) if size.bytes().all(|byte| byte.is_ascii_digit()) => size.parse().ok(),
        Some(_) => None,
    };
    size.filter(|size| *size <= ECHO_BYTES_MAX)
}

/// More than fits in one piece.
#[derive(Debug)]
struct Fill {
    length: u64,
    left: u64,
}

impl BodyStream for Fill {
    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn pull(&mut self, bytes_max: usize) -> Pull {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let piece = bytes_max.min(FILL.len()).min(left);
        self.left -= piece as u64;
        let data = Bytes::from_static(&FILL[..piece]);
        if self.left == 0 { Pull::Last(data) } else { Pull::Data(data) }
    }
}

/// `POST /echo`: the body comes back as it arrives, or at once if all of it came with its head.
#[derive(Debug)]
pub(crate) struct Echoes;

impl Handler for Echoes {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        if let RequestBody::Whole(body) = request.take_body() {
            Reply::Now(Response::bytes(Bytes::new()).own_body(body))
        } else if request.has_body() {
            let length = request.body_length();
            // What is wrong with a chunked body shows in it alone, mostly in the segment that has its head.
            let looks_first = length.is_none() && request.version() <= Version::HTTP_11;
            Reply::Exchange(Box::new(Echo {
                length,
                looks_first,
                kept: PieceQueue::new(),
                ended: false,
            }))
        } else {
            Reply::Now(Response::bytes(Bytes::new()))
        }
    }

    fn takes_whole_bodies(&self) -> bool {
        true
    }

    fn body_bytes_max(&self) -> Option<u64> {
        Some(u64::MAX)
    }
}

#[derive(Debug)]
struct Echo {
    length: Option<u64>,
    /// The response begins once what has come with the request's head was looked at: 200 can't be taken back.
    looks_first: bool,
    /// Pieces that could not be sent on at once; at most a receive window of it, for it is not consumed.
    kept: PieceQueue,
    /// Nothing follows `kept`.
    ended: bool,
}

impl Echo {
    /// Sends a piece on, which the connection must be ready for.
    fn send(io: &mut Io<'_>, data: Bytes, end: End) {
        let length = data.len();
        match io.send(data, end) {
            Ok(()) => io.consumed(length),
            Err(_) => io.abort(),
        }
    }
}

impl Exchange for Echo {
    fn on_start(&mut self, io: &mut Io<'_>) {
        if self.looks_first {
            let waker = io.local_waker();
            waker.wake(io.outward().agenda());
        } else {
            io.start(&Response::bytes(Bytes::new()), self.length);
        }
    }

    fn on_wake(&mut self, io: &mut Io<'_>) {
        if std::mem::take(&mut self.looks_first) {
            io.start(&Response::bytes(Bytes::new()), self.length);
            self.on_sendable(io);
        }
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        if self.kept.is_empty() && io.is_sendable() {
            Self::send(io, data, end);
        } else {
            self.kept.push(data);
            self.kept.keep();
            self.ended |= end == End::Yes;
        }
    }

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        while io.is_sendable() {
            let data = match self.kept.pop() {
                Some(data) => data,
                None if self.ended => Bytes::new(),
                None => return,
            };
            let is_last = self.ended && self.kept.is_empty();
            Self::send(io, data, if is_last { End::Yes } else { End::No });
        }
    }

    fn on_abort(&mut self, _: AbortReason) {
        self.kept = PieceQueue::new();
    }
}

//! Handlers that want the whole body before they answer.

use bolide_semantics::{End, Head};
use bytes::{Bytes, BytesMut};

use crate::{Exchange, Handler, Io, Reply, Request, Response};

/// A handler that is called when the request's body is complete.
#[derive(Debug)]
pub struct Collect<F>(std::rc::Rc<F>);

/// Collects the body, up to the limit of the route, and then calls `answer` with head and body.
///
/// ```
/// use bolide_server::{Response, Router, collect};
///
/// let router = Router::new().handle_post(
///     "/length",
///     collect(|_head, body| Response::from(format!("{} bytes", body.len()))),
/// );
/// assert!(router.check().is_ok());
/// ```
pub fn collect<F>(answer: F) -> Collect<F>
where
    F: Fn(&Head, Bytes) -> Response + 'static,
{
    Collect(std::rc::Rc::new(answer))
}

impl<F> Handler for Collect<F>
where
    F: Fn(&Head, Bytes) -> Response + 'static,
{
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        if !request.has_body() {
            return Reply::Now((self.0)(request.head(), Bytes::new()));
        }
        Reply::Exchange(Box::new(Collecting {
            head: request.head().clone(),
            body: Collected::Nothing,
            answer: std::rc::Rc::clone(&self.0),
        }))
    }
}

enum Collected {
    Nothing,
    Pieces(BytesMut),
}

struct Collecting<F> {
    head: Head,
    body: Collected,
    answer: std::rc::Rc<F>,
}

impl<F> std::fmt::Debug for Collecting<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Collecting").field("head", &self.head).finish_non_exhaustive()
    }
}

impl<F: Fn(&Head, Bytes) -> Response> Exchange for Collecting<F> {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn held_bytes(&self) -> usize {
        let body = match &self.body {
            Collected::Nothing => 0,
            Collected::Pieces(pieces) => pieces.capacity(),
        };
        self.head.allocated_bytes() + body
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        let body = match (std::mem::replace(&mut self.body, Collected::Nothing), end) {
            // A body that came in one piece is handed on as it is.
            (Collected::Nothing, End::Yes) => data,
            (Collected::Nothing, End::No) => {
                self.body = Collected::Pieces(BytesMut::from(&data[..]));
                return;
            }
            (Collected::Pieces(mut pieces), end) => {
                pieces.extend_from_slice(&data);
                if end == End::No {
                    self.body = Collected::Pieces(pieces);
                    return;
                }
                pieces.freeze()
            }
        };
        io.respond((self.answer)(&self.head, body));
    }
}

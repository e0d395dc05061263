//! Handlers that want the whole body before they answer.

use std::fmt;
use std::rc::Rc;

use bolide_semantics::End;
use bytes::{Bytes, BytesMut};

use crate::{AbortReason, Exchange, Handler, Head, Io, KeptRequest, Reply, Request};

/// Collects the body, up to the limit of the route, and then calls `respond` with what is kept of the request, and the body.
/// Its result is what that of any handler may be.
///
/// ```
/// use bolide_server::{Router, collect};
///
/// let router = Router::new().handle_post(
///     "/users/{id}/picture",
///     collect(|request, body| format!("{} bytes for {:?}", body.len(), request.param("id"))),
/// );
/// assert!(router.check().is_ok());
/// ```
pub fn collect<F, R>(respond: F) -> impl Handler
where
    F: Fn(&KeptRequest, Bytes) -> R + 'static,
    R: Into<Reply>,
{
    Collect(Rc::new(move |request: &KeptRequest, body| respond(request, body).into()))
}

type Respond = Rc<dyn Fn(&KeptRequest, Bytes) -> Reply>;

struct Collect(Respond);

impl Handler for Collect {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let kept = request.keep();
        if !request.has_body() {
            return (self.0)(&kept, Bytes::new());
        }
        let stage = Stage::Collects { pieces: None, respond: Rc::clone(&self.0) };
        Reply::Exchange(Box::new(Collecting { request: kept, stage }))
    }
}

enum Stage {
    /// Pieces that have come, if not all at once.
    Collects { pieces: Option<BytesMut>, respond: Respond },
    /// The body is complete, and a response was made or is to come.
    Answered,
    /// The exchange goes on with another object.
    Goes(Box<dyn Exchange>),
}

struct Collecting {
    request: KeptRequest,
    stage: Stage,
}

impl fmt::Debug for Collecting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collecting").field("request", &self.request).finish_non_exhaustive()
    }
}

impl Collecting {
    fn then(&mut self) -> Option<&mut dyn Exchange> {
        if let Stage::Goes(exchange) = &mut self.stage { Some(&mut **exchange) } else { None }
    }

    fn respond(&mut self, respond: &Respond, body: Bytes, io: &mut Io<'_>) {
        self.stage = Stage::Answered;
        match respond(&self.request, body) {
            Reply::Now(response) => io.respond(response),
            Reply::Later | Reply::LaterOr(_) => {}
            Reply::Exchange(mut exchange) => {
                exchange.on_start(io);
                exchange.on_data(Bytes::new(), End::Yes, io);
                self.stage = Stage::Goes(exchange);
            }
        }
    }
}

impl Exchange for Collecting {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn held_bytes(&self) -> usize {
        let more = match &self.stage {
            Stage::Collects { pieces, .. } => pieces.as_ref().map_or(0, BytesMut::capacity),
            Stage::Answered => 0,
            Stage::Goes(exchange) => exchange.held_bytes(),
        };
        self.request.held_bytes() + more
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        io.consumed(data.len());
        let Stage::Collects { pieces, respond } = &mut self.stage else { return };
        let body = match (pieces.take(), end) {
            // A body that came in one piece is handed on as it is.
            (None, End::Yes) => data,
            (None, End::No) => {
                *pieces = Some(BytesMut::from(&data[..]));
                return;
            }
            (Some(mut before), end) => {
                before.extend_from_slice(&data);
                if end == End::No {
                    *pieces = Some(before);
                    return;
                }
                before.freeze()
            }
        };
        let respond = Rc::clone(respond);
        self.respond(&respond, body, io);
    }

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        if let Some(then) = self.then() {
            then.on_sendable(io);
        }
    }

    fn on_wake(&mut self, io: &mut Io<'_>) {
        if let Some(then) = self.then() {
            then.on_wake(io);
        }
    }

    fn on_shut_down(&mut self, io: &mut Io<'_>) {
        if let Some(then) = self.then() {
            then.on_shut_down(io);
        }
    }

    fn on_trailers(&mut self, _: &Head, io: &mut Io<'_>) {
        self.on_data(Bytes::new(), End::Yes, io);
    }

    fn on_abort(&mut self, reason: AbortReason) {
        if let Some(then) = self.then() {
            then.on_abort(reason);
        }
    }
}

//! The service of the simulation, and what its futures wait for.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bolide_server::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tower_service::Service;

use crate::{Body, Informational};

/// The byte at a place of a response.
pub(super) fn fill_byte(place: usize) -> u8 {
    (place % 251) as u8
}

/// How many bytes a body has at a time.
const PIECE_BYTES: usize = 1500;

/// One who waits.
#[derive(Default)]
struct Gate {
    is_open: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Gate {
    fn open(&self) {
        self.is_open.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_open.get() {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// State that all exchanges share.
#[derive(Default)]
pub(super) struct World {
    waiting: RefCell<Vec<Rc<Gate>>>,
    futures: Cell<usize>,
    waits: Cell<usize>,
}

impl World {
    /// How many futures there are.
    pub(super) fn futures(&self) -> usize {
        self.futures.get()
    }

    /// How often one has waited for another, or for a thread outside.
    pub(super) fn waits(&self) -> usize {
        self.waits.get()
    }

    /// Lets all go who wait.
    pub(super) fn release_all(&self) {
        let waiting = self.waiting.take();
        waiting.iter().for_each(|gate| gate.open());
    }

    fn release_one(&self) {
        let first = self.waiting.borrow_mut().pop();
        if let Some(gate) = first {
            gate.open();
        }
    }

    fn gate(&self) -> Rc<Gate> {
        let gate = Rc::new(Gate::default());
        self.waits.set(self.waits.get() + 1);
        self.waiting.borrow_mut().push(Rc::clone(&gate));
        gate
    }
}

/// Counts a future, or its body, as long as it is there.
struct Counted(Rc<World>);

impl Counted {
    fn new(world: &Rc<World>) -> Self {
        world.futures.set(world.futures.get() + 1);
        Self(Rc::clone(world))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.futures.set(self.0.futures.get() - 1);
    }
}

/// A body that comes in pieces, with a wait of one kind or another before each.
pub(super) struct Pieces {
    left: Bytes,
    counted: Counted,
    gate: Option<Rc<Gate>>,
    turn: usize,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(gate) = &self.gate {
            if gate.poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.gate = None;
        } else if !self.left.is_empty() {
            self.turn += 1;
            match self.turn % 3 {
                0 => {
                    let gate = self.counted.0.gate();
                    let polled = gate.poll(cx);
                    self.gate = Some(gate);
                    assert!(polled.is_pending(), "it has just been closed");
                    return Poll::Pending;
                }
                1 => {
                    cx.waker().wake_by_ref();
                    self.turn += 1;
                    return Poll::Pending;
                }
                _ => {}
            }
        }
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let count = self.left.len().min(PIECE_BYTES);
        let piece = self.left.split_to(count);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

async fn answer(counted: Counted, request: Request<Body>) -> Result<Response<Pieces>, Infallible> {
    let world = Rc::clone(&counted.0);
    // Each that comes lets one go that waits: over this worker's own mailbox.
    world.release_one();
    assert!(request.extensions().get::<Informational>().is_none_or(|handle| {
        handle.send(http::StatusCode::CONTINUE, http::HeaderMap::new()).is_err()
    }));
    let path = request.uri().path().to_owned();
    let path = &path[1..];
    let (kind, count) = path.split_once('/').unwrap_or((path, ""));
    let count: usize = count.parse().unwrap_or_default();
    let whole = match kind {
        "wait" => {
            let gate = world.gate();
            poll_fn(|cx| gate.poll(cx)).await;
            Bytes::from_static(b"waited")
        }
        "yield" => {
            for _ in 0..count {
                let mut yielded = false;
                poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    if std::mem::replace(&mut yielded, true) {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
            }
            Bytes::from_static(b"yielded")
        }
        "fill" => (0..count).map(fill_byte).collect(),
        "back" => request.into_body().collect().await.map_or(Bytes::new(), |body| body.to_bytes()),
        _ => Bytes::from_static(b"pong"),
    };
    // What is asked for piece by piece comes so; the rest at once.
    let turn = if kind == "fill" { 0 } else { 1 };
    Ok(Response::new(Pieces { left: whole, counted, gate: None, turn }))
}

/// The service of a worker.
pub(super) fn service(
    world: Rc<World>,
) -> impl Service<
    Request<Body>,
    Response = Response<Pieces>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Pieces>, Infallible>> + 'static,
> + Clone
+ 'static {
    tower::service_fn(move |request| answer(Counted::new(&world), request))
}

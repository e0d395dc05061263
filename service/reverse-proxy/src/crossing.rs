//! One exchange on its way through the proxy: what its two sides leave for each other.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use bolide_semantics::{End, ExchangeId, Head};
use bolide_server::{Agenda, Bytes, Chunk, LocalWaker, UpstreamTimes};

use crate::failure::Failure;
use crate::line::Desk;
use crate::tunnels::Wish;

/// A crossing as both sides hold it.
pub(crate) type Shared = Rc<RefCell<Crossing>>;

/// What the client's side and the upstream's side of one exchange leave for each other.
#[derive(Debug)]
pub(crate) struct Crossing {
    /// The request's head, as it is sent on.
    pub(crate) request: Head,
    /// The request's body.
    pub(crate) up: Flow,
    /// Interim responses that the client has not got yet.
    pub(crate) interim: VecDeque<Head>,
    /// The answer's head, as it is sent on, once it has come; taken with whether a body follows.
    pub(crate) answer: Option<End>,
    pub(crate) answer_head: Head,
    /// The answer's body.
    pub(crate) down: Flow,
    pub(crate) failure: Option<Failure>,
    /// A head has come: nothing is repeated any more.
    pub(crate) answered: bool,
    /// It asks to go on with another protocol.
    pub(crate) wish: Option<Box<Wish>>,
    /// The upstream was asked that, too, when the request was sent last.
    pub(crate) wish_sent: bool,
    /// What follows the answer's head goes both ways, as it is.
    pub(crate) tunnel: bool,
    /// Some of the request's body has left: it can't be sent again.
    pub(crate) body_left: bool,
    /// It waits in a pool for a connection.
    pub(crate) waits: bool,
    /// The client's side is over.
    pub(crate) abandoned: bool,
    /// The client's side, and whether it was woken and has not looked yet.
    pub(crate) waker: Option<LocalWaker>,
    pub(crate) woken: bool,
    /// The line that carries it, and whether it lies there to be looked at.
    pub(crate) line: Option<Rc<Desk>>,
    pub(crate) listed: bool,
    /// Its number on the line, once it was sent.
    pub(crate) exchange: Option<ExchangeId>,
    /// When its upstream was chosen, and when what came of it.
    pub(crate) times: Option<UpstreamTimes>,
    /// When the upstream last moved, or was last given something to move on.
    pub(crate) moved: Option<Instant>,
}

/// A body on its way, in one direction.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// What has come and has not been passed on: at most what the windows of the side it came from allow.
    pub(crate) pieces: VecDeque<Chunk>,
    /// Nothing follows the pieces, but trailers.
    pub(crate) ended: bool,
    pub(crate) trailers: Option<Box<Head>>,
    /// The end was passed on too.
    pub(crate) finished: bool,
    /// Bytes that were passed on and not yet reported as consumed to the side they came from.
    pub(crate) taken_bytes: usize,
    /// The side it goes to takes no more for now.
    pub(crate) blocked: bool,
}

/// What is to be passed on next.
#[derive(Debug)]
pub(crate) enum Next {
    Piece(Chunk, End),
    Trailers(Box<Head>),
}

impl Flow {
    /// A body that ends before it begins.
    pub(crate) fn none() -> Self {
        Self { ended: true, finished: true, ..Self::default() }
    }

    /// What came.
    pub(crate) fn push(&mut self, piece: Bytes, end: End) {
        if !piece.is_empty() {
            self.pieces.push_back(piece.into());
        }
        self.ended |= end == End::Yes;
    }

    /// Takes the next part. It must be passed on, for it counts as taken.
    pub(crate) fn next(&mut self) -> Option<Next> {
        if let Some(piece) = self.pieces.pop_front() {
            self.taken_bytes += piece.bytes.len();
            self.finished = self.ended && self.pieces.is_empty() && self.trailers.is_none();
            return Some(Next::Piece(piece, if self.finished { End::Yes } else { End::No }));
        }
        if !self.ended || std::mem::replace(&mut self.finished, true) {
            return None;
        }
        Some(self.trailers.take().map_or(Next::Piece(Chunk::default(), End::Yes), Next::Trailers))
    }

    /// The bytes to report as consumed, once.
    pub(crate) fn taken(&mut self) -> usize {
        std::mem::take(&mut self.taken_bytes)
    }

    /// What stays for longer must not keep whole blocks of the worker's receive buffer.
    pub(crate) fn settle(&mut self) {
        bolide_server::settle(self.pieces.make_contiguous());
    }
}

impl Crossing {
    pub(crate) fn new(request: Head, up: Flow, wish: Option<Box<Wish>>) -> Self {
        Self {
            request,
            up,
            interim: VecDeque::new(),
            answer: None,
            answer_head: Head::default(),
            down: Flow::default(),
            failure: None,
            answered: false,
            wish,
            wish_sent: false,
            tunnel: false,
            body_left: false,
            waits: false,
            abandoned: false,
            waker: None,
            woken: false,
            line: None,
            listed: false,
            exchange: None,
            times: None,
            moved: None,
        }
    }

    /// Notes when something happened at the upstream.
    pub(crate) fn came_to(
        &mut self,
        what: fn(&mut UpstreamTimes) -> &mut Option<Instant>,
        now: Instant,
    ) {
        if let Some(times) = &mut self.times {
            *what(times) = Some(now);
        }
    }

    /// The wish, if the upstream was asked for it.
    pub(crate) fn asked(&self) -> Option<&Wish> {
        self.wish.as_deref().filter(|_| self.wish_sent)
    }

    /// It did not succeed; the client's side decides what follows.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.line = None;
        self.exchange = None;
        self.failure = Some(failure);
    }

    /// Wakes the client's side.
    pub(crate) fn wake(&mut self, agenda: &mut Agenda) {
        if let Some(waker) = self.waker.as_ref().filter(|_| !self.woken && !self.abandoned) {
            self.woken = true;
            waker.wake(agenda);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_copied_once_at_most_however_much_joins_it() {
        let mut flow = Flow::default();
        let lent = Bytes::from(vec![7; 16 * 1024]);
        let mut addresses = Vec::new();
        for _ in 0..10 {
            flow.push(lent.clone(), End::No);
            flow.settle();
            let now: Vec<_> = flow.pieces.iter().map(|piece| piece.bytes.as_ptr()).collect();
            assert_eq!(now[..addresses.len()], addresses);
            addresses = now;
        }
        assert!(!addresses.contains(&lent.as_ptr()), "a frame alone must not keep its block");
    }
}

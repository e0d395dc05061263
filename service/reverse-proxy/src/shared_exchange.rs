//! One exchange on its way through the proxy: what its two sides leave for each other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use bolide_client::{ConnectionKey, WaitKey};
use bolide_semantics::{End, ExchangeId, Head};
use bolide_server::{
    Agenda, Bytes, Chunk, Destination, LocalWaker, Token, UpstreamTimes, WaitingPieces, Waker,
};

use crate::failure::Failure;
use crate::tunnels::Wish;

/// Pieces below this size are copied and merged, in bytes: what keeping a piece takes is then at most a small part of it, however small
/// the chunks and frames are that a body comes in, and the worker keeps its block to read into.
const MERGE_BELOW_BYTES: usize = 2 * 1024;

/// The most that small pieces are merged into, in bytes.
const MERGED_BYTES_MAX: usize = 16 * 1024;

/// An exchange as both sides hold it.
pub(crate) type Shared = Rc<RefCell<SharedExchange>>;

/// State that the client's side and the upstream's side of one exchange leave for each other.
#[derive(Debug)]
pub(crate) struct SharedExchange {
    /// The request's head, as it is sent on.
    pub(crate) request: Head,
    /// The request's body.
    pub(crate) up: Flow,
    /// Interim responses that the client has not got yet.
    pub(crate) interim: VecDeque<Head>,
    /// The response's head, as it is sent on, once it has come; taken with whether a body follows.
    pub(crate) response: Option<End>,
    pub(crate) response_head: Head,
    /// The response's body.
    pub(crate) down: Flow,
    pub(crate) failure: Option<Failure>,
    /// A head has come: nothing is repeated any more.
    pub(crate) answered: bool,
    /// The change to another protocol.
    pub(crate) switch: Switch,
    /// Some of the request's body has left: it can't be sent again.
    pub(crate) body_left: bool,
    /// It waits in its upstream's pool for a connection.
    pub(crate) waits: Option<WaitKey>,
    /// The side of the client.
    pub(crate) client: Client,
    /// The connection that carries it to the upstream.
    pub(crate) carrier: Carrier,
    /// When its upstream was chosen, and when what came of it.
    pub(crate) times: Option<UpstreamTimes>,
    /// When the upstream last moved, or was last given something to move on.
    pub(crate) moved: Option<Instant>,
}

/// The side of the client.
#[derive(Debug)]
pub(crate) struct Client {
    /// The client's side is over.
    pub(crate) abandoned: bool,
    /// The client's side, and whether it was woken and has not looked yet.
    pub(crate) waker: Option<LocalWaker>,
    pub(crate) woken: bool,
}

/// The connection that carries it to the upstream.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// The connection that carries it, and whether it lies there to be looked at.
    pub(crate) connection: Option<Rc<ConnectionTasks>>,
    pub(crate) listed: bool,
    /// Its number on the connection, once it was sent.
    pub(crate) exchange: Option<ExchangeId>,
    /// Bytes of the request that waited to be written when some were given last, or when it was late.
    pub(crate) unwritten: u64,
}

/// The change to another protocol.
#[derive(Debug)]
pub(crate) struct Switch {
    /// It asks to go on with another protocol.
    pub(crate) wish: Option<Box<Wish>>,
    /// The upstream was asked that, too, when the request was sent last.
    pub(crate) wish_sent: bool,
    /// Mark: what follows the response's head goes both ways, as it is.
    pub(crate) tunnel: bool,
}

/// Inbox in which the client's sides leave what a connection is to look at.
#[derive(Debug)]
pub(crate) struct ConnectionTasks {
    /// Destination of the connection.
    pub(crate) to: Destination,
    /// Keeps its backend.
    _lease: Rc<()>,
    pub(crate) key: Cell<Option<ConnectionKey>>,
    /// The upstream is no longer there: the connection takes no more requests.
    pub(crate) is_leaving: Cell<bool>,
    pub(crate) token: Cell<Option<Token>>,
    /// Calls the connection from where no agenda is at hand.
    pub(crate) waker: RefCell<Option<Waker>>,
    pub(crate) inbox: RefCell<Vec<Shared>>,
    /// Many exchanges share the connection, and its receive window.
    pub(crate) is_multiplexed: Cell<bool>,
}

impl ConnectionTasks {
    pub(crate) fn new(to: Destination, lease: Rc<()>) -> Self {
        Self {
            to,
            _lease: lease,
            key: Cell::default(),
            is_leaving: Cell::default(),
            token: Cell::default(),
            waker: RefCell::default(),
            inbox: RefCell::default(),
            is_multiplexed: Cell::default(),
        }
    }

    /// Leaves an exchange to be looked at. Returns whom to call, unless that was done before.
    pub(crate) fn leave(&self, state: Shared) -> Option<Token> {
        let mut inbox = self.inbox.borrow_mut();
        inbox.push(state);
        self.token.get().filter(|_| inbox.len() == 1)
    }

    pub(crate) fn token(&self) -> Option<Token> {
        self.token.get()
    }

    /// Calls the connection, later than [`Agenda::call`] would.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake();
        }
    }
}

/// A body on its way, in one direction.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Pieces that have come and have not been passed on: at most what the windows of the side it came from allow.
    pieces: WaitingPieces<Chunk>,
    /// Small pieces that follow them.
    merged: Vec<u8>,
    /// The bytes of the pieces.
    pieces_bytes: usize,
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

/// Part that is to be passed on next.
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

    /// Adds what came.
    pub(crate) fn push(&mut self, piece: Bytes, end: End) {
        self.ended |= end == End::Yes;
        if piece.is_empty() {
            return;
        }
        let is_small = piece.len() < MERGE_BELOW_BYTES;
        if !is_small || self.merged.len() + piece.len() > MERGED_BYTES_MAX {
            self.end_merging();
        }
        if is_small {
            self.merged.extend_from_slice(&piece);
        } else {
            self.push_chunk(piece.into());
        }
    }

    fn push_chunk(&mut self, chunk: Chunk) {
        self.pieces_bytes += chunk.bytes.len();
        self.pieces.push(chunk);
    }

    /// The memory of what waits, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let places = self.pieces.capacity() * size_of::<Chunk>();
        let trailers = self.trailers.as_ref().map_or(0, |trailers| trailers.allocated_bytes());
        self.pieces_bytes + places + self.merged.capacity() + trailers
    }

    /// Makes a piece of what was merged.
    fn end_merging(&mut self) {
        if !self.merged.is_empty() {
            let merged = Chunk::kept(std::mem::take(&mut self.merged).into());
            self.push_chunk(merged);
        }
    }

    /// Returns whether nothing waits to be passed on but the end or trailers.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.merged.is_empty()
    }

    /// Takes the next part. It must be passed on, for it counts as taken.
    pub(crate) fn next(&mut self) -> Option<Next> {
        if self.pieces.is_empty() {
            self.end_merging();
        }
        if let Some(piece) = self.pieces.pop() {
            self.pieces_bytes -= piece.bytes.len();
            self.taken_bytes += piece.bytes.len();
            self.finished = self.ended && self.is_empty() && self.trailers.is_none();
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

    /// Detaches what stays for longer, so that it keeps no whole blocks of the worker's receive buffer. Returns how many pieces it looked at.
    pub(crate) fn settle(&mut self) -> usize {
        self.pieces.settle()
    }
}

impl SharedExchange {
    pub(crate) fn new(request: Head, up: Flow, wish: Option<Box<Wish>>) -> Self {
        Self {
            request,
            up,
            interim: VecDeque::new(),
            response: None,
            response_head: Head::default(),
            down: Flow::default(),
            failure: None,
            answered: false,
            body_left: false,
            waits: None,
            times: None,
            moved: None,
            switch: Switch { wish, wish_sent: false, tunnel: false },
            client: Client { abandoned: false, waker: None, woken: false },
            carrier: Carrier { connection: None, listed: false, exchange: None, unwritten: 0 },
        }
    }

    /// The memory that it keeps, in bytes: heads, and the response's body on its way. The request's body counts as not
    /// consumed where it came from.
    pub(crate) fn held_bytes(&self) -> usize {
        let interim: usize = self.interim.iter().map(Head::allocated_bytes).sum();
        let heads = self.request.allocated_bytes() + self.response_head.allocated_bytes();
        size_of::<Self>() + heads + interim + self.down.held_bytes()
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
        self.switch.wish.as_deref().filter(|_| self.switch.wish_sent)
    }

    /// It did not succeed; the client's side decides what follows.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.carrier.connection = None;
        self.carrier.exchange = None;
        self.failure = Some(failure);
    }

    /// Wakes the client's side.
    pub(crate) fn wake(&mut self, agenda: &mut Agenda) {
        if let Some(waker) =
            self.client.waker.as_ref().filter(|_| !self.client.woken && !self.client.abandoned)
        {
            self.client.woken = true;
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

    #[test]
    fn however_small_the_pieces_of_a_body_are_to_keep_one_more_looks_at_few() {
        for (size, count) in [(1, 262_144), (MERGE_BELOW_BYTES, 4096), (16 * 1024, 512)] {
            let mut flow = Flow::default();
            let (mut looked_at, mut most) = (0, 0);
            for _ in 0..count {
                flow.push(Bytes::from(vec![7; size]), End::No);
                looked_at += flow.settle();
                most = most.max(flow.pieces.len());
            }
            assert!(looked_at <= count, "{looked_at} for {count} pieces of {size}");
            assert!(most <= (count * size).div_ceil(MERGE_BELOW_BYTES), "{most} pieces");
            // One is passed on for each that comes.
            looked_at = 0;
            for _ in 0..count {
                assert!(flow.next().is_some());
                flow.push(Bytes::from(vec![7; size]), End::No);
                looked_at += flow.settle();
            }
            assert!(looked_at <= 2 * count, "{looked_at} for {count} pieces of {size}");
        }
    }

    #[test]
    fn small_pieces_are_merged_in_order_and_the_last_ends_the_body() {
        let mut flow = Flow::default();
        let mut sent = Vec::new();
        for (nth, size) in [1, 5, 5000, 7, 2047, 2048, 1, 9000, 100].into_iter().enumerate() {
            let piece = vec![nth as u8; size];
            sent.extend_from_slice(&piece);
            flow.push(piece.into(), End::No);
            flow.settle();
        }
        flow.push(Bytes::new(), End::Yes);
        let (mut passed_on, mut ends) = (Vec::new(), Vec::new());
        while let Some(Next::Piece(piece, end)) = flow.next() {
            passed_on.extend_from_slice(&piece.bytes);
            ends.push(end);
        }
        assert_eq!(passed_on, sent);
        assert_eq!(flow.taken(), sent.len());
        assert_eq!(ends.iter().position(|end| *end == End::Yes), Some(ends.len() - 1));
        assert!(flow.finished && flow.is_empty());
    }

    #[test]
    fn the_rest_of_a_block_that_was_passed_on_is_copied() {
        let mut flow = Flow::default();
        let block = Bytes::from(vec![7; 128 * 1024]);
        for start in (0..block.len()).step_by(16 * 1024) {
            flow.push(block.slice(start + 9..start + 16 * 1024), End::No);
        }
        for left in (1..=8).rev() {
            flow.settle();
            assert_eq!(flow.pieces.len(), left);
            let is_lent = flow.pieces.iter().any(Chunk::is_lent);
            assert_eq!(is_lent, left > 4, "{left} pieces are left");
            flow.next();
        }
    }
}

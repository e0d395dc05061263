//! The connections that a thread is to have: each is a seat, which is filled again when its connection
//! breaks. Seats are dealt to the servers of the run in turn, and stay theirs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bolide_eventloop::Token;

/// Connections that a thread makes at the same time before a phase: more would overflow a server's
/// backlog.
const DIALS_MAX_COUNT: usize = 128;

/// The pause after the first connect that failed; it doubles with each further one. Nanoseconds (10 ms).
const PAUSE_LEAST_NS: u64 = 10_000_000;

/// The longest pause, in nanoseconds (500 ms).
const PAUSE_MOST_NS: u64 = 500_000_000;

/// One connection's place.
#[derive(Debug, Default)]
struct Seat {
    /// The server that its connections go to.
    server: usize,
    /// The connection, from when it begins.
    token: Option<Token>,
    ready: bool,
    /// When its connection was asked for.
    dialed_ns: u64,
    /// It stands in the queue of those that can take a request.
    queued: bool,
    /// Requests that it was given a turn for.
    promised: u32,
    /// Requests that it could take when it was looked at last, without those promised.
    room: u32,
    /// Connects that failed, one after the other.
    failures: u32,
    /// A request of its own waits for the connection: when that began.
    request_ns: Option<u64>,
}

/// The seats of one server.
#[derive(Debug, Default, Clone)]
struct OfServer {
    /// Those that can take a request, the one that waited longest first.
    free: VecDeque<u32>,
    ready: usize,
    /// Since when every connect has failed and no connection is left.
    down_since_ns: Option<u64>,
}

/// All seats of a thread.
#[derive(Debug)]
pub(super) struct Seats {
    seats: Vec<Seat>,
    /// How many of them are to be filled, from the first on.
    wanted: usize,
    vacant: VecDeque<u32>,
    /// Until when seats rest after a connect that failed.
    resting: BinaryHeap<Reverse<(u64, u32)>>,
    servers: Vec<OfServer>,
    dialing: usize,
}

impl Seats {
    pub(super) fn new(count: usize, servers: usize) -> Self {
        let seat = |index| Seat { server: index % servers, ..Seat::default() };
        Self {
            seats: (0..count).map(seat).collect(),
            wanted: 0,
            vacant: (0..count as u32).collect(),
            resting: BinaryHeap::new(),
            servers: vec![OfServer::default(); servers],
            dialing: 0,
        }
    }

    /// The server that a seat's connections go to.
    #[inline]
    pub(super) fn server(&self, seat: u32) -> usize {
        self.seats[seat as usize].server
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.seats.len()
    }

    /// Fills the first `count` seats from now on.
    pub(super) fn want(&mut self, count: usize) {
        self.wanted = count;
    }

    /// Returns whether all that are wanted are ready.
    pub(super) fn is_complete(&self) -> bool {
        self.servers.iter().map(|server| server.ready).sum::<usize>() >= self.wanted
    }

    /// Since when a server has not answered any more.
    pub(super) fn down_since_ns(&self) -> Option<u64> {
        self.servers.iter().filter_map(|server| server.down_since_ns).min()
    }

    /// The connections there are.
    pub(super) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.seats.iter().filter_map(|seat| seat.token)
    }

    /// The next seat to make a connection for. `all`: any, however many are being made.
    pub(super) fn next_vacant(&mut self, all: bool, now_ns: u64) -> Option<u32> {
        while let Some(Reverse((until_ns, seat))) = self.resting.peek()
            && *until_ns <= now_ns
        {
            self.vacant.push_back(*seat);
            self.resting.pop();
        }
        if all {
            return self.vacant.pop_front();
        }
        if self.dialing >= DIALS_MAX_COUNT {
            return None;
        }
        // In the order of their places, so that the first ones come first.
        let place = self.vacant.iter().position(|seat| (*seat as usize) < self.wanted)?;
        self.vacant.remove(place)
    }

    /// A seat that was to be filled is not, for now.
    pub(super) fn give_back(&mut self, seat: u32) {
        self.vacant.push_front(seat);
    }

    /// When the next seat has rested enough.
    pub(super) fn rested_at(&self) -> Option<u64> {
        self.resting.peek().map(|Reverse((until_ns, _))| *until_ns)
    }

    /// A connection is asked for, and with it the request that began at `request_ns`.
    pub(super) fn dial(&mut self, seat: u32, now_ns: u64, request_ns: Option<u64>) {
        self.dialing += 1;
        let seat = &mut self.seats[seat as usize];
        seat.dialed_ns = now_ns;
        seat.request_ns = request_ns;
    }

    /// The connection has begun. Returns when it was asked for, and its request.
    pub(super) fn begun(&mut self, seat: u32, token: Token) -> (u64, Option<u64>) {
        let seat = &mut self.seats[seat as usize];
        seat.token = Some(token);
        (seat.dialed_ns, seat.request_ns.take())
    }

    /// Requests can be sent on it.
    pub(super) fn became_ready(&mut self, seat: u32) {
        self.dialing -= 1;
        let seat = &mut self.seats[seat as usize];
        seat.ready = true;
        seat.failures = 0;
        let server = &mut self.servers[seat.server];
        server.ready += 1;
        server.down_since_ns = None;
    }

    /// The connect failed. Returns the request that waited for it.
    pub(super) fn failed(&mut self, index: u32, now_ns: u64) -> Option<u64> {
        self.dialing -= 1;
        let seat = &mut self.seats[index as usize];
        let server = &mut self.servers[seat.server];
        if server.ready == 0 {
            server.down_since_ns.get_or_insert(now_ns);
        }
        seat.token = None;
        let pause = (PAUSE_LEAST_NS << seat.failures.min(10)).min(PAUSE_MOST_NS);
        seat.failures += 1;
        self.resting.push(Reverse((now_ns + pause, index)));
        seat.request_ns.take()
    }

    /// A connection that was ready has left its seat. Returns the requests that it was promised.
    pub(super) fn left(&mut self, index: u32) -> u32 {
        let seat = &mut self.seats[index as usize];
        self.servers[seat.server].ready -= 1;
        seat.token = None;
        seat.ready = false;
        seat.room = 0;
        self.vacant.push_back(index);
        std::mem::take(&mut seat.promised)
    }

    /// A connection can take so many requests.
    #[inline]
    pub(super) fn has_room(&mut self, index: u32, room: u32) {
        let seat = &mut self.seats[index as usize];
        seat.room = room;
        if room > 0 && !seat.queued {
            seat.queued = true;
            self.servers[seat.server].free.push_back(index);
        }
    }

    /// The connection's turn has come: what it was promised.
    #[inline]
    pub(super) fn take_promised(&mut self, index: u32) -> u32 {
        std::mem::take(&mut self.seats[index as usize].promised)
    }

    /// Promises a request to the seat of a server that waited longest; its token, if it must be called for that.
    pub(super) fn promise(&mut self, server: usize) -> Option<Option<Token>> {
        let free = &mut self.servers[server].free;
        while let Some(index) = free.pop_front() {
            let seat = &mut self.seats[index as usize];
            seat.queued = false;
            let Some(token) = seat.token.filter(|_| seat.ready && seat.room > seat.promised) else {
                continue;
            };
            seat.promised += 1;
            if seat.room > seat.promised {
                seat.queued = true;
                free.push_back(index);
            }
            return Some((seat.promised == 1).then_some(token));
        }
        None
    }

    /// Returns whether some seat of a server can take a request.
    #[inline]
    pub(super) fn has_free(&self, server: usize) -> bool {
        !self.servers[server].free.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(seats: &mut Seats, key: u64) -> u32 {
        let seat = seats.next_vacant(true, 0).unwrap();
        seats.dial(seat, 0, None);
        seats.begun(seat, Token::from_key(key));
        seats.became_ready(seat);
        seat
    }

    #[test]
    fn requests_are_dealt_in_turn_while_there_is_room() {
        let mut seats = Seats::new(2, 1);
        let (one, two) = (ready(&mut seats, 11), ready(&mut seats, 12));
        assert_eq!(seats.promise(0), None);
        seats.has_room(one, 2);
        seats.has_room(two, 1);
        assert_eq!(seats.promise(0), Some(Some(Token::from_key(11))));
        assert_eq!(seats.promise(0), Some(Some(Token::from_key(12))));
        // The first one will be called anyway.
        assert_eq!(seats.promise(0), Some(None));
        assert_eq!(seats.promise(0), None);
        assert_eq!((seats.take_promised(one), seats.take_promised(one)), (2, 0));
        assert_eq!(seats.left(two), 1);
    }

    #[test]
    fn pauses_grow_and_the_server_is_down_until_somebody_gets_through() {
        let mut seats = Seats::new(1, 1);
        seats.want(1);
        let mut now = 5;
        for pause in [10, 20, 40, 80, 160, 320, 500, 500] {
            let seat = seats.next_vacant(false, now).unwrap();
            seats.dial(seat, now, Some(now));
            assert_eq!(seats.failed(seat, now), Some(now));
            assert_eq!(seats.next_vacant(false, now), None);
            now += pause * 1_000_000;
            assert_eq!(seats.rested_at(), Some(now));
            assert_eq!(seats.down_since_ns(), Some(5));
        }
        assert_eq!(seats.next_vacant(false, now), Some(0));
        seats.dial(0, now, None);
        seats.begun(0, Token::from_key(1));
        seats.became_ready(0);
        assert_eq!(seats.down_since_ns(), None);
        assert!(seats.is_complete());
    }

    #[test]
    fn each_server_has_its_own_seats_and_may_be_down_by_itself() {
        let mut seats = Seats::new(3, 2);
        seats.want(3);
        let tokens = [11, 12, 13].map(|key| (ready(&mut seats, key), key));
        for (seat, _) in tokens {
            seats.has_room(seat, 1);
        }
        assert_eq!(tokens.map(|(seat, _)| seats.server(seat)), [0, 1, 0]);
        assert_eq!(seats.promise(1), Some(Some(Token::from_key(12))));
        assert_eq!((seats.promise(1), seats.has_free(1), seats.has_free(0)), (None, false, true));
        assert_eq!(seats.promise(0), Some(Some(Token::from_key(11))));
        // The second server's only connection breaks, and nothing else can be made.
        seats.left(1);
        let seat = seats.next_vacant(false, 5).unwrap();
        seats.dial(seat, 5, None);
        seats.failed(seat, 7);
        assert_eq!((seat, seats.down_since_ns(), seats.is_complete()), (1, Some(7), false));
    }

    #[test]
    fn only_what_is_wanted_is_filled() {
        let mut seats = Seats::new(3, 1);
        assert_eq!(seats.next_vacant(false, 0), None);
        seats.want(1);
        assert_eq!(seats.next_vacant(false, 0), Some(0));
        assert_eq!(seats.next_vacant(false, 0), None);
        assert_eq!(seats.next_vacant(true, 0), Some(1));
    }
}

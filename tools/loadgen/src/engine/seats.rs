//! The connections that a thread is to have: each is a seat, which is filled again when its connection
//! breaks.

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

/// All seats of a thread.
#[derive(Debug, Default)]
pub(super) struct Seats {
    seats: Vec<Seat>,
    /// How many of them are to be filled, from the first on.
    wanted: usize,
    vacant: VecDeque<u32>,
    /// Until when seats rest after a connect that failed.
    resting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Seats that can take a request, the one that waited longest first.
    free: VecDeque<u32>,
    dialing: usize,
    ready: usize,
    /// Since when every connect has failed and no connection is left.
    down_since_ns: Option<u64>,
}

impl Seats {
    pub(super) fn new(count: usize) -> Self {
        let seats = (0..count).map(|_| Seat::default()).collect();
        Self { seats, vacant: (0..count as u32).collect(), ..Self::default() }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.seats.len()
    }

    /// Fills the first `count` seats from now on.
    pub(super) fn want(&mut self, count: usize) {
        self.wanted = count;
    }

    /// Whether all that are wanted are ready.
    pub(super) fn is_complete(&self) -> bool {
        self.ready >= self.wanted
    }

    /// Since when nothing has answered any more.
    pub(super) fn down_since_ns(&self) -> Option<u64> {
        self.down_since_ns
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
        self.ready += 1;
        self.down_since_ns = None;
        let seat = &mut self.seats[seat as usize];
        seat.ready = true;
        seat.failures = 0;
    }

    /// The connect failed. Returns the request that waited for it.
    pub(super) fn failed(&mut self, index: u32, now_ns: u64) -> Option<u64> {
        self.dialing -= 1;
        if self.ready == 0 {
            self.down_since_ns.get_or_insert(now_ns);
        }
        let seat = &mut self.seats[index as usize];
        seat.token = None;
        let pause = (PAUSE_LEAST_NS << seat.failures.min(10)).min(PAUSE_MOST_NS);
        seat.failures += 1;
        self.resting.push(Reverse((now_ns + pause, index)));
        seat.request_ns.take()
    }

    /// A connection that was ready has left its seat. Returns the requests that it was promised.
    pub(super) fn left(&mut self, index: u32) -> u32 {
        self.ready -= 1;
        let seat = &mut self.seats[index as usize];
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
            self.free.push_back(index);
        }
    }

    /// The connection's turn has come: what it was promised.
    #[inline]
    pub(super) fn take_promised(&mut self, index: u32) -> u32 {
        std::mem::take(&mut self.seats[index as usize].promised)
    }

    /// Promises a request to the seat that waited longest; its token, if it must be called for that.
    pub(super) fn promise(&mut self) -> Option<Option<Token>> {
        while let Some(index) = self.free.pop_front() {
            let seat = &mut self.seats[index as usize];
            seat.queued = false;
            let Some(token) = seat.token.filter(|_| seat.ready && seat.room > seat.promised) else {
                continue;
            };
            seat.promised += 1;
            if seat.room > seat.promised {
                seat.queued = true;
                self.free.push_back(index);
            }
            return Some((seat.promised == 1).then_some(token));
        }
        None
    }

    /// Whether some seat can take a request.
    #[inline]
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
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
        let mut seats = Seats::new(2);
        let (one, two) = (ready(&mut seats, 11), ready(&mut seats, 12));
        assert_eq!(seats.promise(), None);
        seats.has_room(one, 2);
        seats.has_room(two, 1);
        assert_eq!(seats.promise(), Some(Some(Token::from_key(11))));
        assert_eq!(seats.promise(), Some(Some(Token::from_key(12))));
        // The first one will be called anyway.
        assert_eq!(seats.promise(), Some(None));
        assert_eq!(seats.promise(), None);
        assert_eq!((seats.take_promised(one), seats.take_promised(one)), (2, 0));
        assert_eq!(seats.left(two), 1);
    }

    #[test]
    fn pauses_grow_and_the_server_is_down_until_somebody_gets_through() {
        let mut seats = Seats::new(1);
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
    fn only_what_is_wanted_is_filled() {
        let mut seats = Seats::new(3);
        assert_eq!(seats.next_vacant(false, 0), None);
        seats.want(1);
        assert_eq!(seats.next_vacant(false, 0), Some(0));
        assert_eq!(seats.next_vacant(false, 0), None);
        assert_eq!(seats.next_vacant(true, 0), Some(1));
    }
}

//! RFC 9112 §9.3, RFC 9113 §9.1: connections to one server that are used again, and who waits for one.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use slab::Slab;

/// Names a connection of a [`Pool`] for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionKey(usize);

/// Names a request that waits in a [`Pool`]; never given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitKey(i64);

/// A place among the requests that wait: empty once its request was taken back.
#[derive(Debug)]
struct Waiting<W> {
    key: WaitKey,
    due: Instant,
    request: Option<W>,
}

/// How much a [`Pool`] holds.
#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// How many connections, those that are being made among them, and those that have become tunnels not.
    pub connections_count: usize,
    /// How many requests may wait for a connection.
    pub waiting_count: usize,
    /// How long each may wait.
    pub wait_timeout: Duration,
}

/// Numbers of a [`Pool`]'s connections and requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolCensus {
    /// Connections that are being made.
    pub connecting: usize,
    /// Connections that are ready.
    pub open: usize,
    /// Those of them that carry at least one request.
    pub busy: usize,
    /// Those of them that carry a tunnel and nothing else.
    pub tunnels: usize,
    /// Requests that wait for a connection.
    pub waiting: usize,
}

/// A connection with what its owner keeps at it.
#[derive(Debug)]
struct PooledConnection<L> {
    held: L,
    /// Requests that it may carry at once; 0 until it is ready, and once it draws to its end.
    capacity: u32,
    outstanding: u32,
    ready: bool,
    is_tunnel: bool,
}

/// The connections of one worker to one server, and the requests that wait for one.
///
/// It makes no connection itself: its owner asks [how many are wanted](Self::dials_wanted), and tells what
/// becomes of them. A request goes to the connection that was used last and has room, so that what is not needed
/// falls idle.
pub struct Pool<L, W> {
    limits: PoolLimits,
    connections: Slab<PooledConnection<L>>,
    /// Connections with room, the one used last at the end.
    roomy: Vec<usize>,
    /// By rising key. The first is never an empty place, and of the others at most as many are empty as are not.
    waiting: VecDeque<Waiting<W>>,
    waiting_count: usize,
    /// No request that waits is due before.
    not_due_before: Option<Instant>,
    /// The keys of the next that waits behind all others, and of the next that waits before them.
    next_keys: (i64, i64),
    connecting: usize,
    /// Connections with a request on them.
    busy: usize,
    /// Connections that have become tunnels.
    tunnels: usize,
    /// Multiplexing of the connection to it, once that is known.
    multiplexes: Option<bool>,
}

impl<L, W> fmt::Debug for Pool<L, W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (connections, waiting) = (self.connections.len(), self.waiting_count);
        let Self { connecting, multiplexes, .. } = self;
        write!(
            formatter,
            "Pool({connections} connections, {connecting} to come, {waiting} wait, {multiplexes:?})"
        )
    }
}

impl<L, W> Pool<L, W> {
    /// A pool without connections. `multiplexes`: whether one connection carries many requests, if that is
    /// known before there is one.
    #[must_use]
    pub fn new(limits: PoolLimits, multiplexes: Option<bool>) -> Self {
        let (connections, roomy, waiting) = (Slab::new(), Vec::new(), VecDeque::new());
        let (waiting_count, next_keys) = (0, (0, -1));
        let (connecting, busy, tunnels) = (0, 0, 0);
        Self {
            limits,
            connections,
            roomy,
            waiting,
            waiting_count,
            not_due_before: None,
            next_keys,
            connecting,
            busy,
            tunnels,
            multiplexes,
        }
    }

    /// Takes room for a request on a connection that has some.
    pub fn take(&mut self) -> Option<&L> {
        let key = *self.roomy.last()?;
        let connection = &mut self.connections[key];
        self.busy += usize::from(connection.outstanding == 0);
        connection.outstanding += 1;
        if connection.outstanding >= connection.capacity {
            self.roomy.pop();
        }
        Some(&connection.held)
    }

    /// Queues a request that no connection has room for.
    ///
    /// # Errors
    ///
    /// The request itself, when as many wait as may.
    pub fn wait(&mut self, request: W, now: Instant) -> Result<WaitKey, W> {
        if self.waiting_count >= self.limits.waiting_count {
            return Err(request);
        }
        let (key, due) = (WaitKey(self.next_keys.0), now + self.limits.wait_timeout);
        self.next_keys.0 += 1;
        self.waiting_count += 1;
        self.waiting.push_back(Waiting { key, due, request: Some(request) });
        Ok(key)
    }

    /// Queues a request again, before all others: its connection could not carry it.
    pub fn wait_first(&mut self, request: W, now: Instant) -> WaitKey {
        let (key, due) = (WaitKey(self.next_keys.1), now + self.limits.wait_timeout);
        self.next_keys.1 -= 1;
        self.waiting_count += 1;
        self.waiting.push_front(Waiting { key, due, request: Some(request) });
        key
    }

    /// Takes the request out that waits the longest.
    fn pop_waiting(&mut self) -> Option<W> {
        let request = self.waiting.pop_front()?.request;
        self.waiting_count -= usize::from(request.is_some());
        self.drop_empty();
        request
    }

    /// Drops empty places: at the beginning, and all when they are more than the others.
    fn drop_empty(&mut self) {
        while self.waiting.pop_front_if(|place| place.request.is_none()).is_some() {}
        if self.waiting.len() > 2 * self.waiting_count {
            self.waiting.retain(|place| place.request.is_some());
        }
    }

    /// How many connections are to be made now.
    #[must_use]
    pub fn dials_wanted(&self) -> usize {
        let room =
            self.limits.connections_count.saturating_sub(self.connections.len() - self.tunnels);
        let wanted = match self.multiplexes {
            Some(false) => self.waiting_count.saturating_sub(self.connecting),
            // What the first turns out to be decides about the next.
            Some(true) | None => usize::from(self.connecting == 0 && !self.waiting.is_empty()),
        };
        wanted.min(room)
    }

    /// A connection is being made; what is held at it names it to its owner.
    pub fn dial(&mut self, held: L) -> ConnectionKey {
        self.connecting += 1;
        ConnectionKey(self.connections.insert(PooledConnection {
            held,
            capacity: 0,
            outstanding: 0,
            ready: false,
            is_tunnel: false,
        }))
    }

    /// A connection is ready; for how much, [`Self::set_room`] says.
    pub fn ready(&mut self, key: ConnectionKey, multiplexes: bool) {
        self.connecting -= 1;
        self.multiplexes = Some(multiplexes);
        self.connections[key.0].ready = true;
    }

    /// A connection has become a tunnel, for as long as it lives: another may be made in its place.
    pub fn tunnel(&mut self, key: ConnectionKey) {
        let connection = &mut self.connections[key.0];
        self.tunnels += usize::from(!connection.is_tunnel);
        connection.is_tunnel = true;
    }

    /// A connection can carry so many requests more; 0 when it draws to its end.
    pub fn set_room(&mut self, key: ConnectionKey, room: u32) {
        let connection = &mut self.connections[key.0];
        let had_room = connection.outstanding < connection.capacity;
        connection.capacity =
            if room == 0 { 0 } else { connection.outstanding.saturating_add(room) };
        match (had_room, room > 0) {
            (false, true) => self.roomy.push(key.0),
            (true, false) => self.roomy.retain(|roomy| *roomy != key.0),
            _ => {}
        }
    }

    /// The next request that waits, for a connection that has room for it.
    pub fn next_waiting(&mut self, key: ConnectionKey) -> Option<W> {
        let connection = &self.connections[key.0];
        if connection.outstanding >= connection.capacity {
            return None;
        }
        let request = self.pop_waiting()?;
        let connection = &mut self.connections[key.0];
        self.busy += usize::from(connection.outstanding == 0);
        connection.outstanding += 1;
        if connection.outstanding >= connection.capacity {
            self.roomy.retain(|roomy| *roomy != key.0);
        }
        Some(request)
    }

    /// A request on a connection is over.
    pub fn done(&mut self, key: ConnectionKey) {
        let connection = &mut self.connections[key.0];
        connection.outstanding -= 1;
        self.busy -= usize::from(connection.outstanding == 0);
        if connection.outstanding + 1 == connection.capacity {
            self.roomy.push(key.0);
        }
    }

    /// A connection is over, or could not be made. Returns those who wait in vain: there is no other, and
    /// this one never carried a request.
    pub fn closed(&mut self, key: ConnectionKey) -> Vec<W> {
        if self.remove(key) || !self.connections.is_empty() {
            return Vec::new();
        }
        self.waiting_count = 0;
        self.waiting.drain(..).filter_map(|place| place.request).collect()
    }

    /// A connection could not be made, and the next goes elsewhere: those who wait have waited for nothing so
    /// far, and go on.
    pub fn elsewhere(&mut self, key: ConnectionKey, now: Instant) {
        self.remove(key);
        self.not_due_before = Some(now + self.limits.wait_timeout);
    }

    /// Takes a connection out. Whether it was ever ready.
    fn remove(&mut self, key: ConnectionKey) -> bool {
        let connection = self.connections.remove(key.0);
        self.roomy.retain(|roomy| *roomy != key.0);
        self.busy -= usize::from(connection.outstanding > 0);
        self.connecting -= usize::from(!connection.ready);
        self.tunnels -= usize::from(connection.is_tunnel);
        connection.ready
    }

    /// Returns who waits the longest.
    #[must_use]
    pub fn first_waiting(&self) -> Option<&W> {
        self.waiting.front()?.request.as_ref()
    }

    /// Takes a request back, if it still waits.
    pub fn forget(&mut self, key: WaitKey) -> Option<W> {
        let at = self.waiting.binary_search_by_key(&key, |place| place.key).ok()?;
        let request = self.waiting[at].request.take()?;
        self.waiting_count -= 1;
        self.drop_empty();
        Some(request)
    }

    /// When the first of those who wait has waited long enough.
    #[inline]
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.waiting
            .front()
            .map(|place| self.not_due_before.map_or(place.due, |at| at.max(place.due)))
    }

    /// The next request that has waited long enough.
    pub fn overdue(&mut self, now: Instant) -> Option<W> {
        if self.next_due()? <= now { self.pop_waiting() } else { None }
    }

    /// Returns whether a connection has room for a request.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.roomy.is_empty()
    }

    /// A connection that is ready and carries nothing.
    #[must_use]
    pub fn idle(&self) -> Option<&L> {
        let mut roomy = self.roomy.iter().map(|key| &self.connections[*key]);
        roomy.find(|connection| connection.outstanding == 0).map(|connection| &connection.held)
    }

    /// How many connections there are, and how many requests wait.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.connections.len(), self.waiting_count)
    }

    /// All that it holds, in numbers.
    #[must_use]
    pub fn census(&self) -> PoolCensus {
        let Self { connecting, busy, tunnels, waiting_count: waiting, .. } = *self;
        let open = self.connections.len() - connecting;
        PoolCensus { connecting, open, busy, tunnels, waiting }
    }

    /// The connections, in no particular order.
    pub fn connections(&self) -> impl Iterator<Item = &L> {
        self.connections.iter().map(|(_, connection)| &connection.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PoolLimits =
        PoolLimits { connections_count: 2, waiting_count: 3, wait_timeout: Duration::from_secs(1) };

    fn pool(multiplexes: Option<bool>) -> Pool<char, u32> {
        Pool::new(LIMITS, multiplexes)
    }

    #[test]
    fn a_connection_that_becomes_a_tunnel_makes_room_for_another() {
        let (mut pool, now) = (pool(Some(false)), Instant::now());
        for request in 0..3 {
            pool.wait(request, now).expect("there is room");
        }
        let (first, second) = (pool.dial('a'), pool.dial('b'));
        for key in [first, second] {
            pool.ready(key, false);
            pool.set_room(key, 1);
            assert!(pool.next_waiting(key).is_some());
            pool.set_room(key, 0);
        }
        assert_eq!(pool.dials_wanted(), 0);
        pool.tunnel(first);
        pool.tunnel(first);
        assert_eq!(pool.dials_wanted(), 1);
        assert_eq!(
            pool.census(),
            PoolCensus { open: 2, busy: 2, tunnels: 1, waiting: 1, connecting: 0 }
        );
        pool.closed(first);
        assert_eq!(pool.dials_wanted(), 1, "one of two is left");
        pool.dial('c');
        assert_eq!((pool.dials_wanted(), pool.census().tunnels), (0, 0));
    }

    #[test]
    fn requests_wait_in_order_and_within_limits() {
        let (mut pool, now) = (pool(Some(false)), Instant::now());
        assert_eq!(pool.take(), None);
        assert_eq!(pool.dials_wanted(), 0);
        for request in 0..3 {
            pool.wait(request, now).unwrap();
        }
        assert_eq!(pool.wait(3, now).unwrap_err(), 3);
        assert_eq!(pool.dials_wanted(), 2, "two connections are all there may be");
        let (a, b) = (pool.dial('a'), pool.dial('b'));
        assert_eq!(pool.dials_wanted(), 0);
        pool.ready(b, false);
        pool.set_room(b, 1);
        assert_eq!((pool.next_waiting(b), pool.next_waiting(b)), (Some(0), None));
        pool.done(b);
        pool.set_room(b, 1);
        assert_eq!(pool.next_waiting(b), Some(1));
        let census = PoolCensus { connecting: 1, open: 1, busy: 1, tunnels: 0, waiting: 1 };
        assert_eq!(pool.census(), census);
        assert_eq!(pool.overdue(now), None);
        assert_eq!(pool.overdue(now + LIMITS.wait_timeout), Some(2));
        assert_eq!(pool.next_due(), None);
        pool.ready(a, false);
        pool.set_room(a, 1);
        assert_eq!(pool.take(), Some(&'a'));
        assert_eq!(pool.take(), None);
    }

    #[test]
    fn the_line_used_last_is_used_next() {
        let mut pool = pool(Some(false));
        for name in ['a', 'b'] {
            let key = pool.dial(name);
            pool.ready(key, false);
            pool.set_room(key, 1);
        }
        assert_eq!(pool.take(), Some(&'b'));
        assert_eq!(pool.take(), Some(&'a'));
        pool.done(ConnectionKey(0));
        pool.done(ConnectionKey(1));
        assert_eq!(pool.census(), PoolCensus { open: 2, ..PoolCensus::default() });
        assert_eq!(pool.take(), Some(&'b'));
        assert_eq!(pool.census().busy, 1);
        pool.closed(ConnectionKey(1));
        assert_eq!(pool.census(), PoolCensus { open: 1, ..PoolCensus::default() });
    }

    #[test]
    fn a_multiplexed_line_carries_many() {
        let (mut pool, now) = (pool(None), Instant::now());
        pool.wait(0, now).unwrap();
        pool.wait(1, now).unwrap();
        assert_eq!(pool.dials_wanted(), 1);
        let key = pool.dial('a');
        assert_eq!(pool.dials_wanted(), 0, "the first decides");
        pool.ready(key, true);
        pool.set_room(key, 3);
        assert_eq!((pool.next_waiting(key), pool.next_waiting(key)), (Some(0), Some(1)));
        assert_eq!(pool.take(), Some(&'a'));
        assert_eq!(pool.take(), None);
        pool.done(key);
        pool.set_room(key, 0);
        assert_eq!(pool.take(), None, "it draws to its end");
        pool.set_room(key, 2);
        assert_eq!(pool.take(), Some(&'a'));
    }

    #[test]
    fn who_waits_in_vain_is_told() {
        let (mut pool, now) = (pool(Some(false)), Instant::now());
        let first = pool.wait(0, now).unwrap();
        pool.wait(1, now).unwrap();
        let (a, b) = (pool.dial('a'), pool.dial('b'));
        assert_eq!(pool.closed(a), Vec::<u32>::new(), "the other may still come");
        assert_eq!((pool.forget(first), pool.forget(first)), (Some(0), None));
        assert_eq!(pool.closed(b), [1]);
        assert_eq!(pool.counts(), (0, 0));
    }

    #[test]
    fn who_has_waited_for_an_address_that_fails_waits_as_long_for_the_next() {
        let (mut pool, now) = (pool(Some(false)), Instant::now());
        let half = LIMITS.wait_timeout / 2;
        pool.wait(0, now).unwrap();
        let key = pool.dial('a');
        pool.elsewhere(key, now + half);
        pool.wait(1, now + 2 * half).unwrap();
        assert_eq!(pool.next_due(), Some(now + 3 * half));
        assert_eq!(pool.overdue(now + 2 * half), None);
        assert_eq!(pool.overdue(now + 3 * half), Some(0));
        assert_eq!(pool.next_due(), Some(now + 4 * half));
    }

    #[test]
    fn requests_that_are_given_up_leave_few_places_and_the_order_of_the_others() {
        const COUNT: usize = 16_384;
        let limits = PoolLimits { waiting_count: COUNT, ..LIMITS };
        let (mut pool, now) = (Pool::<char, usize>::new(limits, Some(false)), Instant::now());
        let first = pool.wait(0, now).unwrap();
        // One stays in front, and the others come and go.
        for request in 1..COUNT {
            let key = pool.wait(request, now).unwrap();
            assert_eq!(pool.forget(key), Some(request));
            assert!(pool.waiting.len() <= 2, "{} places", pool.waiting.len());
        }
        let keys: Vec<_> = (1..COUNT).map(|request| pool.wait(request, now).unwrap()).collect();
        assert!(pool.wait(COUNT, now).is_err());
        let mut kept = 0;
        for (at, key) in keys.iter().enumerate().rev() {
            if at % 64 == 0 {
                kept += 1;
            } else {
                assert_eq!(pool.forget(*key), Some(at + 1));
            }
            assert!(pool.waiting.len() <= 2 * pool.waiting_count);
        }
        assert_eq!((pool.forget(first), pool.counts().1), (Some(0), kept));
        pool.wait_first(7, now);
        let key = pool.dial('a');
        pool.ready(key, false);
        pool.set_room(key, u32::MAX);
        assert_eq!(pool.next_waiting(key), Some(7));
        let rest: Vec<_> = std::iter::from_fn(|| pool.next_waiting(key)).collect();
        assert_eq!(rest, (0..kept).map(|nth| nth * 64 + 1).collect::<Vec<_>>());
    }
}

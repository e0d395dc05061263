//! RFC 9112 §9.2, §9.3.2: which requests are open, in order, and what their responses depend on.

use bolide_semantics::ExchangeId;
use http::Method;

/// Kind of a request, on which the framing of its response depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain = 0,
    /// HEAD: the response has no content.
    Head = 1,
    /// CONNECT: a 2xx response begins a tunnel.
    Connect = 2,
    /// Asked for another protocol: a 101 response begins a tunnel.
    Upgrade = 3,
}

impl Kind {
    #[inline]
    pub(crate) fn of(method: &Method, upgrade: bool) -> Self {
        match *method {
            Method::HEAD => Self::Head,
            Method::CONNECT => Self::Connect,
            _ if upgrade => Self::Upgrade,
            _ => Self::Plain,
        }
    }

    /// The kind with this number, of which the two lowest bits count.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::Plain,
            1 => Self::Head,
            2 => Self::Connect,
            _ => Self::Upgrade,
        }
    }
}

/// Facts about an open exchange: where its request begins in what a client sends, and two bits for its kind.
#[derive(Debug, Clone, Copy)]
struct Opened(u64);

impl Opened {
    #[inline]
    fn new(kind: Kind, start: u64) -> Self {
        Self(start << 2 | kind as u64)
    }

    #[inline]
    fn kind(self) -> Kind {
        Kind::from_bits(self.0)
    }

    #[inline]
    fn start(self) -> u64 {
        self.0 >> 2
    }
}

/// The most open exchanges, whatever the limits say.
pub(crate) const PLACES: usize = 64;

/// The open exchanges: a run of numbers. A server has at most one, a client up to
/// [`PLACES`].
#[derive(Debug)]
pub(crate) struct Exchanges {
    /// The number of the oldest open exchange, or of the next one.
    first: u32,
    count: u8,
    newest: Opened,
    /// Those before it, by their numbers modulo the most that can be open: one alone needs no memory on the heap.
    earlier: Option<Box<[Opened; PLACES]>>,
    /// The exchange that its owner gave up: its end is not reported.
    given_up: u32,
}

impl Exchanges {
    pub(crate) fn new() -> Self {
        Self { first: 1, count: 0, newest: Opened(0), earlier: None, given_up: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[inline]
    pub(crate) fn count(&self) -> u8 {
        self.count
    }

    /// How many exchanges there have been, with the open ones.
    #[inline]
    pub(crate) fn total(&self) -> u32 {
        self.first - 1 + u32::from(self.count)
    }

    /// Opens the next exchange. `start`: where its request begins in what a client sends.
    #[inline]
    pub(crate) fn open(&mut self, kind: Kind, start: u64) -> ExchangeId {
        debug_assert!(usize::from(self.count) < PLACES, "too many open exchanges");
        if self.count > 0 {
            let place = self.total() as usize % PLACES;
            self.earlier.get_or_insert_with(|| Box::new([Opened(0); PLACES]))[place] = self.newest;
        }
        self.newest = Opened::new(kind, start);
        self.count += 1;
        ExchangeId(self.total())
    }

    /// Returns what is known of an exchange that is open.
    #[inline]
    fn opened(&self, id: u32) -> Opened {
        match &self.earlier {
            Some(earlier) if id != self.total() => earlier[id as usize % PLACES],
            _ => self.newest,
        }
    }

    /// The oldest open exchange.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<(ExchangeId, Kind)> {
        (self.count > 0).then(|| (ExchangeId(self.first), self.opened(self.first).kind()))
    }

    /// Returns where the request of an open exchange begins in what a client sends.
    #[inline]
    pub(crate) fn start(&self, id: ExchangeId) -> u64 {
        self.opened(id.0).start()
    }

    /// Returns whether `id` is the oldest open exchange.
    #[inline]
    pub(crate) fn is_oldest(&self, id: ExchangeId) -> bool {
        self.count > 0 && id.0 == self.first
    }

    /// Returns whether `id` is open.
    pub(crate) fn contains(&self, id: ExchangeId) -> bool {
        id.0 >= self.first && id.0 <= self.total() && id.0 != self.given_up
    }

    /// Its owner gives `id` up, and with it the connection. Whether it was open.
    pub(crate) fn give_up(&mut self, id: ExchangeId) -> bool {
        let open = self.contains(id);
        if open {
            self.given_up = id.0;
        }
        open
    }

    /// Closes the oldest open exchange that was not given up.
    pub(crate) fn close_next(&mut self) -> Option<ExchangeId> {
        let id = self.close_oldest()?;
        if id.0 == self.given_up { self.close_oldest() } else { Some(id) }
    }

    /// Returns whether an open exchange may become a tunnel, or is one: the newest, for none is opened behind it.
    #[inline]
    pub(crate) fn may_switch(&self) -> bool {
        self.count > 0 && matches!(self.newest.kind(), Kind::Connect | Kind::Upgrade)
    }

    /// Closes the oldest open exchange.
    #[inline]
    pub(crate) fn close_oldest(&mut self) -> Option<ExchangeId> {
        let count = self.count.checked_sub(1)?;
        let id = ExchangeId(self.first);
        // The last number there is never closes into another: `total` is checked before opening.
        self.first = self.first.saturating_add(1);
        self.count = count;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn exchanges_are_a_queue(steps in proptest::collection::vec(0_u8..40, 0..600)) {
            let mut exchanges = Exchanges::new();
            let mut model = VecDeque::new();
            let mut next = 1;
            for step in steps {
                let kind = match step {
                    0 if next % 2 == 0 => Kind::Connect,
                    0 => Kind::Upgrade,
                    1..5 => Kind::Head,
                    5..25 => Kind::Plain,
                    _ => {
                        let closed = exchanges.close_oldest();
                        prop_assert_eq!(closed, model.pop_front().map(|(id, _)| id));
                        continue;
                    }
                };
                let switches = |kind| matches!(kind, Kind::Connect | Kind::Upgrade);
                let may_switch = model.back().is_some_and(|(_, kind)| switches(*kind));
                prop_assert_eq!(exchanges.may_switch(), may_switch);
                if model.len() < PLACES && !may_switch {
                    let start = u64::from(next) << 40;
                    prop_assert_eq!(exchanges.open(kind, start), ExchangeId(next));
                    model.push_back((ExchangeId(next), kind));
                    next += 1;
                }
                prop_assert_eq!(exchanges.oldest(), model.front().copied());
                prop_assert_eq!(usize::from(exchanges.count()), model.len());
                for (id, _) in &model {
                    prop_assert_eq!(exchanges.start(*id), u64::from(id.0) << 40);
                }
                prop_assert!(exchanges.contains(ExchangeId(next - 1)));
                prop_assert!(!exchanges.contains(ExchangeId(next)));
            }
        }
    }
}

//! RFC 9112 §9.2, §9.3.2: which requests are open, in order, and what their responses depend on.

use bolide_semantics::ExchangeId;
use http::Method;

use crate::limits::PIPELINED_COUNT;

/// What the framing of a response depends on in its request.
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

/// The open exchanges: a run of numbers. A server has at most one, a client up to
/// [`PIPELINED_COUNT`].
#[derive(Debug)]
pub(crate) struct Exchanges {
    /// The number of the oldest open exchange, or of the next one.
    first: u32,
    count: u8,
    /// Two bits for each, the oldest lowest.
    kinds: [u64; 2],
    /// The exchange that its owner gave up: its end is not reported.
    given_up: u32,
}

const _: () = assert!(PIPELINED_COUNT as u32 * 2 <= u128::BITS, "two bits for each exchange");

impl Exchanges {
    pub(crate) fn new() -> Self {
        Self { first: 1, count: 0, kinds: [0; 2], given_up: 0 }
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

    /// Opens the next exchange.
    #[inline]
    pub(crate) fn open(&mut self, kind: Kind) -> ExchangeId {
        debug_assert!(self.count < PIPELINED_COUNT, "too many open exchanges");
        let place = self.count * 2;
        self.kinds[usize::from(place / 64)] |= (kind as u64) << (place % 64);
        self.count += 1;
        ExchangeId(self.total())
    }

    /// The oldest open exchange.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<(ExchangeId, Kind)> {
        let kind = Kind::from_bits(self.kinds[0]);
        (self.count > 0).then_some((ExchangeId(self.first), kind))
    }

    /// Whether `id` is the oldest open exchange.
    #[inline]
    pub(crate) fn is_oldest(&self, id: ExchangeId) -> bool {
        self.count > 0 && id.0 == self.first
    }

    /// Whether `id` is the only open exchange, and a plain one.
    #[inline]
    pub(crate) fn is_plain(&self, id: ExchangeId) -> bool {
        self.count == 1 && id.0 == self.first && self.kinds[0] == 0
    }

    /// Closes the only open exchange, which is a plain one.
    #[inline]
    pub(crate) fn close_plain(&mut self) {
        self.first = self.first.saturating_add(1);
        self.count = 0;
    }

    /// Whether `id` is open.
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

    /// Whether an open exchange may become a tunnel, or is one.
    #[inline]
    pub(crate) fn may_switch(&self) -> bool {
        (self.kinds[0] | self.kinds[1]) & 0xaaaa_aaaa_aaaa_aaaa != 0
    }

    /// Closes the oldest open exchange.
    #[inline]
    pub(crate) fn close_oldest(&mut self) -> Option<ExchangeId> {
        let (id, _) = self.oldest()?;
        self.kinds[0] = self.kinds[0] >> 2 | self.kinds[1] << 62;
        self.kinds[1] >>= 2;
        // The last number there is never closes into another: `total` is checked before opening.
        self.first = self.first.saturating_add(1);
        self.count -= 1;
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
        fn exchanges_are_a_queue(steps in proptest::collection::vec(0_u8..6, 0..300)) {
            let mut exchanges = Exchanges::new();
            let mut model = VecDeque::new();
            let mut next = 1;
            for step in steps {
                let kind = match step {
                    0 => Kind::Plain,
                    1 => Kind::Head,
                    2 => Kind::Connect,
                    3 => Kind::Upgrade,
                    _ => {
                        let closed = exchanges.close_oldest();
                        prop_assert_eq!(closed, model.pop_front().map(|(id, _)| id));
                        continue;
                    }
                };
                if model.len() < usize::from(PIPELINED_COUNT) {
                    prop_assert_eq!(exchanges.open(kind), ExchangeId(next));
                    model.push_back((ExchangeId(next), kind));
                    next += 1;
                }
                prop_assert_eq!(exchanges.oldest(), model.front().copied());
                prop_assert_eq!(usize::from(exchanges.count()), model.len());
                let switches = |kind| matches!(kind, Kind::Connect | Kind::Upgrade);
                prop_assert_eq!(exchanges.may_switch(), model.iter().any(|(_, kind)| switches(*kind)));
                prop_assert!(exchanges.contains(ExchangeId(next - 1)));
                prop_assert!(!exchanges.contains(ExchangeId(next)));
            }
        }
    }
}

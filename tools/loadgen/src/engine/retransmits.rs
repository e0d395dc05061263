//! RFC 9293 §3.8.1: what TCP sent again on one connection.

use bolide_eventloop::Path;

/// The segments that were sent again on a connection, as last seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Retransmits {
    seen: u64,
    /// The measurement that what is seen counts for.
    measurement: u32,
}

impl Retransmits {
    /// Nothing yet, on a connection that begins now.
    pub(super) fn since(measurement: u32) -> Self {
        Self { seen: 0, measurement }
    }

    /// Whether it has been looked at in this measurement.
    #[inline]
    pub(super) fn is_of(&self, measurement: u32) -> bool {
        self.measurement == measurement
    }

    /// Asks the kernel, and returns how many there are more than at the last look in the same measurement. The
    /// first look of a measurement says what was there before it.
    #[cold]
    pub(super) fn look(&mut self, path: &dyn Path, measurement: u32) -> u64 {
        let Some(count) = path.retransmits() else { return 0 };
        let before = std::mem::replace(&mut self.seen, count);
        let is_first = std::mem::replace(&mut self.measurement, measurement) != measurement;
        if is_first { 0 } else { count.saturating_sub(before) }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use bolide_eventloop::{Outbound, Service, Token};

    use super::*;
    use crate::engine::service::{LoadService, LoadSession};
    use crate::engine::task::{limits, task};
    use crate::engine::testing::plan_for;
    use crate::engine::thread::Recipe;

    /// A connection on which so many segments were sent again.
    #[derive(Debug)]
    struct Planted(u64);

    impl Path for Planted {
        fn rtt(&self) -> Option<Duration> {
            None
        }

        fn retransmits(&self) -> Option<u64> {
            Some(self.0)
        }
    }

    #[test]
    fn only_what_is_new_is_counted() {
        let mut retransmits = Retransmits::since(1);
        assert_eq!([3, 3, 5].map(|count| retransmits.look(&Planted(count), 1)), [3, 0, 2]);
        assert_eq!(retransmits.look(&(), 1), 0);
        // What came between two measurements belongs to none.
        assert!(!retransmits.is_of(2));
        assert_eq!([9, 10].map(|count| retransmits.look(&Planted(count), 2)), [0, 1]);
    }

    fn service() -> LoadService {
        let plan = plan_for("127.0.0.1:1".parse().unwrap());
        let limits = limits(&plan);
        let task = Arc::new(task(&plan, &limits, Instant::now()).unwrap());
        let (news, _) = channel();
        let (_, commands) = channel();
        let recipe = Recipe {
            number: 0,
            threads: 1,
            task,
            seats: 3,
            limits,
            seed: 1,
            core: None,
            news,
            commands,
        };
        LoadService::new(recipe, Rc::default())
    }

    fn connection(service: &mut LoadService, seat: u64) -> LoadSession {
        let outbound = Outbound { token: Token::NOBODY, tag: seat };
        service.connecting(&outbound, Instant::now()).unwrap().0
    }

    #[test]
    fn a_connection_that_ends_within_a_phase_is_counted_at_its_end() {
        let mut service = service();
        let [mut early, mut lasting] = [0, 1].map(|seat| connection(&mut service, seat));
        service.closing(&mut early, &Planted(100));
        service.begin_measurement();
        assert_eq!(service.retransmits(), 0, "what ended before it belongs to no phase");
        let mut brief = connection(&mut service, 2);
        service.closing(&mut brief, &Planted(3));
        assert_eq!(service.retransmits(), 3);
        // Nobody has asked how many of these there were when the measurement began.
        service.closing(&mut lasting, &Planted(50));
        assert_eq!(service.retransmits(), 3);
    }
}

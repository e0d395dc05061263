//! Deadlines of many sockets: one entry each, filed by time.
//!
//! A deadline that moves later costs nothing: the entry stays where it is and is filed anew when
//! its bucket comes up. Only a deadline that moves earlier makes a second entry, and the first is
//! recognised as stale.

use std::time::{Duration, Instant};

/// The length of a tick. Deadlines are in seconds; nobody notices eight milliseconds.
const TICK: Duration = Duration::from_millis(8);

/// Buckets per level, as a power of two.
const BITS: u32 = 6;
const BUCKETS: usize = 1 << BITS;

/// Four levels of 64 buckets reach 64^4 ticks, about 37 hours; what lies beyond waits at the edge.
const LEVELS: usize = 4;

/// When the wheel next has to look at a slot. Kept in the slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timer {
    /// The tick at which the slot is due; 0 for never.
    due: u64,
    /// The tick under which the slot is filed; 0 for nowhere.
    filed: u64,
}

/// Where the timers live.
pub(crate) trait Timers {
    /// The timer of the slot `index`, if there is one.
    fn timer(&mut self, index: u32) -> Option<&mut Timer>;
}

/// The wheel of one worker.
#[derive(Debug)]
pub(crate) struct TimerWheel {
    started: Instant,
    /// All ticks up to this one have been looked at.
    now: u64,
    levels: [[Vec<(u32, u64)>; BUCKETS]; LEVELS],
    entries: usize,
}

impl TimerWheel {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            started: now,
            now: 0,
            levels: std::array::from_fn(|_| std::array::from_fn(|_| Vec::new())),
            entries: 0,
        }
    }

    /// The tick at or after `at`; never one that has passed.
    fn tick(&self, at: Instant) -> u64 {
        let nanoseconds = at.saturating_duration_since(self.started).as_nanos();
        let tick = nanoseconds.div_ceil(TICK.as_nanos());
        u64::try_from(tick).unwrap_or(u64::MAX).max(self.now + 1)
    }

    /// Sets or clears the deadline of the slot `index`.
    #[inline]
    pub(crate) fn set(&mut self, timer: &mut Timer, index: u32, at: Option<Instant>) {
        let Some(at) = at else {
            timer.due = 0;
            return;
        };
        timer.due = self.tick(at);
        if timer.filed == 0 || timer.due < timer.filed {
            timer.filed = timer.due;
            self.file(index, timer.due);
        }
    }

    fn file(&mut self, index: u32, tick: u64) {
        let ahead = tick - self.now;
        let level = (0..LEVELS - 1)
            .find(|level| ahead < 1 << (BITS * (*level as u32 + 1)))
            .unwrap_or(LEVELS - 1);
        let shift = BITS * level as u32;
        // What lies beyond the last level waits in its farthest bucket and is filed again.
        let reach = ((BUCKETS as u64) << (BITS * (LEVELS as u32 - 1))) - 1;
        let filed = self.now + ahead.min(reach);
        let bucket = (filed >> shift) as usize % BUCKETS;
        self.levels[level][bucket].push((index, tick));
        self.entries += 1;
    }

    /// Moves on to `now` and lists the slots that are due; their timers are unset.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        timers: &mut (impl Timers + ?Sized),
        fired: &mut Vec<u32>,
    ) {
        let elapsed = now.saturating_duration_since(self.started).as_nanos() / TICK.as_nanos();
        let target = u64::try_from(elapsed).unwrap_or(u64::MAX);
        if self.entries == 0 {
            self.now = self.now.max(target);
            return;
        }
        while self.now < target {
            self.now = target.min(self.now + self.quiet());
            for level in 0..LEVELS {
                let shift = BITS * level as u32;
                if self.now & ((1 << shift) - 1) != 0 {
                    break;
                }
                let bucket = (self.now >> shift) as usize % BUCKETS;
                let mut entries = std::mem::take(&mut self.levels[level][bucket]);
                self.entries -= entries.len();
                for (index, tick) in entries.drain(..) {
                    self.look(index, tick, timers, fired);
                }
                // The memory goes back, so that a steady state allocates nothing.
                if self.levels[level][bucket].is_empty() {
                    self.levels[level][bucket] = entries;
                }
            }
        }
    }

    fn look(
        &mut self,
        index: u32,
        tick: u64,
        timers: &mut (impl Timers + ?Sized),
        fired: &mut Vec<u32>,
    ) {
        let Some(timer) = timers.timer(index) else { return };
        if timer.filed != tick {
            return; // The slot was filed anew, or has another owner.
        }
        if timer.due == 0 {
            timer.filed = 0;
        } else if timer.due <= self.now {
            *timer = Timer::default();
            fired.push(index);
        } else {
            timer.filed = timer.due;
            self.file(index, timer.due);
        }
    }

    /// How long the loop may sleep before the wheel has to be looked at. `None`: for ever.
    pub(crate) fn sleep(&self, now: Instant) -> Option<Duration> {
        if self.entries == 0 {
            return None;
        }
        let at = (self.now + self.quiet()).saturating_mul(TICK.as_nanos() as u64);
        Some((self.started + Duration::from_nanos(at)).saturating_duration_since(now))
    }

    /// How many ticks ahead there is something to look at: the next bucket of the lowest level
    /// that is not empty, or the next turn of that level.
    fn quiet(&self) -> u64 {
        (1..BUCKETS as u64)
            .find(|ahead| {
                let tick = self.now + ahead;
                !self.levels[0][tick as usize % BUCKETS].is_empty()
                    || tick.is_multiple_of(BUCKETS as u64)
            })
            .unwrap_or(BUCKETS as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Set(usize, u64),
        Clear(usize),
        Pass(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_usize..8, prop_oneof![0_u64..2_000, 0_u64..400_000, 0_u64..200_000_000])
                .prop_map(|(slot, ahead)| Step::Set(slot, ahead)),
            (0_usize..8).prop_map(Step::Clear),
            prop_oneof![0_u64..1_000, 0_u64..300_000, 0_u64..9_000_000].prop_map(Step::Pass),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// A list of deadlines is the model: each fires once, not early, and not more than two
        /// ticks late.
        #[test]
        fn it_fires_what_a_list_would(steps in proptest::collection::vec(step(), 1..60)) {
            let start = Instant::now();
            let mut wheel = TimerWheel::new(start);
            let mut timers = [Timer::default(); 8];
            let mut model: [Option<u64>; 8] = [None; 8];
            let mut now = 0_u64;
            for step in steps {
                match step {
                    Step::Set(slot, ahead) => {
                        let at = start + Duration::from_millis(now + ahead);
                        wheel.set(&mut timers[slot], slot as u32, Some(at));
                        model[slot] = Some(now + ahead);
                    }
                    Step::Clear(slot) => {
                        wheel.set(&mut timers[slot], slot as u32, None);
                        model[slot] = None;
                    }
                    Step::Pass(milliseconds) => now += milliseconds,
                }
                let mut fired = Vec::new();
                let at = start + Duration::from_millis(now);
                wheel.advance(at, &mut timers[..], &mut fired);
                for slot in &fired {
                    let due = model[*slot as usize].take();
                    prop_assert!(due.is_some_and(|due| due <= now), "slot {slot} fired early");
                }
                for due in model.iter().flatten() {
                    prop_assert!(*due + 16 >= now, "due at {due} and not fired at {now}");
                }
            }
        }
    }

    impl Timers for [Timer] {
        fn timer(&mut self, index: u32) -> Option<&mut Timer> {
            self.get_mut(index as usize)
        }
    }
}

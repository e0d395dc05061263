//! Measurement of a worker's CPU time: a clock that is read between the stages of sampled turns of its loop.
//!
//! A turn that is not sampled costs one look at whether sampling is on. In one that is, every change of stage
//! reads the clock that passes, and the thread's CPU clock is read around the turn and its wait: what the
//! stages sum up to is held against it.

mod cost;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fastrand::Rng;

use crate::kernel::Clocks;
use cost::Cost;

/// How many stages there are: those of the loop, and those of its service.
pub const STAGES_COUNT: usize = 12;

/// The stages of the loop itself.
const OWN_STAGES_COUNT: u8 = 3;

/// A turn whose stages miss its CPU time by more than this share is dropped, in hundredths: the thread lost
/// its core more than once in it.
const MISSED_PERCENT: u64 = 3;

/// Time that the thread may have stood still before it counts as that, in nanoseconds: less is the clocks'
/// own inaccuracy.
const STOOD_STILL_NS: u64 = 500;

/// A part of the work of a turn. Time belongs to one stage at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage(u8);

impl Stage {
    /// The loop: its wait's own cost, events, timers, mail, and whatever is in no other stage.
    pub const LOOP: Self = Self(0);
    /// Reading from sockets.
    pub const RECEIVE: Self = Self(1);
    /// Writing to sockets.
    pub const SEND: Self = Self(2);

    /// The service's stage of this number: 0 to 8.
    #[must_use]
    pub const fn of_service(number: u8) -> Self {
        assert!((number + OWN_STAGES_COUNT) < STAGES_COUNT as u8, "there are 9 stages of services");
        Self(number + OWN_STAGES_COUNT)
    }

    /// Its place in [`Measured::spent_ns`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which turns are sampled; shared by all workers, and changed from any thread while they run.
#[derive(Debug, Clone, Default)]
pub struct Sampling(Arc<AtomicU32>);

impl Sampling {
    /// One turn in `one_in`; 0: none.
    #[must_use]
    pub fn new(one_in: u32) -> Self {
        Self(Arc::new(AtomicU32::new(one_in)))
    }

    /// From here on, one turn in `one_in`; 0: none.
    pub fn set(&self, one_in: u32) {
        self.0.store(one_in, Ordering::Relaxed);
    }

    /// One turn in how many; 0: none.
    #[inline]
    #[must_use]
    pub fn one_in(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One sampled turn of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// The CPU time that each stage took, by [`Stage::index`], in nanoseconds; what reading the clock cost is
    /// taken off.
    pub spent_ns: [u64; STAGES_COUNT],
    /// Cost of reading the clock, in nanoseconds.
    pub reading_ns: u64,
    /// The thread's CPU time in the turn by its own clock, in nanoseconds: the stages and the reading should sum
    /// up to it.
    pub cpu_ns: u64,
    /// Units that the service has [counted](Meter::count) in the turn, by which its time is divided.
    pub units: u32,
    /// Other threads had the core in the middle of it, and it can't be told in which stage: its stages say
    /// nothing.
    pub is_disturbed: bool,
}

/// Tells the stages of sampled turns apart. A worker's service makes it, and both say which stage begins.
#[derive(Debug)]
pub struct Meter {
    sampling: Sampling,
    clocks: Clocks,
    /// A turn is being measured.
    is_on: Cell<bool>,
    stage: Cell<Stage>,
    /// When it began.
    since: Cell<u64>,
    spent: [Cell<u64>; STAGES_COUNT],
    /// How often the clock was read at the end of each stage.
    readings: [Cell<u32>; STAGES_COUNT],
    /// The longest stretch between two readings, and its stage.
    longest: Cell<(u64, Stage)>,
    units: Cell<u32>,
    /// The choice of the next turn that is sampled.
    draw: Draw,
    /// The CPU clock before the wait, and after it.
    cpu_before: Cell<u64>,
    cpu_woken: Cell<u64>,
    /// When the first stage after the wait began.
    began: Cell<u64>,
    passing_cost: Cost,
    cpu_cost: Cost,
}

/// The choice of the next turn that is sampled.
#[derive(Debug)]
struct Draw {
    /// Turns until the next that is sampled, and for which rate that was drawn.
    ahead: Cell<u32>,
    drawn_for: Cell<u32>,
    random: RefCell<Rng>,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(Sampling::default(), Clocks::default())
    }
}

impl Meter {
    /// A meter that samples as `sampling` says.
    #[must_use]
    pub fn new(sampling: Sampling, clocks: Clocks) -> Self {
        Self {
            sampling,
            clocks,
            is_on: Cell::new(false),
            stage: Cell::new(Stage::LOOP),
            since: Cell::new(0),
            spent: std::array::from_fn(|_| Cell::new(0)),
            readings: std::array::from_fn(|_| Cell::new(0)),
            longest: Cell::new((0, Stage::LOOP)),
            units: Cell::new(0),
            cpu_before: Cell::new(0),
            cpu_woken: Cell::new(0),
            began: Cell::new(0),
            passing_cost: Cost::default(),
            cpu_cost: Cost::default(),
            draw: Draw {
                ahead: Cell::new(0),
                drawn_for: Cell::new(0),
                random: RefCell::new(Rng::with_seed(1)),
            },
        }
    }

    /// Returns whether the turn that is under way is measured.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Another stage begins. Returns the one before, for those that go back to it. One branch, unless the turn
    /// is measured.
    #[inline]
    pub fn enter(&self, stage: Stage) -> Stage {
        if self.is_on.get() { self.switch(stage) } else { stage }
    }

    #[cold]
    fn switch(&self, stage: Stage) -> Stage {
        let now = (self.clocks.passing)();
        let before = self.stage.replace(stage);
        let stretch = now.saturating_sub(self.since.replace(now));
        let (spent, readings) = (&self.spent[before.index()], &self.readings[before.index()]);
        spent.set(spent.get() + stretch);
        readings.set(readings.get() + 1);
        if stretch > self.longest.get().0 {
            self.longest.set((stretch, before));
        }
        before
    }

    /// One more unit of what the service does, such as a request.
    #[inline]
    pub fn count(&self) {
        if self.is_on.get() {
            self.units.set(self.units.get() + 1);
        }
    }

    /// The time that a stage has taken so far in the turn that is measured, in nanoseconds; 0 in another turn.
    #[must_use]
    pub fn spent_ns(&self, stage: Stage) -> u64 {
        if !self.is_on() {
            return 0;
        }
        let index = stage.index();
        let readings = u64::from(self.readings[index].get());
        self.spent[index].get().saturating_sub(self.passing_cost.of(readings))
    }

    /// A turn begins: the wait is next. Whether it is measured.
    #[inline]
    pub(crate) fn turn_begins(&self) -> bool {
        let one_in = self.sampling.one_in();
        one_in != 0 && self.is_its_turn(one_in)
    }

    /// It is: what the wait costs begins here.
    #[cold]
    fn begin(&self) {
        // Twice: what lies between is what a reading costs.
        let first = (self.clocks.cpu)();
        let second = (self.clocks.cpu)();
        self.cpu_cost.observe(second.saturating_sub(first));
        self.cpu_before.set(second);
        self.is_on.set(true);
    }

    /// Returns whether this turn is one to measure, which it then is. The gaps vary, so that a load that comes in a rhythm isn't always
    /// caught at the same beat.
    fn is_its_turn(&self, one_in: u32) -> bool {
        if self.draw.drawn_for.replace(one_in) != one_in {
            self.draw.ahead.set(self.gap(one_in));
        }
        match self.draw.ahead.get() {
            0 => {
                self.draw.ahead.set(self.gap(one_in));
                self.begin();
                true
            }
            ahead => {
                self.draw.ahead.set(ahead - 1);
                false
            }
        }
    }

    /// Turns between two that are sampled: 0 to twice the mean, which is `one_in - 1`.
    fn gap(&self, one_in: u32) -> u32 {
        self.draw.random.borrow_mut().u32(..=2_u32.saturating_mul(one_in - 1))
    }

    /// The wait of a measured turn is over: its stages begin.
    #[cold]
    pub(crate) fn woken(&self) {
        for (spent, readings) in self.spent.iter().zip(&self.readings) {
            spent.set(0);
            readings.set(0);
        }
        self.longest.set((0, Stage::LOOP));
        self.units.set(0);
        self.stage.set(Stage::LOOP);
        self.cpu_woken.set((self.clocks.cpu)());
        let first = (self.clocks.passing)();
        let second = (self.clocks.passing)();
        self.passing_cost.observe(second.saturating_sub(first));
        self.began.set(second);
        self.since.set(second);
    }

    /// A measured turn is over: what it came to.
    #[cold]
    pub(crate) fn turn_ended(&self) -> Measured {
        self.switch(Stage::LOOP);
        let passed = self.since.get() - self.began.get();
        let cpu_after = (self.clocks.cpu)();
        self.is_on.set(false);
        let cpu_reading = self.cpu_cost.of(1);
        let wait = self.cpu_woken.get().saturating_sub(self.cpu_before.get() + cpu_reading);
        // Around the stages lie a reading of the CPU clock and two of the other.
        let around = cpu_reading + self.passing_cost.of(2);
        let worked = cpu_after.saturating_sub(self.cpu_woken.get() + around);
        let mut measured =
            Measured { cpu_ns: wait + worked, units: self.units.get(), ..Measured::default() };
        for (index, (spent, readings)) in self.spent.iter().zip(&self.readings).enumerate() {
            let reading = self.passing_cost.of(readings.get().into()).min(spent.get());
            measured.spent_ns[index] = spent.get() - reading;
            measured.reading_ns += reading;
        }
        let stood_still = passed.saturating_sub(worked);
        if stood_still > STOOD_STILL_NS {
            // Another process had the core: most likely within the longest stretch, which it made long.
            let (longest, stage) = self.longest.get();
            let spent = &mut measured.spent_ns[stage.index()];
            let taken = stood_still.min(longest).min(*spent);
            *spent -= taken;
            measured.is_disturbed = (stood_still - taken) * 100 > worked * MISSED_PERCENT;
        }
        measured.spent_ns[Stage::LOOP.index()] += wait;
        measured
    }
}

#[cfg(test)]
mod tests;

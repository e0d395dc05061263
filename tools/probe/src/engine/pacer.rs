//! When a thread's requests begin, and which of them count.

use std::time::Duration;

use fastrand::Rng;

use super::arrivals::Schedule;
use super::users::{Counters, Crowd, Finished, Sender, Users};
use crate::plan::{Load, Phase};

/// A thread's part of a phase. Times are nanoseconds since the engine began.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Phase that is carried out.
    pub(super) phase: Phase,
    /// When it begins, warm-up included.
    pub(super) start_ns: u64,
    /// This thread's share of the rate.
    pub(super) rate_share: f64,
    /// By how much of a distance this thread's intended times are shifted.
    pub(super) offset: f64,
    /// This thread's share of the requests, or of the users who begin, if they are counted.
    pub(super) requests: Option<u64>,
    /// This thread's share of the users at a time.
    pub(super) users: usize,
}

#[derive(Debug)]
enum Mode {
    /// Nothing begins.
    Idle,
    Closed,
    Open {
        /// Follows the clock.
        due: Schedule,
        /// Follows what was handed to connections.
        handed: Schedule,
        /// Connections that were given a turn to take so many.
        promised: u64,
    },
    Connect,
    /// Users of a scenario, each when it is due.
    Users {
        users: Box<Users>,
        /// Schedules where the clock makes users begin: who is due, and who has begun.
        arrivals: Option<Box<[Schedule; 2]>>,
    },
}

/// Says when requests begin.
#[derive(Debug)]
pub(super) struct Pacer {
    mode: Mode,
    /// The users of the next phase, where requests are steps of a scenario.
    crowd: Option<Crowd>,
    /// User whose request was taken last.
    taken: Option<u32>,
    /// Which phase this is: requests of the one before are not counted.
    pub(super) number: u32,
    pub(super) start_ns: u64,
    /// When the warm-up ends.
    pub(super) measure_ns: u64,
    /// When the phase ends at the latest.
    pub(super) end_ns: u64,
    /// Requests, or users, that may still begin after the warm-up.
    left: u64,
    /// The phase ends with its requests, so that only those that began after the warm-up count.
    by_requests: bool,
    /// Requests that count and are due.
    pub(super) due_count: u64,
}

/// Users who wait for a connection in a thread. Those who are due beyond them are a number until it is their turn.
const WAITING_USERS_COUNT: u64 = 65_536;

/// No time, no number.
const NEVER: u64 = u64::MAX;

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}

impl Pacer {
    /// Nothing begins.
    pub(super) fn idle(crowd: Option<Crowd>) -> Self {
        Self {
            mode: Mode::Idle,
            crowd,
            taken: None,
            number: 0,
            start_ns: NEVER,
            measure_ns: NEVER,
            end_ns: NEVER,
            left: 0,
            by_requests: false,
            due_count: 0,
        }
    }

    /// A phase begins.
    pub(super) fn begin(&mut self, part: &Part, random: Rng) {
        let Part { phase, start_ns, rate_share, offset, requests, users } = part;
        let measure_ns = start_ns.saturating_add(nanoseconds(phase.warm_up));
        self.end();
        let recorded = self.crowd.as_ref().and_then(|crowd| crowd.recorded(*start_ns));
        let (times, count) = recorded.unzip();
        let due = match phase.load {
            Load::Open { .. } if times.is_some() => times,
            Load::Open { rate, arrivals } => {
                let random = random.clone();
                Some(Schedule::new(arrivals, rate * rate_share, *start_ns, *offset, random))
            }
            Load::Closed | Load::Connect => None,
        };
        let mode = match (self.crowd.take(), due) {
            (Some(crowd), Some(due)) => Mode::Users {
                users: Box::new(Users::by_clock(crowd, random)),
                arrivals: Some(Box::new([due.clone(), due])),
            },
            (Some(crowd), None) => Mode::Users {
                users: Box::new(Users::closed(crowd, *users, (*start_ns, measure_ns), random)),
                arrivals: None,
            },
            (None, Some(due)) => Mode::Open { handed: due.clone(), due, promised: 0 },
            (None, None) if phase.load == Load::Connect => Mode::Connect,
            (None, None) => Mode::Closed,
        };
        *self = Self {
            mode,
            crowd: None,
            taken: None,
            number: self.number + 1,
            start_ns: *start_ns,
            measure_ns,
            end_ns: phase
                .until
                .time
                .map_or(NEVER, |time| measure_ns.saturating_add(nanoseconds(time))),
            left: count.or(*requests).unwrap_or(NEVER),
            by_requests: requests.is_some(),
            due_count: 0,
        };
    }

    /// The phase is over: nothing begins any more.
    pub(super) fn end(&mut self) {
        if let Mode::Users { users, .. } = std::mem::replace(&mut self.mode, Mode::Idle) {
            self.crowd = Some(users.into_crowd());
        }
    }

    /// Returns whether a phase is under way.
    #[inline]
    pub(super) fn is_running(&self) -> bool {
        !matches!(self.mode, Mode::Idle)
    }

    /// Returns whether each request has a connection of its own.
    #[inline]
    pub(super) fn is_connect(&self) -> bool {
        matches!(self.mode, Mode::Connect)
    }

    /// Returns whether the clock makes requests begin.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        matches!(self.mode, Mode::Open { .. } | Mode::Users { .. })
    }

    /// The users of a phase that is under way.
    #[inline]
    pub(super) fn users(&self) -> Option<&Users> {
        match &self.mode {
            Mode::Users { users, .. } => Some(users),
            _ => None,
        }
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn users_mut(&mut self) -> Option<&mut Users> {
        match &mut self.mode {
            Mode::Users { users, .. } => Some(users),
            _ => None,
        }
    }

    /// The user whose request was taken last; none: it belongs to no user.
    #[inline]
    pub(super) fn sender(&self) -> Option<Sender<'_>> {
        Some(self.users()?.sender(self.taken?))
    }

    /// A user's request has come to its end.
    pub(super) fn went_on(&mut self, user: u32, now_ns: u64, end: (bool, u64)) -> Option<Finished> {
        let Self { mode: Mode::Users { users, .. }, left, due_count, measure_ns, .. } = self else {
            return None;
        };
        users.went_on(user, now_ns, end, &mut Counters { left, due_count, measure_ns: *measure_ns })
    }

    /// Returns whether a request that began (or was to begin) at this time counts from its beginning.
    #[inline]
    pub(super) fn counts(&self, begun_ns: u64) -> bool {
        begun_ns >= self.measure_ns
    }

    /// Returns whether a response at this time counts, to a request that counts from its beginning, or not.
    #[inline]
    pub(super) fn counts_response(&self, number: u32, counted: bool, now_ns: u64) -> bool {
        number == self.number
            && self.is_running()
            && now_ns < self.end_ns
            && (counted || (!self.by_requests && now_ns >= self.measure_ns))
    }

    /// Returns whether everything that was to begin has begun.
    pub(super) fn has_begun_all(&self) -> bool {
        let is_busy = self.users().is_some_and(Users::are_busy);
        self.by_requests && self.left == 0 && self.waiting() == 0 && !is_busy
    }

    /// Follows the clock of an open loop; tells `late` by how much it is behind each intended time.
    /// Returns the next intended time.
    pub(super) fn follow(&mut self, now_ns: u64, mut late: impl FnMut(u64)) -> Option<u64> {
        let Self { mode, left, due_count, measure_ns, end_ns, .. } = self;
        let mut counters = Counters { left, due_count, measure_ns: *measure_ns };
        match mode {
            Mode::Open { due, .. } => advance(due, (now_ns, *end_ns), &mut counters, &mut late),
            Mode::Users { users, arrivals } => {
                users.wake(now_ns.min(*end_ns - 1), &mut counters, &mut late);
                let mut begins = None;
                if let Some([due, begun]) = arrivals.as_deref_mut() {
                    begins = advance(due, (now_ns, *end_ns), &mut counters, &mut late);
                    while begun.count() < due.count() && users.ready_count() < WAITING_USERS_COUNT {
                        let at_ns = begun.peek();
                        begun.advance();
                        users.enter(at_ns, at_ns >= *measure_ns);
                    }
                }
                begins.into_iter().chain(users.next_ns()).min()
            }
            Mode::Idle | Mode::Closed | Mode::Connect => None,
        }
    }

    /// When the next user's pause ends.
    #[inline]
    pub(super) fn next_pause_ns(&self) -> Option<u64> {
        self.users().and_then(Users::next_ns)
    }

    /// Requests that are due and were not handed to a connection.
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        match &self.mode {
            Mode::Open { due, handed, .. } => due.count() - handed.count(),
            Mode::Users { users, arrivals } => {
                let begin = arrivals.as_ref().map_or(0, |of| of[0].count() - of[1].count());
                users.ready_count() + begin
            }
            Mode::Idle | Mode::Closed | Mode::Connect => 0,
        }
    }

    /// One more connection to a server is given a turn to take a waiting request; whether there is one for it.
    #[inline]
    pub(super) fn promise(&mut self, server: usize) -> bool {
        match &mut self.mode {
            Mode::Open { due, handed, promised } if *promised < due.count() - handed.count() => {
                *promised += 1;
                true
            }
            Mode::Users { users, .. } => users.promise(server),
            _ => false,
        }
    }

    /// So many promises of a server's connections come back: they are kept now, or void.
    #[inline]
    pub(super) fn redeem(&mut self, server: usize, count: u64) {
        match &mut self.mode {
            Mode::Open { promised, .. } => *promised = promised.saturating_sub(count),
            Mode::Users { users, .. } => users.redeem(server, count),
            Mode::Idle | Mode::Closed | Mode::Connect => {}
        }
    }

    /// A connection to a server can take a request at `now_ns`: when that request begins, or was to begin. `None`:
    /// there is none for it.
    #[inline]
    pub(super) fn take(&mut self, server: usize, now_ns: u64) -> Option<u64> {
        match &mut self.mode {
            Mode::Idle => None,
            Mode::Closed | Mode::Connect => {
                if now_ns < self.start_ns || now_ns >= self.end_ns {
                    return None;
                }
                if now_ns >= self.measure_ns {
                    self.left = self.left.checked_sub(1)?;
                    self.due_count += 1;
                }
                Some(now_ns)
            }
            Mode::Open { due, handed, promised } => {
                if due.count() - handed.count() <= *promised {
                    return None;
                }
                let intended = handed.peek();
                handed.advance();
                Some(intended)
            }
            Mode::Users { users, .. } if now_ns < self.end_ns => {
                let (user, due_ns) = users.take(server)?;
                self.taken = Some(user);
                Some(due_ns)
            }
            Mode::Users { .. } => None,
        }
    }
}

/// Follows the clock through intended times until now. Returns the next one before the end.
fn advance(
    due: &mut Schedule,
    (now_ns, end_ns): (u64, u64),
    counters: &mut Counters<'_>,
    late: &mut impl FnMut(u64),
) -> Option<u64> {
    loop {
        let at = due.peek();
        if at >= end_ns || *counters.left == 0 {
            return None;
        }
        if at > now_ns {
            return Some(at);
        }
        due.advance();
        if at >= counters.measure_ns {
            *counters.left -= 1;
            *counters.due_count += 1;
            late(now_ns - at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, Until};

    fn begun(load: Load, warm_up_ms: u64, requests: Option<u64>, time_ms: Option<u64>) -> Pacer {
        let phase = Phase {
            name: String::new(),
            load,
            warm_up: Duration::from_millis(warm_up_ms),
            until: Until { requests, time: time_ms.map(Duration::from_millis) },
        };
        let mut pacer = Pacer::idle(None);
        let part = Part { phase, start_ns: 0, rate_share: 1.0, offset: 0.0, requests, users: 0 };
        pacer.begin(&part, Rng::with_seed(1));
        pacer
    }

    /// Milliseconds in nanoseconds.
    const MS: u64 = 1_000_000;

    fn open(rate: f64) -> Load {
        Load::Open { rate, arrivals: Arrivals::Constant }
    }

    #[test]
    fn a_warm_up_uses_up_no_request() {
        let mut pacer = begun(Load::Closed, 10, Some(2), None);
        assert_eq!(pacer.take(0, 5 * MS), Some(5 * MS));
        assert!(!pacer.has_begun_all());
        assert_eq!(pacer.take(0, 10 * MS), Some(10 * MS));
        assert_eq!(pacer.take(0, 11 * MS), Some(11 * MS));
        assert_eq!(pacer.take(0, 12 * MS), None);
        assert!(pacer.has_begun_all());
        assert!(!pacer.counts_response(1, false, 12 * MS));
        assert!(pacer.counts_response(1, true, 12 * MS));
        assert!(!pacer.counts_response(0, true, 12 * MS));
    }

    #[test]
    fn nothing_begins_after_the_end() {
        let mut pacer = begun(Load::Closed, 0, None, Some(10));
        assert_eq!(pacer.take(0, 9 * MS), Some(9 * MS));
        assert_eq!(pacer.take(0, 10 * MS), None);
        assert!(pacer.counts_response(1, true, 10 * MS - 1));
        assert!(!pacer.counts_response(1, true, 10 * MS));
    }

    #[test]
    fn intended_times_wait_for_a_connection() {
        let mut pacer = begun(open(1000.0), 0, None, Some(10));
        let mut late = Vec::new();
        assert_eq!(pacer.follow(3 * MS, |by| late.push(by)), Some(4 * MS));
        assert_eq!(late, [3 * MS, 2 * MS, MS, 0]);
        assert_eq!(pacer.waiting(), 4);
        assert_eq!(pacer.take(0, 7 * MS), Some(0));
        assert_eq!(pacer.take(0, 7 * MS), Some(MS));
        assert_eq!(pacer.waiting(), 2);
        // The end comes before all were handed out: they were due all the same.
        assert_eq!(pacer.follow(50 * MS, |_| {}), None);
        assert_eq!(pacer.due_count, 10);
    }

    #[test]
    fn what_is_promised_is_not_taken_twice() {
        let mut pacer = begun(open(1000.0), 0, Some(2), None);
        pacer.follow(5 * MS, |_| {});
        assert!(pacer.promise(0) && pacer.promise(0) && !pacer.promise(0));
        assert_eq!(pacer.take(0, 5 * MS), None);
        pacer.redeem(0, 1);
        assert_eq!(pacer.take(0, 5 * MS), Some(0));
        assert_eq!(pacer.take(0, 5 * MS), None);
        assert!(!pacer.has_begun_all());
        pacer.redeem(0, 1);
        assert_eq!(pacer.take(0, 5 * MS), Some(MS));
        assert!(pacer.has_begun_all());
    }
}

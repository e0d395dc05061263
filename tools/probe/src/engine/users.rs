//! The users of a scenario in one thread: each carries out its steps in order, pauses after each, and begins again as
//! another user.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use fastrand::Rng;
use http::Method;

use super::arrivals::Schedule;
use super::asked::{Redirect, Step};
use super::cookies::Jar;
use super::template::{Rendered, Values};
use crate::scenario::Scenario;

/// The users of a thread, and what numbers they get: no two users of a run have the same.
#[derive(Debug, Clone)]
pub(super) struct Crowd {
    pub(super) scenario: Arc<Scenario>,
    /// The number of the next one, and how many threads number theirs.
    pub(super) next_number: u64,
    pub(super) threads: u64,
}

impl Crowd {
    /// The times of a log from `start_ns` on, as far as they are this thread's, and how many these are.
    pub(super) fn recorded(&self, start_ns: u64) -> Option<(Schedule, u64)> {
        let times = &self.scenario.recorded.as_ref()?.times;
        let (first, step) = (self.next_number as usize, self.threads as usize);
        let count = times.len().saturating_sub(first).div_ceil(step);
        Some((Schedule::recorded(Arc::clone(times), (first, step), start_ns), count as u64))
    }
}

/// Target of a redirect.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) server: usize,
    pub(super) target: String,
    /// The method of the next request (RFC 9110 §15.4): GET without content, or what it was.
    pub(super) method: Option<Method>,
}

/// Counters while users go on.
#[derive(Debug)]
pub(super) struct Counters<'a> {
    /// Users that may still begin after the warm-up.
    pub(super) left: &'a mut u64,
    /// Requests that count and are due.
    pub(super) due_count: &'a mut u64,
    /// When the warm-up ends.
    pub(super) measure_ns: u64,
}

/// A user has done all steps, or given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) begun_ns: u64,
    /// It began after the warm-up.
    pub(super) counted: bool,
    pub(super) has_failed: bool,
}

/// One user.
#[derive(Debug, Default)]
pub(super) struct User {
    pub(super) number: u64,
    kind: u32,
    /// The step that it does, or does next, from the first one of its kind.
    step: u32,
    /// Redirects that it has followed in this step.
    pub(super) hops: u8,
    /// It begins again: nothing of the user before is left.
    is_fresh: bool,
    /// It began after the warm-up.
    counted: bool,
    /// When its next request is due.
    due_ns: u64,
    /// When it began, and when its step did.
    begun_ns: u64,
    pub(super) step_ns: u64,
    pub(super) captured: Box<[Option<Box<str>>]>,
    pub(super) jar: Jar,
    /// The target of the request that was sent last.
    pub(super) target: String,
    pub(super) redirect: Option<Box<Hop>>,
}

/// A user who sends its request now.
#[derive(Debug)]
pub(super) struct Sender<'a> {
    index: u32,
    user: &'a User,
    scenario: &'a Scenario,
}

impl<'a> Sender<'a> {
    /// Which request of the plan it is.
    #[inline]
    pub(super) fn request(&self) -> usize {
        self.scenario.kinds[self.user.kind as usize].steps.start + self.user.step as usize
    }

    /// Returns where a redirect has led the user.
    #[inline]
    pub(super) fn hop(&self) -> Option<&'a Hop> {
        self.user.redirect.as_deref()
    }

    /// Fills in the values of the user's own placeholders.
    #[inline]
    pub(super) fn fill(&self, values: &mut Values<'a>) {
        values.user = self.user.number;
        values.row = self.scenario.row(self.user.number);
        values.captured = &self.user.captured;
    }

    /// The cookies that go with the request.
    #[inline]
    pub(super) fn write_cookies(
        &self,
        server: (&str, bool),
        rendered: &Rendered,
        text: &mut String,
    ) {
        let target = match self.hop() {
            Some(hop) => &hop.target,
            None => rendered.texts().next().unwrap_or_default(),
        };
        self.user.jar.write(server, target, text);
    }

    /// Returns what is kept of the step until its response is complete.
    #[inline]
    pub(super) fn step(&self) -> Step {
        Step {
            user: self.index,
            began_ns: self.user.step_ns,
            redirect: Redirect::None,
            lacks_capture: false,
            kept: None,
        }
    }
}

/// Users whose next request is due and goes to the same server.
#[derive(Debug, Default, Clone)]
struct Ready {
    /// The one that waits longest first.
    users: VecDeque<u32>,
    /// Connections that were given a turn to take so many of them.
    promised: u64,
}

/// All users of a thread in a phase.
#[derive(Debug)]
pub(super) struct Users {
    crowd: Crowd,
    users: Vec<User>,
    vacant: Vec<u32>,
    /// Those whose next request is due, by the server that it goes to.
    ready: Vec<Ready>,
    /// Those that pause, and until when.
    pausing: BinaryHeap<Reverse<(u64, u32)>>,
    /// How many have begun and not finished.
    live: usize,
    /// Users begin when the clock says so; otherwise each one's end is the next one's beginning.
    by_clock: bool,
    random: Rng,
}

impl Users {
    /// `count` users at a time, who begin evenly spread from `start_ns` to `measure_ns`.
    pub(super) fn closed(
        crowd: Crowd,
        count: usize,
        (start_ns, measure_ns): (u64, u64),
        random: Rng,
    ) -> Self {
        let mut users = Self::new(crowd, false, random);
        for index in 0..count {
            let spread = u128::from(measure_ns - start_ns) * index as u128 / count as u128;
            let user = User { is_fresh: true, ..User::default() };
            users.users.push(user);
            users.pausing.push(Reverse((start_ns + spread as u64, index as u32)));
        }
        users
    }

    /// Users who begin when the clock says so.
    pub(super) fn by_clock(crowd: Crowd, random: Rng) -> Self {
        Self::new(crowd, true, random)
    }

    fn new(crowd: Crowd, by_clock: bool, random: Rng) -> Self {
        let ready = vec![Ready::default(); crowd.scenario.servers_count()];
        Self {
            crowd,
            users: Vec::new(),
            vacant: Vec::new(),
            ready,
            pausing: BinaryHeap::new(),
            live: 0,
            by_clock,
            random,
        }
    }

    /// Returns what the users of the next phase go on with.
    pub(super) fn into_crowd(self) -> Crowd {
        self.crowd
    }

    /// Returns whether a user has begun and not finished.
    pub(super) fn are_busy(&self) -> bool {
        self.live > 0
    }

    /// Those whose request is due.
    #[inline]
    pub(super) fn ready_count(&self) -> u64 {
        self.ready.iter().map(|ready| ready.users.len() as u64).sum()
    }

    /// One more connection to a server is given a turn to take a request; whether there is one for it.
    #[inline]
    pub(super) fn promise(&mut self, server: usize) -> bool {
        let ready = &mut self.ready[server];
        let is_wanted = ready.promised < ready.users.len() as u64;
        ready.promised += u64::from(is_wanted);
        is_wanted
    }

    /// So many promises of a server's connections come back.
    #[inline]
    pub(super) fn redeem(&mut self, server: usize, count: u64) {
        let ready = &mut self.ready[server];
        ready.promised = ready.promised.saturating_sub(count);
    }

    /// When the next pause ends.
    #[inline]
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.pausing.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// The pauses that end until `now_ns` are over; tells `late` by how much it is behind each.
    pub(super) fn wake(
        &mut self,
        now_ns: u64,
        counters: &mut Counters<'_>,
        mut late: impl FnMut(u64),
    ) {
        while let Some(Reverse((at_ns, index))) = self.pausing.peek().copied()
            && at_ns <= now_ns
        {
            self.pausing.pop();
            if self.make_ready(index, at_ns, counters) && at_ns >= counters.measure_ns {
                late(now_ns - at_ns);
            }
        }
    }

    /// The next request of a user is due. Whether there is one.
    fn make_ready(&mut self, index: u32, due_ns: u64, counters: &mut Counters<'_>) -> bool {
        let counts = due_ns >= counters.measure_ns;
        if self.users[index as usize].is_fresh {
            if counts {
                let Some(left) = counters.left.checked_sub(1) else { return false };
                *counters.left = left;
            }
            self.begin(index, due_ns, counts);
        }
        *counters.due_count += u64::from(counts);
        self.queue(index, due_ns);
        true
    }

    /// A user waits for a connection to the server that its next request goes to.
    fn queue(&mut self, index: u32, due_ns: u64) {
        let user = &mut self.users[index as usize];
        user.due_ns = due_ns;
        let scenario = &self.crowd.scenario;
        let server = match &user.redirect {
            Some(hop) => hop.server,
            None => {
                scenario.server(scenario.kinds[user.kind as usize].steps.start + user.step as usize)
            }
        };
        self.ready[server].users.push_back(index);
    }

    /// A user begins in this place.
    fn begin(&mut self, index: u32, now_ns: u64, counted: bool) {
        let Crowd { scenario, next_number, threads } = &mut self.crowd;
        let user = &mut self.users[index as usize];
        let mut captured = std::mem::take(&mut user.captured);
        match captured.len() {
            0 => captured = vec![None; scenario.captures_count].into(),
            _ => captured.fill(None),
        }
        *user = User {
            number: *next_number,
            kind: scenario.kind(*next_number, &mut self.random) as u32,
            counted,
            begun_ns: now_ns,
            step_ns: now_ns,
            captured,
            target: std::mem::take(&mut user.target),
            ..User::default()
        };
        *next_number += *threads;
        self.live += 1;
    }

    /// The one who waits longest for a connection to a server, and is promised to no other, sends its request; when
    /// that was due.
    pub(super) fn take(&mut self, server: usize) -> Option<(u32, u64)> {
        let ready = &mut self.ready[server];
        if ready.users.len() as u64 <= ready.promised {
            return None;
        }
        let index = ready.users.pop_front()?;
        Some((index, self.users[index as usize].due_ns))
    }

    /// A user begins that the clock has called for at `due_ns`.
    pub(super) fn enter(&mut self, due_ns: u64, counted: bool) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.users.push(User::default());
            self.users.len() as u32 - 1
        });
        self.begin(index, due_ns, counted);
        self.queue(index, due_ns);
    }

    #[inline]
    pub(super) fn user_mut(&mut self, index: u32) -> &mut User {
        &mut self.users[index as usize]
    }

    /// A user who sends its request now.
    #[inline]
    pub(super) fn sender(&self, index: u32) -> Sender<'_> {
        Sender { index, user: &self.users[index as usize], scenario: &self.crowd.scenario }
    }

    /// The request of a user has been sent, with this target unless a redirect led to another.
    #[inline]
    pub(super) fn sent(&mut self, index: u32, rendered: &Rendered) {
        let user = self.user_mut(index);
        user.target.clear();
        user.target.push_str(match &user.redirect {
            Some(hop) => &hop.target,
            None => rendered.texts().next().unwrap_or_default(),
        });
    }

    /// A user's request has come to its end; what follows a step is due after `think_ns`.
    pub(super) fn went_on(
        &mut self,
        index: u32,
        now_ns: u64,
        (has_failed, think_ns): (bool, u64),
        counters: &mut Counters<'_>,
    ) -> Option<Finished> {
        let user = &mut self.users[index as usize];
        if has_failed {
            user.redirect = None;
        }
        if user.redirect.is_some() {
            user.hops += 1;
            self.make_ready(index, now_ns, counters);
            return None;
        }
        let steps = &self.crowd.scenario.kinds[user.kind as usize].steps;
        let is_over = has_failed || user.step as usize + 1 == steps.len();
        let due_ns = now_ns.saturating_add(think_ns);
        (user.step_ns, user.hops) = (due_ns, 0);
        user.step += 1;
        let finished = is_over.then_some(Finished {
            begun_ns: user.begun_ns,
            counted: user.counted,
            has_failed,
        });
        if is_over {
            self.live -= 1;
            user.is_fresh = true;
            user.jar = Jar::default();
            if self.by_clock {
                self.vacant.push(index);
                return finished;
            }
        }
        if think_ns == 0 {
            self.make_ready(index, now_ns, counters);
        } else {
            self.pausing.push(Reverse((due_ns, index)));
        }
        finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::plan_for;
    use crate::scenario::UserKind;

    fn crowd(kinds: &[(u64, std::ops::Range<usize>)]) -> Crowd {
        let mut sum = 0;
        let kinds = kinds.iter().map(|(weight, steps)| {
            sum += weight;
            UserKind { weights_sum: sum, steps: steps.clone() }
        });
        let scenario = Scenario { captures_count: 1, ..Scenario::new(2, kinds.collect()) };
        Crowd { scenario: Arc::new(scenario), next_number: 1, threads: 2 }
    }

    /// Counters of a phase without a warm-up.
    struct Counted(u64, u64);

    impl Counted {
        fn all(&mut self) -> Counters<'_> {
            Counters { left: &mut self.0, due_count: &mut self.1, measure_ns: 100 }
        }
    }

    #[test]
    fn users_do_their_steps_and_begin_again_as_others() {
        let mut users = Users::closed(crowd(&[(1, 3..5)]), 2, (100, 100), Rng::with_seed(1));
        let mut counted = Counted(3, 0);
        users.wake(100, &mut counted.all(), |late| assert_eq!(late, 0));
        assert_eq!((users.ready_count(), counted.0, counted.1), (2, 1, 2));
        assert_eq!(users.take(0), Some((0, 100)));
        assert_eq!(
            (users.sender(0).request(), users.sender(0).user.number, users.sender(1).user.number),
            (3, 1, 3)
        );
        users.user_mut(0).captured[0] = Some("x".into());
        assert_eq!(users.went_on(0, 110, (false, 5), &mut counted.all()), None);
        assert_eq!((users.next_ns(), users.ready_count()), (Some(115), 1));
        users.wake(120, &mut counted.all(), |late| assert_eq!(late, 5));
        assert_eq!(users.take(0), Some((1, 100)));
        assert_eq!((users.take(0), users.sender(0).request()), (Some((0, 115)), 4));
        let done = Finished { begun_ns: 100, counted: true, has_failed: false };
        assert_eq!(users.went_on(0, 130, (false, 0), &mut counted.all()), Some(done));
        assert_eq!((users.sender(0).user.number, users.sender(0).request(), counted.0), (5, 3, 0));
        assert!(users.sender(0).user.captured[0].is_none(), "nothing is left of the one before");
        // No user is left to begin: one that gives up vanishes.
        let failed = Finished { has_failed: true, ..done };
        assert_eq!(users.went_on(1, 140, (true, 0), &mut counted.all()), Some(failed));
        assert_eq!((users.ready_count(), users.are_busy()), (1, true));
        users.take(0);
        users.went_on(0, 150, (true, 0), &mut counted.all());
        assert!(!users.are_busy());
    }

    #[test]
    fn a_redirect_is_followed_before_the_next_step() {
        let mut users = Users::by_clock(crowd(&[(1, 0..2)]), Rng::with_seed(1));
        let mut counted = Counted(9, 0);
        users.enter(200, true);
        let (user, _) = users.take(0).unwrap();
        let hop = || Some(Box::new(Hop { server: 0, target: "/b".to_owned(), method: None }));
        users.user_mut(user).redirect = hop();
        assert_eq!(users.went_on(user, 210, (false, 50), &mut counted.all()), None);
        assert_eq!((users.take(0), users.sender(user).request()), (Some((user, 210)), 0));
        assert_eq!((users.sender(user).user.hops, users.sender(user).user.step_ns), (1, 200));
        users.user_mut(user).redirect = None;
        users.went_on(user, 220, (false, 50), &mut counted.all());
        assert_eq!((users.sender(user).user.hops, users.sender(user).user.step_ns), (0, 270));
        users.user_mut(user).redirect = hop();
        let finished = users.went_on(user, 280, (true, 50), &mut counted.all()).unwrap();
        assert!(finished.has_failed && !users.are_busy());
        users.enter(300, true);
        assert_eq!(users.take(0), Some((user, 300)), "its place is free again");
    }

    #[test]
    fn users_of_a_warm_up_use_up_nobody_and_are_spread_over_it() {
        let mut users = Users::closed(crowd(&[(1, 0..1)]), 4, (0, 100), Rng::with_seed(1));
        let mut counted = Counted(1, 0);
        users.wake(50, &mut counted.all(), |_| panic!("it does not count"));
        assert_eq!((users.ready_count(), users.next_ns(), counted.0), (3, Some(75), 1));
    }

    #[test]
    fn kinds_come_by_weight() {
        let mut users = Users::by_clock(crowd(&[(1, 0..1), (3, 1..2)]), Rng::with_seed(1));
        let second = (0..1000).filter(|_| {
            users.enter(0, true);
            let (user, _) = users.take(0).unwrap();
            users.sender(user).request() == 1
        });
        assert!((700..800).contains(&second.count()));
    }

    #[test]
    fn users_wait_for_the_server_that_their_request_goes_to() {
        let Crowd { scenario, .. } = crowd(&[(1, 0..3)]);
        let other = plan_for("127.0.0.1:1".parse().unwrap()).origin;
        let servers = Box::from([0, 1, 0]);
        let scenario = Scenario { others: vec![other], servers, ..(*scenario).clone() };
        let crowd = Crowd { scenario: Arc::new(scenario), next_number: 0, threads: 1 };
        let mut users = Users::by_clock(crowd, Rng::with_seed(1));
        let mut counted = Counted(9, 0);
        users.enter(100, true);
        assert!(!users.promise(1) && users.promise(0) && !users.promise(0));
        assert_eq!(users.take(0), None, "it is promised to a connection");
        users.redeem(0, 1);
        assert_eq!((users.take(1), users.take(0)), (None, Some((0, 100))));
        users.went_on(0, 110, (false, 0), &mut counted.all());
        assert_eq!((users.take(0), users.take(1)), (None, Some((0, 110))));
        // A redirect of the second step leads to the first server.
        users.user_mut(0).redirect =
            Some(Box::new(Hop { server: 0, target: "/b".to_owned(), method: None }));
        users.went_on(0, 120, (false, 0), &mut counted.all());
        assert_eq!((users.take(1), users.take(0)), (None, Some((0, 120))));
    }
}

//! RFC 9773 §4.2: when a certificate is ordered, and when renewal information is requested.

use std::time::{Duration, SystemTime};

use bolide_connection::RenewalFacts;
use serde::{Deserialize, Serialize};

use crate::limits::{
    AcmeLimits, RENEWAL_INFO_TIME, RENEWAL_INFO_TIME_MAX, RENEWAL_INFO_TIME_MIN, RETRY_AFTER_MAX,
};

/// Factor by which each further failure multiplies the delay.
const RETRY_FACTOR: f64 = 3.0;

/// Record of a name next to its certificate, on the disk, so that a restart orders no sooner. Times are milliseconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Kept {
    /// How many orders failed, one after the other.
    pub(crate) failures: u32,
    /// No order before this.
    next_attempt: u64,
    /// When the last order failed, and why.
    pub(crate) last_failure: Option<(u64, String)>,
    /// The CA's window for renewal, in which a moment was chosen.
    window: Option<(u64, u64)>,
    renew_at: Option<u64>,
    /// When the CA's renewal information is requested next.
    look_at: u64,
}

/// Step that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// A certificate is ordered.
    Order,
    /// Renewal information is requested.
    Look,
}

/// Suggestion of a CA: the window for renewal, if it has one, and for how long that holds, if it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suggestion {
    pub(crate) window: Option<(SystemTime, SystemTime)>,
    pub(crate) holds: Option<Duration>,
}

impl Kept {
    /// Returns what is to be done next, and when. `facts`: of the certificate, if there is one.
    pub(crate) fn due(&self, facts: Option<&RenewalFacts>) -> (SystemTime, Due) {
        let (order, look) = (self.order(facts), time(self.look_at));
        if facts.is_some() && look < order { (look, Due::Look) } else { (order, Due::Order) }
    }

    /// When a certificate is ordered next.
    pub(crate) fn order(&self, facts: Option<&RenewalFacts>) -> SystemTime {
        let renewal = facts.map(|facts| self.renewal(facts));
        renewal.unwrap_or(SystemTime::UNIX_EPOCH).max(time(self.next_attempt))
    }

    /// When a certificate is renewed: in the CA's window, else after two thirds of its lifetime; in any case before its last tenth.
    pub(crate) fn renewal(&self, facts: &RenewalFacts) -> SystemTime {
        let lifetime = facts.not_after.duration_since(facts.not_before).unwrap_or_default();
        match self.renew_at {
            None => facts.not_before + lifetime * 2 / 3,
            Some(at) => time(at).min(facts.not_before + lifetime * 9 / 10),
        }
    }

    /// An order failed. `asked`: for how long the CA asks to wait. `chance`: from 0 to 1.
    pub(crate) fn failed(
        &mut self,
        now: SystemTime,
        what: String,
        limits: &AcmeLimits,
        asked: Option<Duration>,
        chance: f64,
    ) {
        self.last_failure = Some((millis(now), what));
        let factor = RETRY_FACTOR.powi(self.failures.min(30) as i32);
        self.failures = self.failures.saturating_add(1);
        let most = limits.retry_delay_max.as_secs_f64();
        let delay = (limits.retry_delay.as_secs_f64() * factor).min(most);
        // A quarter less to a quarter more: names that failed together don't come back together.
        let delay = Duration::from_secs_f64(delay * (0.75 + chance / 2.0));
        self.next_attempt = millis(now + delay.max(asked.unwrap_or_default()));
    }

    /// A certificate was issued: its renewal information is requested at once.
    pub(crate) fn issued(&mut self) {
        *self = Self { last_failure: self.last_failure.take(), ..Self::default() };
    }

    /// The CA was asked for renewal information; `None`: in vain. `chance`: from 0 to 1, for the moment in the window.
    pub(crate) fn looked(&mut self, now: SystemTime, suggestion: Option<Suggestion>, chance: f64) {
        let holds = suggestion.and_then(|suggestion| suggestion.holds).unwrap_or(RENEWAL_INFO_TIME);
        self.look_at = millis(now + holds.clamp(RENEWAL_INFO_TIME_MIN, RENEWAL_INFO_TIME_MAX));
        let Some(Suggestion { window, .. }) = suggestion else { return };
        // RFC 9773 §4.2: a window that doesn't end after its start is none.
        let window = window.map(|(start, end)| (millis(start), millis(end)));
        let window = window.filter(|(start, end)| start < end);
        if window != self.window {
            self.window = window;
            self.renew_at =
                window.map(|(start, end)| start + ((end - start) as f64 * chance) as u64);
        }
    }

    /// Takes back what a clock that was set forward has done: no name waits for longer than the longest time.
    pub(crate) fn after_restart(mut self, now: SystemTime) -> Self {
        self.next_attempt = self.next_attempt.min(millis(now + RETRY_AFTER_MAX));
        self.look_at = self.look_at.min(millis(now + RENEWAL_INFO_TIME_MAX));
        self
    }
}

/// The time so many milliseconds after 1970.
pub(crate) fn time(millis: u64) -> SystemTime {
    // What is far beyond all certificates is as good as never.
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.min(1 << 50))
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn facts(days: u32) -> RenewalFacts {
        let not_before = time(1_795_456_800_000);
        RenewalFacts {
            not_before,
            not_after: not_before + DAY * days,
            serial: Box::default(),
            authority_key: None,
        }
    }

    fn suggestion(start: SystemTime, end: SystemTime) -> Option<Suggestion> {
        Some(Suggestion { window: Some((start, end)), holds: Some(DAY / 4) })
    }

    #[test]
    fn without_renewal_information_two_thirds_of_the_lifetime_count() {
        let facts = facts(90);
        let mut kept = Kept::default();
        assert_eq!(kept.due(None), (time(0), Due::Order), "there is none: at once");
        assert_eq!(kept.due(Some(&facts)), (time(0), Due::Look), "first, the CA is asked");
        kept.looked(facts.not_before, None, 0.5);
        assert_eq!(kept.due(Some(&facts)), (facts.not_before + RENEWAL_INFO_TIME, Due::Look));
        assert_eq!(kept.renewal(&facts), facts.not_before + DAY * 60);
        kept.looked(facts.not_before + DAY * 60 - DAY / 8, None, 0.5);
        assert_eq!(kept.due(Some(&facts)), (facts.not_before + DAY * 60, Due::Order));
    }

    /// RFC 9773 §4.2.
    #[test]
    fn a_moment_in_the_window_is_chosen_once_and_again_when_the_window_moves() {
        let facts = facts(90);
        let (start, now) = (facts.not_before + DAY * 58, facts.not_before);
        let mut kept = Kept::default();
        kept.looked(now, suggestion(start, start + DAY * 2), 0.25);
        assert_eq!(kept.renewal(&facts), start + DAY / 2);
        assert_eq!(kept.due(Some(&facts)), (now + DAY / 4, Due::Look));
        kept.looked(now, suggestion(start, start + DAY * 2), 0.75);
        assert_eq!(kept.renewal(&facts), start + DAY / 2, "the same window");
        kept.looked(now, None, 0.75);
        assert_eq!(kept.renewal(&facts), start + DAY / 2, "the CA could not be reached");
        // The CA has to revoke: the window is over already.
        kept.looked(now + DAY, suggestion(now - DAY, now), 0.5);
        assert_eq!(kept.due(Some(&facts)), (now - DAY / 2, Due::Order));
        // No window: an end that is not after the start, or beyond the certificate's own.
        kept.looked(now, suggestion(start, start), 0.5);
        assert_eq!(kept.renewal(&facts), facts.not_before + DAY * 60);
        kept.looked(now, suggestion(start + DAY * 900, start + DAY * 901), 0.5);
        assert_eq!(kept.renewal(&facts), facts.not_before + DAY * 81);
        kept.issued();
        assert_eq!(kept, Kept::default());
    }

    #[test]
    fn failures_wait_longer_each_time_but_not_for_ever() {
        let (limits, now) = (AcmeLimits::default(), time(1_795_456_800_000));
        let mut kept = Kept::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            kept.failed(now, "refused".to_owned(), &limits, None, 0.5);
            let (at, due) = kept.due(None);
            assert_eq!(due, Due::Order);
            waits.push(at.duration_since(now).unwrap().as_secs() / 60);
        }
        assert_eq!(waits, [1, 3, 9, 27, 81, 243, 360, 360]);
        assert_eq!((kept.failures, kept.last_failure.clone().unwrap().1.as_str()), (8, "refused"));
        kept.failed(now, "limited".to_owned(), &limits, Some(DAY), 0.5);
        assert_eq!(kept.due(None).0, now + DAY, "the CA has asked for it");
        // A renewal that is due waits, too.
        let facts = facts(90);
        kept.look_at = u64::MAX;
        kept.failed(facts.not_before + DAY * 61, String::new(), &limits, None, 0.5);
        assert_eq!(kept.due(Some(&facts)), (facts.not_before + DAY * 61 + DAY / 4, Due::Order));
        // The clock was set back by a year.
        let kept = kept.after_restart(now - DAY * 365);
        assert_eq!(kept.due(None).0, now - DAY * 364);
    }

    proptest! {
        #[test]
        fn nothing_that_is_kept_or_suggested_makes_it_panic(
            failures in any::<u32>(), next_attempt in any::<u64>(), look_at in any::<u64>(),
            renew_at in any::<Option<u64>>(), start in 0_u64..1 << 50, end in 0_u64..1 << 50,
            holds in any::<Option<u64>>(), days in 0_u32..4000, chance in 0.0_f64..1.0,
        ) {
            let mut kept = Kept { failures, next_attempt, renew_at, look_at, ..Kept::default() };
            let facts = facts(days);
            let now = facts.not_before;
            kept.due(Some(&facts));
            kept.failed(now, String::new(), &AcmeLimits::default(), None, chance);
            let (at, _) = kept.due(None);
            prop_assert!(at > now && at <= now + DAY / 3);
            let holds = holds.map(Duration::from_secs);
            kept.looked(now, Some(Suggestion { window: Some((time(start), time(end))), holds }), chance);
            prop_assert!(kept.renewal(&facts) <= facts.not_after);
            prop_assert!(kept.look_at <= millis(now + DAY));
        }

        #[test]
        fn what_is_kept_is_read_again(failures in any::<u32>(), window in any::<Option<(u64, u64)>>()) {
            let kept = Kept { failures, window, ..Kept::default() };
            let text = serde_json::to_vec(&kept).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Kept>(&text).unwrap(), kept);
        }
    }
}

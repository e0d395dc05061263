//! RFC 8446 §4.6.1, RFC 5077: session tickets, and the keys that seal them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::Error;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::ProducesTickets;

use crate::WallClock;

/// For how long a key seals new tickets. It opens them for as long again: so a ticket can be used for six to twelve
/// hours, and stolen keys read no older ones. rustls keeps the keys of one ticketer for as long at least.
const KEY_TIME: Duration = Duration::from_secs(6 * 60 * 60);

/// Makes none: sessions are kept here.
#[derive(Debug)]
pub(crate) struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Seals and opens session tickets, by keys that follow each other at fixed times of the server's clock.
#[derive(Debug)]
pub(crate) struct Tickets {
    clock: WallClock,
    keys: RwLock<Keys>,
}

#[derive(Debug)]
struct Keys {
    current: Arc<dyn ProducesTickets>,
    /// Opens the tickets of the time before.
    previous: Option<Arc<dyn ProducesTickets>>,
    /// When the current key began to seal.
    since: SystemTime,
}

impl Keys {
    /// How many times the keys should have been replaced by now. A clock that was set back replaces none.
    fn missed(&self, now: SystemTime) -> u32 {
        let age = now.duration_since(self.since).unwrap_or_default();
        u32::try_from(age.as_secs() / KEY_TIME.as_secs()).unwrap_or(u32::MAX)
    }
}

impl Tickets {
    /// A ticketer whose first key seals from now on.
    ///
    /// # Errors
    ///
    /// When there is no randomness for the key.
    pub(crate) fn ticketer(clock: WallClock) -> Result<Arc<dyn ProducesTickets>, Error> {
        let (current, since) = (Ticketer::new()?, (clock.0)());
        let keys = Keys { current, previous: None, since };
        Ok(Arc::new(Self { clock, keys: RwLock::new(keys) }))
    }

    /// Does something with the keys of this moment. `None`, too, when there is no randomness for a key that is due: then
    /// clients shake hands in full.
    fn with<T>(&self, act: impl FnOnce(&Keys) -> Option<T>) -> Option<T> {
        let now = (self.clock.0)();
        {
            let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
            if keys.missed(now) == 0 {
                return act(&keys);
            }
        }
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        // Another worker may have been here before.
        let missed = keys.missed(now);
        if missed > 0 {
            let before = std::mem::replace(&mut keys.current, Ticketer::new().ok()?);
            keys.previous = (missed == 1).then_some(before);
            // Times follow each other without a gap, or tickets would live longer.
            keys.since = keys.since.checked_add(KEY_TIME.saturating_mul(missed)).unwrap_or(now);
        }
        act(&keys)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    /// In seconds: how long a ticket can be used at the most.
    fn lifetime(&self) -> u32 {
        2 * KEY_TIME.as_secs() as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.with(|keys| keys.current.encrypt(plain))
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.with(|keys| {
            let previous = || keys.previous.as_ref()?.decrypt(ticket);
            keys.current.decrypt(ticket).or_else(previous)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    const CLOCK: WallClock = WallClock(|| SystemTime::UNIX_EPOCH + NOW.get());
    const MOMENT: Duration = Duration::from_secs(1);

    fn tickets() -> Arc<dyn ProducesTickets> {
        NOW.set(Duration::from_secs(1_790_000_000));
        Tickets::ticketer(CLOCK).unwrap()
    }

    fn pass(time: Duration) {
        NOW.set(NOW.get() + time);
    }

    #[test]
    fn a_ticket_of_before_one_rotation_is_opened_and_of_before_two_is_not() {
        let tickets = tickets();
        let first = tickets.encrypt(b"first").unwrap();
        assert_ne!(first, b"first");
        pass(KEY_TIME - MOMENT);
        let last = tickets.encrypt(b"last").unwrap();
        pass(MOMENT);
        let next = tickets.encrypt(b"next").unwrap();
        for (ticket, plain) in [(&first, "first"), (&last, "last"), (&next, "next")] {
            assert_eq!(tickets.decrypt(ticket).as_deref(), Some(plain.as_bytes()));
        }
        pass(KEY_TIME - MOMENT);
        assert!(tickets.decrypt(&first).is_some(), "the last second of its time");
        pass(MOMENT);
        assert_eq!((tickets.decrypt(&first), tickets.decrypt(&last)), (None, None));
        assert!(tickets.decrypt(&next).is_some());
    }

    #[test]
    fn keys_that_nobody_used_for_long_are_gone() {
        let tickets = tickets();
        let ticket = tickets.encrypt(b"old").unwrap();
        pass(2 * KEY_TIME);
        assert_eq!(tickets.decrypt(&ticket), None);
        let ticket = tickets.encrypt(b"new").unwrap();
        // What was asked late lives no longer for that.
        pass(KEY_TIME / 2);
        pass(KEY_TIME / 2);
        assert!(tickets.decrypt(&ticket).is_some());
        pass(KEY_TIME);
        assert_eq!(tickets.decrypt(&ticket), None);
    }

    #[test]
    fn a_clock_that_is_set_back_opens_what_it_has_sealed() {
        let tickets = tickets();
        let ticket = tickets.encrypt(b"kept").unwrap();
        NOW.set(Duration::from_secs(1));
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"kept"[..]));
    }

    #[test]
    fn what_was_changed_or_sealed_elsewhere_is_no_ticket() {
        let (tickets, others) = (tickets(), tickets());
        let mut ticket = tickets.encrypt(b"secret").unwrap();
        assert_eq!(others.decrypt(&ticket), None);
        *ticket.last_mut().unwrap() ^= 1;
        assert_eq!(tickets.decrypt(&ticket), None);
        assert_eq!(tickets.decrypt(b""), None);
    }
}

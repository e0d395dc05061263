//! The orders in which wakes and polls of one exchange can meet, by loom: no wake is lost.

use loom::sync::atomic::AtomicU8;

#[path = "../../../service/tower-adapter/src/wake/state.rs"]
#[allow(dead_code, reason = "the model needs a part of it")]
mod state;

#[cfg(test)]
mod model {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::thread;

    use super::state::State;

    /// State that wakers and worker share: how much is to be seen, and how many mails are under way.
    struct Shared {
        state: State,
        ready: AtomicUsize,
        mails: AtomicUsize,
    }

    impl Shared {
        fn wake(&self) {
            self.ready.fetch_add(1, Ordering::Relaxed);
            if self.state.ring() {
                self.mails.fetch_add(1, Ordering::Release);
            }
        }

        /// One turn as the exchange takes it. Returns what it saw.
        fn turn(&self, mut due: bool) -> usize {
            let mut seen = 0;
            due |= self.state.begin();
            loop {
                if due {
                    seen = self.ready.load(Ordering::Relaxed);
                }
                due = self.state.end();
                if !due {
                    return seen;
                }
                self.state.begin();
            }
        }
    }

    /// Two threads wake an exchange while its first poll goes on; afterwards the worker reads its mail
    /// until everything was seen. Without a mail for something unseen, it would sleep for ever.
    #[test]
    fn whatever_was_woken_is_seen_or_has_a_mail_under_way() {
        let mut model = loom::model::Builder::new();
        // All orders with up to this many switches that no thread asked for: more find nothing new
        // in so few steps, and take hours.
        model.preemption_bound = Some(2);
        model.check(|| {
            let shared = Arc::new(Shared {
                state: State::polled(),
                ready: AtomicUsize::new(0),
                mails: AtomicUsize::new(0),
            });
            let wakers: Vec<_> = (0..2)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || shared.wake())
                })
                .collect();
            // The poll that was under way.
            let mut seen = shared.ready.load(Ordering::Relaxed);
            if shared.state.end() {
                seen = seen.max(shared.turn(true));
            }
            // A piece of the body arrives: a turn that no mail asked for.
            seen = seen.max(shared.turn(false));
            for waker in wakers {
                waker.join().unwrap();
            }
            let mails = shared.mails.load(Ordering::Acquire);
            assert!(mails <= 2);
            for _ in 0..mails {
                if shared.state.is_rung() {
                    seen = seen.max(shared.turn(true));
                }
            }
            assert_eq!(seen, 2, "a wake was lost");
            assert!(!shared.state.is_rung(), "an exchange that rests can be woken again");
        });
    }
}

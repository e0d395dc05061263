//! The orders in which mail and a worker's waits can meet, by loom: no wake-up is lost.

use loom::sync::atomic::AtomicU8;

#[path = "../src/mailbox/state.rs"]
mod state;

#[cfg(test)]
mod model {
    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    use super::state::State;

    /// Those who send in the model.
    const SENDERS: usize = 2;

    /// State that senders and worker share.
    struct Shared {
        state: State,
        /// The queue: only the state makes visible what was put into it.
        queue: AtomicUsize,
        /// The kernel's part: a wait that a wake ends, also one that came before.
        woken: Mutex<bool>,
        changed: Condvar,
    }

    impl Shared {
        fn post(&self) {
            self.queue.fetch_add(1, Ordering::Relaxed);
            if self.state.post() {
                *self.woken.lock().unwrap() = true;
                self.changed.notify_one();
            }
        }

        fn sleep(&self) {
            let mut woken = self.woken.lock().unwrap();
            while !*woken {
                woken = self.changed.wait(woken).unwrap();
            }
            *woken = false;
        }
    }

    /// A worker that reads until it has everything. If a wake-up were lost, it would wait for ever, and
    /// loom says so.
    #[test]
    fn a_worker_that_sleeps_is_woken_by_every_mail() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                state: State::awake(),
                queue: AtomicUsize::new(0),
                woken: Mutex::new(false),
                changed: Condvar::new(),
            });
            let senders: Vec<_> = (0..SENDERS)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || shared.post())
                })
                .collect();
            let mut received = 0;
            while received < SENDERS {
                if shared.state.lie_down() {
                    shared.sleep();
                }
                if shared.state.get_up() {
                    received += shared.queue.swap(0, Ordering::Relaxed);
                }
            }
            for sender in senders {
                sender.join().unwrap();
            }
        });
    }
}

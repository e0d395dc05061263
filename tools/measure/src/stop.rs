//! Ending before the end: what was found until then is told all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bolide_eventloop::{Signal, Signals};

/// How often somebody who waits looks whether he should end.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// As a shell reports a process that an interrupt ended.
const ENDED_BY_INTERRUPT: i32 = 130;

/// Whether somebody wants the measurement to end. Clones ask for the same.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    /// Whether it is to end.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// It is to end.
    pub fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// From here on Ctrl-C and SIGTERM ask, and the second time end the process at once. Where the
    /// system refuses, they end it the first time.
    pub(crate) fn at_signals(&self) {
        let Ok(mut signals) = Signals::new(&[Signal::Interrupt, Signal::Terminate]) else { return };
        let stop = self.clone();
        thread::spawn(move || {
            while signals.wait().is_some() {
                if stop.is_asked() {
                    std::process::exit(ENDED_BY_INTERRUPT);
                }
                stop.ask();
            }
        });
    }
}

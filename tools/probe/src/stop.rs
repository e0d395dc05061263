//! Ending before the end: what was found until then is told all the same.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bolide_eventloop::{Signal, Signals};

use crate::progress::Control;

/// As a shell reports a process that an interrupt ended.
const ENDED_BY_INTERRUPT: i32 = 130;

/// A flag that asks a run to end. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    /// Returns whether it is to end.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// The same, as a phase is told.
    pub fn control(&self) -> Control {
        if self.is_asked() { Control::Stop } else { Control::Continue }
    }

    /// It is to end.
    pub fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// From here on Ctrl-C and SIGTERM ask, and the second time end the process at once. Where the
    /// system refuses, they end it the first time.
    pub fn at_signals(&self) {
        let Ok(mut signals) = Signals::new(&[Signal::Interrupt, Signal::Terminate]) else { return };
        let stop = self.clone();
        thread::spawn(move || {
            while signals.wait().is_some() {
                if stop.is_asked() {
                    process::exit(ENDED_BY_INTERRUPT);
                }
                stop.ask();
            }
        });
    }
}

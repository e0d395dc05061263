//! How a run is told to end before its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bolide_eventloop::{Signal, Signals};

use bolide_probe::progress::Control;

/// Whether somebody wants the run to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// The same, as a phase is told.
    pub(crate) fn control(&self) -> Control {
        if self.is_asked() { Control::Stop } else { Control::Continue }
    }

    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// From here on Ctrl-C and SIGTERM ask, and the second time end the process at once. Where the
    /// system refuses, they end it the first time.
    pub(super) fn at_signals(&self) {
        let Ok(mut signals) = Signals::new(&[Signal::Interrupt, Signal::Terminate]) else { return };
        let stop = self.clone();
        thread::spawn(move || {
            while signals.wait().is_some() {
                if stop.is_asked() {
                    // As a shell reports a process that an interrupt ended.
                    std::process::exit(130);
                }
                stop.ask();
            }
        });
    }
}

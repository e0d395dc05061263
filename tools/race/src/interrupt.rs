//! Ctrl-C: noticed, and everything that was started is stopped on the way out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Error of an interrupted step.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// Flag that says whether the end was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Notices Ctrl-C and SIGTERM from now on.
    pub(crate) fn install() -> Result<Self, String> {
        let this = Self::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&this.0))
                .map_err(|error| format!("signals can't be noticed: {error}"))?;
        }
        Ok(this)
    }

    /// An error once it has come.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.has_come() { Err(INTERRUPTED.to_owned()) } else { Ok(()) }
    }

    /// Returns whether it has come.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

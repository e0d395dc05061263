//! The signals that end a program.

use std::fmt;
use std::sync::Mutex;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::Error;

/// SIGTERM and SIGINT, from the moment this is made.
pub struct Signals {
    inner: Mutex<signal_hook::iterator::Signals>,
}

impl fmt::Debug for Signals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Signals")
    }
}

impl Signals {
    /// Takes over SIGTERM and SIGINT.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn new() -> Result<Self, Error> {
        let inner = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])
            .map_err(|source| Error::System { what: "signal handling", source })?;
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// Waits for the next one.
    pub fn wait(&self) {
        let mut inner = match self.inner.lock() {
            Ok(inner) => inner,
            Err(poisoned) => poisoned.into_inner(),
        };
        // Ends only with the process: nobody closes the iterator.
        let _ = inner.forever().next();
    }
}

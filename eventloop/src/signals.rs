//! Signals, for the thread that started the workers.

use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator;

/// A signal that a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: end in good order.
    Terminate,
    /// SIGINT: the same, from a terminal.
    Interrupt,
    /// SIGHUP: read the configuration again.
    Hangup,
    /// SIGUSR1: open the log files again, which were moved away.
    User1,
    /// SIGUSR2: hand over to the program as it is now on the disk.
    User2,
}

impl Signal {
    fn number(self) -> i32 {
        match self {
            Self::Terminate => SIGTERM,
            Self::Interrupt => SIGINT,
            Self::Hangup => SIGHUP,
            Self::User1 => SIGUSR1,
            Self::User2 => SIGUSR2,
        }
    }

    fn from_number(number: i32) -> Option<Self> {
        [Self::Terminate, Self::Interrupt, Self::Hangup, Self::User1, Self::User2]
            .into_iter()
            .find(|signal| signal.number() == number)
    }
}

/// Takes over signals of the process.
#[derive(Debug)]
pub struct Signals {
    signals: iterator::Signals,
}

impl Signals {
    /// From here on the `wanted` signals no longer end the process.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left.
    pub fn new(wanted: &[Signal]) -> io::Result<Self> {
        let numbers = wanted.iter().map(|signal| signal.number());
        Ok(Self { signals: iterator::Signals::new(numbers)? })
    }

    /// Waits for the next one.
    pub fn wait(&mut self) -> Option<Signal> {
        self.signals.forever().find_map(Signal::from_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_arrives_as_a_value() {
        let mut signals = Signals::new(&[Signal::Hangup]).unwrap();
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert_eq!(signals.wait(), Some(Signal::Hangup));
    }
}

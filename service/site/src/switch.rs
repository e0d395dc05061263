//! A condition that an operator turns on by creating a file.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Instant;

use crate::limits::SWITCH_PERIOD;

/// A file that turns a route on while it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    path: PathBuf,
}

impl Switch {
    /// The switch of this file.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

/// State of a switch as one worker has seen it.
#[derive(Debug, Default)]
pub(crate) struct Seen(Cell<Option<(Instant, bool)>>);

impl Seen {
    /// Returns whether the file exists: looked at once in a [`SWITCH_PERIOD`].
    pub(crate) fn is_on(&self, switch: &Switch, now: Instant) -> bool {
        if let Some((seen, is_on)) = self.0.get()
            && now.saturating_duration_since(seen) < SWITCH_PERIOD
        {
            return is_on;
        }
        let is_on = switch.path.exists();
        self.0.set(Some((now, is_on)));
        is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_looked_at_once_in_a_period() {
        let directory = std::env::temp_dir().join(format!("bolide-switch-{}", std::process::id()));
        let switch = Switch::new(directory.clone());
        let (seen, start) = (Seen::default(), Instant::now());
        assert!(!seen.is_on(&switch, start));
        std::fs::create_dir(&directory).unwrap();
        assert!(!seen.is_on(&switch, start + SWITCH_PERIOD / 2));
        assert!(seen.is_on(&switch, start + SWITCH_PERIOD));
        std::fs::remove_dir(&directory).unwrap();
        assert!(seen.is_on(&switch, start + SWITCH_PERIOD));
        assert!(!seen.is_on(&switch, start + 2 * SWITCH_PERIOD));
    }
}

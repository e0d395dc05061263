//! The one atomic between a worker and those who send it mail.

use std::sync::atomic::Ordering;

use super::AtomicU8;

/// The worker will look by itself.
const AWAKE: u8 = 0;
/// There is mail.
const MAIL: u8 = 1;
/// The worker waits for the kernel.
const ASLEEP: u8 = 2;

/// The state of a mailbox.
#[derive(Debug)]
pub(crate) struct State(AtomicU8);

impl State {
    /// That of a worker which doesn't wait.
    pub(crate) fn awake() -> Self {
        Self(AtomicU8::new(AWAKE))
    }

    /// Mail has been put into the queue. Whether the worker has to be woken.
    pub(crate) fn post(&self) -> bool {
        self.0.swap(MAIL, Ordering::AcqRel) == ASLEEP
    }

    /// Before a wait: whether the worker may sleep. Otherwise there is mail.
    pub(crate) fn lie_down(&self) -> bool {
        self.0.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// After a wait: whether mail came.
    pub(crate) fn get_up(&self) -> bool {
        self.0.swap(AWAKE, Ordering::AcqRel) == MAIL
    }
}

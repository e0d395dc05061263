//! How a future's waker reaches the worker of its exchange.

mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::task::{Wake, Waker};

use bolide_server::{MovableWaker, Request};

pub(crate) use state::State;

/// Waker of an exchange's future.
#[derive(Debug)]
pub(crate) struct Bell {
    pub(crate) state: State,
    worker: MovableWaker,
}

/// A bell, and the waker that rings it: made together, so that an exchange that nothing else learns of
/// touches no count.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) bell: Arc<Bell>,
    pub(crate) waker: Waker,
}

impl Ring {
    /// That of a request's exchange, which is about to be polled. `spare` is one that an exchange before
    /// it left: it is used again when its bell is held nowhere else.
    #[inline]
    pub(crate) fn of(request: &Request<'_>, spare: Option<Self>) -> Self {
        if let Some(ring) = spare
            // The bell's and the waker's: only who has one of them could make another.
            && Arc::strong_count(&ring.bell) == 2
        {
            // Whatever those did that had one before has been done.
            fence(Ordering::Acquire);
            ring.bell.state.reset();
            request.aim(&ring.bell.worker);
            return ring;
        }
        let bell = Arc::new(Bell { state: State::polled(), worker: request.movable_waker() });
        let waker = Waker::from(Arc::clone(&bell));
        Self { bell, waker }
    }
}

impl Bell {
    /// Asks for a turn that [`State::end`] found to be due: after everything else that the worker has
    /// to do.
    pub(crate) fn ask_for_turn(&self) {
        self.worker.wake();
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.ring() {
            self.worker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rings_are_one_mail() {
        let state = State::polled();
        assert!(!state.end());
        assert!(state.ring(), "the first one sends");
        assert!(!state.ring() && !state.ring(), "the others do not");
        assert!(state.is_rung());
        assert!(state.begin(), "the poll was due");
        assert!(!state.end());
        assert!(!state.is_rung());
    }

    #[test]
    fn a_ring_during_a_poll_makes_another_poll_and_no_mail() {
        let state = State::polled();
        assert!(!state.ring() && !state.ring());
        assert!(state.end());
        assert!(state.is_rung());
        assert!(state.begin());
        assert!(!state.end());
    }

    #[test]
    fn a_poll_that_nobody_asked_for_is_told() {
        let state = State::polled();
        state.end();
        assert!(!state.begin());
    }
}

//! Settings that change while a server runs.

use std::fmt;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use bolide_eventloop::{Mailbox, Token};

use crate::responder::MessageKind;
use crate::{Ingress, Limits, Message, Router};

/// Makes the routes of a worker.
pub(crate) type Routes = dyn Fn() -> Router + Send + Sync;

/// One change, for every worker.
#[derive(Clone)]
pub(crate) enum Change {
    Routes(Arc<Routes>),
    Limits(Box<Limits>),
    ServerTiming(bool),
    Ingress(Box<Ingress>),
}

/// The changes of one server, one at a time. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Changes {
    /// Held while a change is made.
    turn: Arc<Mutex<()>>,
    current: Arc<Mutex<Option<Change>>>,
}

impl fmt::Debug for Changes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Changes")
    }
}

impl Changes {
    /// Has each worker make a change, and returns when all have.
    pub(crate) fn make(&self, change: Change, workers: &[Mailbox<Message>]) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.set(Some(change));
        let (done, all_done) = mpsc::channel();
        for worker in workers {
            let kind = MessageKind::Changed(done.clone());
            // A worker that has ended needs nothing.
            let _ = worker.send(Token::NOBODY, Message::to_worker(kind));
        }
        drop(done);
        // Nothing is ever sent: the end of the last sender is what is waited for.
        let _ = all_done.recv();
        self.set(None);
    }

    fn set(&self, change: Option<Change>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = change;
    }

    /// The change that a worker is to make.
    pub(crate) fn current(&self) -> Option<Change> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

//! The way from callers' threads to the client's own.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bolide_eventloop::{Destination, Mailbox, Token};

use super::pending_request::PendingRequest;
use crate::Dial;

/// What is asked for: where, and by whom.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) origin: Origin,
    pub(crate) dial: Dial,
    pub(crate) destinations: Vec<Destination>,
    pub(crate) pending: Arc<PendingRequest>,
}

/// What requests have in common that share connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    /// Whether it is TLS.
    pub(crate) is_tls: bool,
    /// Whether HTTP/2 is spoken without asking.
    pub(crate) is_prior: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Where connections go to, if not to the host; otherwise empty.
    pub(crate) via: Vec<Destination>,
}

/// What a caller has for the client's thread.
#[derive(Debug)]
pub(crate) enum Command {
    Begin(Box<Job>),
    Look(Arc<PendingRequest>),
}

/// Names no connection: mail to it wakes the loop and nothing else.
const NOBODY: u64 = u64::MAX;

/// Commands that the client's thread has not read.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    commands: Mutex<Vec<Command>>,
    bell: OnceLock<Mailbox<()>>,
}

impl CommandQueue {
    /// The thread can be woken from here on.
    pub(crate) fn connect(&self, bell: Mailbox<()>) {
        // It is connected once.
        let _ = self.bell.set(bell);
    }

    pub(crate) fn send(&self, command: Command) {
        let first = {
            let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
            commands.push(command);
            commands.len() == 1
        };
        if first && let Some(bell) = self.bell.get() {
            // A thread that has ended has answered everything it was to answer.
            let _ = bell.send(Token::from_key(NOBODY), ());
        }
    }

    pub(crate) fn look(&self, pending: Arc<PendingRequest>) {
        self.send(Command::Look(pending));
    }

    /// Takes what there is, in its order.
    pub(crate) fn take(&self, into: &mut Vec<Command>) {
        into.append(&mut self.commands.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn bell(&self) -> Option<&Mailbox<()>> {
        self.bell.get()
    }
}

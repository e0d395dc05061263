//! The way from callers' threads to the client's own.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bolide_eventloop::{Destination, Mailbox, Token};

use super::ticket::Ticket;
use crate::Dial;

/// What is asked for: where, and by whom.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) origin: Origin,
    pub(crate) dial: Dial,
    pub(crate) destinations: Vec<Destination>,
    pub(crate) ticket: Arc<Ticket>,
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
pub(crate) enum Letter {
    Begin(Box<Job>),
    Look(Arc<Ticket>),
}

/// Names no connection: mail to it wakes the loop and nothing else.
const NOBODY: u64 = u64::MAX;

/// Letters that the client's thread has not read.
#[derive(Debug, Default)]
pub(crate) struct Post {
    letters: Mutex<Vec<Letter>>,
    bell: OnceLock<Mailbox<()>>,
}

impl Post {
    /// The thread can be woken from here on.
    pub(crate) fn connect(&self, bell: Mailbox<()>) {
        // It is connected once.
        let _ = self.bell.set(bell);
    }

    pub(crate) fn send(&self, letter: Letter) {
        let first = {
            let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
            letters.push(letter);
            letters.len() == 1
        };
        if first && let Some(bell) = self.bell.get() {
            // A thread that has ended has answered everything it was to answer.
            let _ = bell.send(Token::from_key(NOBODY), ());
        }
    }

    pub(crate) fn look(&self, ticket: Arc<Ticket>) {
        self.send(Letter::Look(ticket));
    }

    /// Takes what there is, in its order.
    pub(crate) fn take(&self, into: &mut Vec<Letter>) {
        into.append(&mut self.letters.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn bell(&self) -> Option<&Mailbox<()>> {
        self.bell.get()
    }
}

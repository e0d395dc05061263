//! A server that another process takes over, and whether its workers live.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use bolide_eventloop::{Mailbox, Token};

use crate::Message;
use crate::responder::MessageKind;
use crate::server::Running;

impl Running {
    /// As [`shut_down`](Self::shut_down), for a process that another takes over from, which has the same
    /// [sockets](crate::Server::sockets): clients that are about to send another request get their answer here,
    /// and learn with it that the connection ends (RFC 9112 §9.6, RFC 9113 §6.8); one that is idle is closed after a
    /// second. The files of Unix sockets stay.
    pub fn hand_over(&mut self) {
        self.paths.clear();
        for mailbox in self.handle.mailboxes() {
            // A worker that has ended has no connections left.
            let _ = mailbox.send(Token::NOBODY, Message::to_worker(MessageKind::Leave));
        }
        self.shut_down();
    }

    /// Something that tells whether the workers live, from any thread.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        Pulse { mailboxes: self.handle.mailboxes().to_vec() }
    }
}

/// Tells whether the workers of a server live.
#[derive(Debug, Clone)]
pub struct Pulse {
    mailboxes: Vec<Mailbox<Message>>,
}

impl Pulse {
    /// Whether every worker that has not ended comes to its mail within `patience`: one whose handler doesn't
    /// return does not.
    #[must_use]
    pub fn beats(&self, patience: Duration) -> bool {
        let (sender, all_dropped) = mpsc::channel();
        for mailbox in &self.mailboxes {
            let kind = MessageKind::Pulse(sender.clone());
            let _ = mailbox.send(Token::NOBODY, Message::to_worker(kind));
        }
        drop(sender);
        // Nothing is ever sent: the end of the last sender is what is waited for.
        all_dropped.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
    }
}

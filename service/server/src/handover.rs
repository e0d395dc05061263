//! A server that another process takes over, and whether its workers live.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use bolide_connection::Secret;
use bolide_eventloop::{DatagramPipe, Mailbox, Token};

use crate::followed_datagrams::EarlierProcess;
use crate::responder::MessageKind;
use crate::server::{Bound, Running, Server};
use crate::{Error, Message};

/// The sockets of one listener.
#[derive(Debug)]
pub struct ListenerSockets {
    /// Those that listen; several share a port.
    pub listening: Vec<OwnedFd>,
    /// The UDP sockets at the same port, if it serves HTTP/3.
    pub datagrams: Vec<OwnedFd>,
}

impl Server {
    /// Further descriptors of the sockets of each listener, in order, once they are [open](Self::bind): for a process that is to
    /// take over. None before.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor left.
    pub fn sockets(&self) -> Result<Vec<ListenerSockets>, Error> {
        let Some(Bound { listeners, .. }) = &self.bound else { return Ok(Vec::new()) };
        let own = listeners.duplicates()?.into_iter().zip(listeners.duplicate_datagrams()?);
        Ok(own.map(|(listening, datagrams)| ListenerSockets { listening, datagrams }).collect())
    }

    /// Goes on for processes that had the UDP sockets of [inherited](crate::Listener::Inherited) listeners before, the latest
    /// first, as that has [prepared](Running::prepare_handover) them: what comes for their connections is passed on to
    /// them, and tokens that they have given to clients stay valid.
    ///
    /// # Errors
    ///
    /// When the pipes are not those of such a process.
    pub fn after(mut self, processes: Vec<EarlierProcess>) -> Result<Self, Error> {
        let lineage = &mut self.lineage;
        for EarlierProcess { number, pipes } in processes {
            let pipes: Vec<_> =
                pipes.into_iter().map(|pipe| Arc::new(DatagramPipe::from(pipe))).collect();
            if lineage.follows.is_none() {
                for pipe in &pipes {
                    lineage.secret = Secret(pipe.greeting()?);
                }
                lineage.process = number.wrapping_add(1);
                lineage.follows = Some(number);
            }
            if !pipes.is_empty() {
                lineage.earlier.insert(number, pipes);
            }
        }
        Ok(self)
    }
}

impl Running {
    /// Opens the pipes by which a process that is to take over, with the same [sockets](Server::sockets), passes on the HTTP/3
    /// datagrams of connections that stay here. It gets the result for [`Server::after`]; none without HTTP/3.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptor or thread left, or no such pipes.
    pub fn prepare_handover(&mut self) -> io::Result<Vec<EarlierProcess>> {
        self.datagrams.prepare(&self.handle)
    }

    /// As [`shut_down`](Self::shut_down), for a process that another takes over from, which has the same
    /// [sockets](crate::Server::sockets): clients that are about to send another request get their response here,
    /// and learn with it that the connection ends (RFC 9112 §9.6, RFC 9113 §6.8, RFC 9114 §5.2); one that is idle is closed
    /// after a second. The files of Unix sockets stay.
    pub fn hand_over(&mut self) {
        self.paths.clear();
        if !self.datagrams.successor.is_empty() {
            self.handle.leave_datagrams();
        }
        let mut successor = self.datagrams.successor.drain(..);
        for mailbox in self.handle.mailboxes() {
            // A worker that has ended has no connections left.
            let kind = MessageKind::Leave(successor.next());
            let _ = mailbox.send(Token::NOBODY, Message::to_worker(kind));
        }
        drop(successor);
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
    /// Returns whether every worker that has not ended comes to its mail within `patience`: one whose handler doesn't
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

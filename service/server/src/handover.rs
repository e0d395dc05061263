//! A server that another process takes over, and whether its workers live.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use bolide_connection::Secret;
use bolide_eventloop::{DatagramPipe, Handle, Mailbox, Token};

use crate::quic::Lineage;
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

/// A process that served HTTP/3 at the same UDP sockets before, and may have connections.
#[derive(Debug)]
pub struct EarlierProcess {
    /// Its number.
    pub number: u8,
    /// By these, its workers get the datagrams that are for their connections.
    pub pipes: Vec<OwnedFd>,
}

/// The HTTP/3 of a server that runs, for those who follow it.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// Which listeners have UDP sockets.
    are_open: Vec<bool>,
    lineage: Lineage,
    /// To the process that is to take over, one for each worker.
    successor: Vec<Arc<DatagramPipe>>,
}

impl Datagrams {
    pub(crate) fn start(
        are_open: Vec<bool>,
        lineage: Lineage,
        workers: &Handle<Message>,
    ) -> io::Result<Self> {
        let before = lineage.follows.and_then(|number| lineage.earlier.get(&number));
        workers.take_datagrams_of(before.map_or(&[], Vec::as_slice))?;
        Ok(Self { are_open, lineage, successor: Vec::new() })
    }

    pub(crate) fn are_open(&self) -> &[bool] {
        &self.are_open
    }

    fn prepare(&mut self, workers: &Handle<Message>) -> io::Result<Vec<EarlierProcess>> {
        if !self.are_open.contains(&true) {
            return Ok(Vec::new());
        }
        let (mut own, mut theirs) = (Vec::new(), Vec::new());
        for _ in workers.mailboxes() {
            let (one, other) = DatagramPipe::pair()?;
            one.greet(&self.lineage.secret.0)?;
            own.push(Arc::new(one));
            theirs.push(other.duplicate()?);
        }
        workers.take_datagrams_of(&own)?;
        self.successor = own;
        let mut processes = vec![EarlierProcess { number: self.lineage.process, pipes: theirs }];
        for (number, pipes) in &self.lineage.earlier {
            if pipes.iter().all(|pipe| pipe.is_open()) {
                let pipes = pipes.iter().map(|pipe| pipe.duplicate());
                let pipes = pipes.collect::<io::Result<_>>()?;
                processes.push(EarlierProcess { number: *number, pipes });
            }
        }
        Ok(processes)
    }
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
    /// [sockets](crate::Server::sockets): clients that are about to send another request get their answer here,
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

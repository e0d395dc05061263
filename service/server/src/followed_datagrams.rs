//! The HTTP/3 of a server that another process follows, or that follows another.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bolide_eventloop::{DatagramPipe, Handle};

use crate::Message;
use crate::quic::Lineage;

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
    pub(crate) successor: Vec<Arc<DatagramPipe>>,
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

    pub(crate) fn prepare(&mut self, workers: &Handle<Message>) -> io::Result<Vec<EarlierProcess>> {
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
            // Of its workers, some may have ended.
            if pipes.iter().any(|pipe| pipe.is_open()) {
                let pipes = pipes.iter().map(|pipe| pipe.duplicate());
                let pipes = pipes.collect::<io::Result<_>>()?;
                processes.push(EarlierProcess { number: *number, pipes });
            }
        }
        Ok(processes)
    }
}

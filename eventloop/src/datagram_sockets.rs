//! Sockets of datagrams, each with many connections.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bolide_buffers::Datagram;

use crate::datagram_pipe::DatagramPipe;
use crate::kernel::Kernel;
use crate::mailbox::Mailbox;
use crate::slots::Token;

/// The keys of sockets begin here: those of listeners are below.
const FIRST_KEY: u32 = 1 << 31;

/// A socket of datagrams, and what the kernel said of it.
pub(crate) struct DatagramSocket<K: Kernel> {
    pub(crate) socket: K::Datagrams,
    pub(crate) local: SocketAddr,
    /// Which listener sessions are told; none of connections outward.
    pub(crate) listener: Option<usize>,
    pub(crate) ready: bool,
    /// Mark: what was sent has met no receiver (ICMP).
    pub(crate) refused: bool,
    /// Connections that wait for room.
    pub(crate) blocked: Vec<Token>,
    /// Of connections outward.
    pub(crate) outward: Option<Outward>,
}

impl<K: Kernel> DatagramSocket<K> {
    pub(crate) fn new(
        socket: K::Datagrams,
        local: SocketAddr,
        listener: Option<usize>,
        outward: Option<Outward>,
    ) -> Self {
        let (ready, refused, blocked) = (false, false, Vec::new());
        Self { socket, local, listener, ready, refused, blocked, outward }
    }
}

/// The connections that share a socket.
#[derive(Debug)]
pub(crate) struct Outward {
    pub(crate) to: SocketAddr,
    /// The connections, and some that are gone.
    pub(crate) names: Vec<Token>,
    pub(crate) open_count: usize,
}

/// The sockets for one address.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    pub(crate) positions: Vec<u8>,
    /// Which of them the last connection got.
    pub(crate) last: usize,
}

/// A worker's sockets, and what it needs for them.
pub(crate) struct DatagramSockets<K: Kernel, M> {
    pub(crate) open: Vec<Option<DatagramSocket<K>>>,
    /// The positions of those that were closed.
    free: Vec<u8>,
    /// Those from which something may be received, by their positions.
    pub(crate) ready: VecDeque<u8>,
    /// Those of connections outward, by where these go to.
    pub(crate) outward: BTreeMap<SocketAddr, Shares>,
    /// Another process receives what comes for listeners.
    pub(crate) are_left: bool,
    /// By which other processes pass datagrams on.
    pipes: Vec<Arc<DatagramPipe>>,
    /// Datagrams that have come and were not told to the service.
    pub(crate) received: Vec<Datagram>,
    /// Connections for which something has come.
    pub(crate) calls: Vec<Token>,
    /// The mailboxes of all workers, by their numbers.
    pub(crate) workers: Vec<Mailbox<M>>,
}

impl<K: Kernel, M> Default for DatagramSockets<K, M> {
    fn default() -> Self {
        let (open, free, ready, outward) = Default::default();
        let (are_left, pipes, received, calls, workers) = Default::default();
        Self { open, free, ready, outward, are_left, pipes, received, calls, workers }
    }
}

impl<K: Kernel, M> DatagramSockets<K, M> {
    /// The socket that an event is for, if it is for one.
    #[inline]
    pub(crate) fn position(key: u32) -> Option<usize> {
        key.checked_sub(FIRST_KEY).map(|position| position as usize)
    }

    /// Returns what the kernel calls a socket.
    pub(crate) fn key(position: usize) -> u64 {
        Token::new(0, FIRST_KEY + position as u32).key()
    }

    /// Returns whether datagrams may be received at once.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn set_workers(&mut self, workers: Vec<Mailbox<M>>) {
        self.workers = workers;
    }

    /// The open socket at a position.
    #[inline]
    pub(crate) fn at(&mut self, position: usize) -> Option<&mut DatagramSocket<K>> {
        self.open.get_mut(position)?.as_mut()
    }

    /// Takes a socket, which the kernel is told to watch by the position that it gets.
    pub(crate) fn add(&mut self, mut bound: DatagramSocket<K>, kernel: &mut K) -> io::Result<u8> {
        let too_many = |_| io::Error::other("there are too many sockets of datagrams");
        let free = self.free.last().copied();
        let position = free.map_or_else(|| u8::try_from(self.open.len()).map_err(too_many), Ok)?;
        kernel.watch_datagrams(&mut bound.socket, Self::key(position.into()), false)?;
        match self.free.pop() {
            Some(_) => self.open[usize::from(position)] = Some(bound),
            None => self.open.push(Some(bound)),
        }
        Ok(position)
    }

    /// Returns whether there is no position for one more.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty() && self.open.len() > usize::from(u8::MAX)
    }

    /// Closes a socket.
    pub(crate) fn close(&mut self, position: u8) {
        self.open[usize::from(position)] = None;
        self.free.push(position);
    }

    /// Datagrams come by this pipe.
    pub(crate) fn add_pipe(&mut self, pipe: Arc<DatagramPipe>) {
        self.pipes.push(pipe);
    }

    /// No more come by it.
    pub(crate) fn remove_pipe(&mut self, pipe: &Arc<DatagramPipe>) {
        self.pipes.retain(|open| !Arc::ptr_eq(open, pipe));
    }

    /// Lets nothing more come by pipes. Whether something still may that was sent before.
    pub(crate) fn shut_pipes(&self) -> bool {
        self.pipes.iter().for_each(|pipe| pipe.shut());
        !self.pipes.is_empty()
    }

    /// Returns whether another process receives what comes at this socket.
    #[inline]
    pub(crate) fn is_left(&mut self, position: usize) -> bool {
        self.are_left && self.at(position).is_some_and(|bound| bound.listener.is_some())
    }

    /// Something may be received at a socket.
    pub(crate) fn note_ready(&mut self, position: usize) {
        if !self.is_left(position)
            && let Some(bound) = self.at(position)
            && !std::mem::replace(&mut bound.ready, true)
        {
            self.ready.push_back(position as u8);
        }
    }
}

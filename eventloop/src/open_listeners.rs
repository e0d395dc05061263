//! The listeners of a worker, and when it accepts from them.

use std::time::Instant;

use crate::kernel::{Incoming, Kernel, file_limit};
use crate::limits::Limits;
use crate::slots::Token;

/// A listener, and what the kernel said of it.
pub(crate) struct OpenListener<L> {
    pub(crate) socket: L,
    pub(crate) index: usize,
    pub(crate) ready: bool,
}

/// The listeners of a worker, and whether they are open.
pub(crate) struct OpenListeners<K: Kernel> {
    pub(crate) open: Vec<OpenListener<K::Listener>>,
    /// Accepted before it was known that there is no room, with the number of its listener.
    pub(crate) waiting: Option<(Incoming<K::Socket>, usize)>,
    /// Connections that the worker has room for, in number.
    pub(crate) room_count: usize,
    pub(crate) paused_until: Option<Instant>,
    /// The place after which the search for an idle connection goes on.
    pub(crate) hand: u32,
}

impl<K: Kernel> OpenListeners<K> {
    pub(crate) fn new(limits: &Limits) -> Self {
        let room_count = match limits.connections_max_count {
            0 => usize::try_from(file_limit() / 10 * 9).unwrap_or(usize::MAX).max(1),
            count => count,
        };
        Self { open: Vec::new(), waiting: None, room_count, paused_until: None, hand: 0 }
    }

    pub(crate) fn next_key(&self) -> u64 {
        Token::new(0, self.open.len() as u32).key()
    }

    pub(crate) fn add(&mut self, listener: K::Listener, index: usize) {
        self.open.push(OpenListener { socket: listener, index, ready: false });
    }

    /// Connections arrived.
    pub(crate) fn note(&mut self, position: u32) {
        if let Some(listener) = self.open.get_mut(position as usize) {
            listener.ready = true;
        }
    }

    /// Returns whether connections may be accepted at once.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.paused_until.is_none()
            && (self.waiting.is_some() || self.open.iter().any(|listener| listener.ready))
    }

    /// A connection was closed.
    #[inline]
    pub(crate) fn room_was_made(&mut self) {
        self.paused_until = None;
    }

    pub(crate) fn shut(&mut self, kernel: &mut K) {
        for listener in self.open.drain(..) {
            kernel.stop_listening(listener.socket);
        }
        self.waiting = None;
        self.paused_until = None;
    }
}

//! `/ws`: messages come back as they are sent.

use std::cell::Cell;
use std::mem;
use std::rc::Rc;

use bolide_server::websocket::{DeflatePolicy, Kind, Options, Owner, Payload, Socket, WebSocket};
use bolide_server::{End, Reply, Request, Router};

use crate::limits::{ECHO_AHEAD_BYTES, ECHO_AHEAD_WORKER_BYTES};

/// Smaller pieces of a message leave together where they arrive together, in bytes: a frame for each, and a flush of
/// the compressor, would cost more than the piece.
const PIECE_BYTES: usize = 16 * 1024;

/// `/ws` over HTTP/1.1 and HTTP/2, with subprotocol `echo` and compression where they are offered.
pub(crate) fn route(router: Router, kept: &Options) -> Router {
    let options = kept.clone().protocol("echo").deflate(DeflatePolicy::default());
    let taken = Rc::<Cell<usize>>::default();
    router.websocket("/ws", move |request: &mut Request<'_>| -> Reply {
        WebSocket::accept(request, &options, Echo::new(Ahead::of(&taken)))
    })
}

/// Sends a message back piece by piece: none is put together. A client that reads nothing before it has sent all of a
/// message would wait for a server that waits for it: so more may wait to be sent than on other connections.
#[derive(Debug)]
struct Echo {
    /// The kind of the message that is received.
    kind: Kind,
    /// Bytes of it that arrived in small pieces and was not sent back.
    small: Vec<u8>,
    /// How much may wait to be sent in any case, in bytes.
    own_bytes: usize,
    /// Bytes that may wait beyond that.
    ahead: Ahead,
}

impl Echo {
    fn new(ahead: Ahead) -> Self {
        Self { kind: Kind::Binary, small: Vec::new(), own_bytes: 0, ahead }
    }

    /// Lets as much wait as waits, as far as the worker has room for it.
    fn read_ahead(&mut self, socket: &mut Socket<'_, '_>) {
        self.ahead.take(socket.unsent_bytes().saturating_sub(self.own_bytes));
        socket.set_output_bytes_max(self.own_bytes + self.ahead.bytes);
    }
}

impl Owner for Echo {
    fn on_open(&mut self, socket: &mut Socket<'_, '_>) {
        self.own_bytes = socket.output_bytes_max();
    }

    fn on_message(&mut self, kind: Kind, payload: Payload, end: End, socket: &mut Socket<'_, '_>) {
        self.kind = kind;
        // When it can't be sent, the connection is closed already: the client waits for no echo.
        if self.small.is_empty() && (end == End::Yes || payload.len() >= PIECE_BYTES) {
            let _ = socket.send_piece(kind, payload.into_bytes(), end);
        } else {
            payload.append_to(&mut self.small);
            if end == End::Yes || self.small.len() >= PIECE_BYTES {
                let _ = socket.send_piece(kind, mem::take(&mut self.small), end);
            }
        }
        self.read_ahead(socket);
    }

    fn held_bytes(&self) -> usize {
        self.small.capacity()
    }

    fn on_sendable(&mut self, socket: &mut Socket<'_, '_>) {
        if !self.small.is_empty() {
            let _ = socket.send_piece(self.kind, mem::take(&mut self.small), End::No);
        }
        self.read_ahead(socket);
    }
}

/// A connection's part of what a worker reads ahead.
#[derive(Debug)]
struct Ahead {
    bytes: usize,
    /// The parts of all connections together, in bytes.
    taken: Rc<Cell<usize>>,
}

impl Ahead {
    fn of(taken: &Rc<Cell<usize>>) -> Self {
        Self { bytes: 0, taken: Rc::clone(taken) }
    }

    /// Makes the part as large as this, as far as there is room.
    fn take(&mut self, bytes: usize) {
        let others = self.taken.get() - self.bytes;
        let room = ECHO_AHEAD_WORKER_BYTES.saturating_sub(others).min(ECHO_AHEAD_BYTES);
        self.bytes = bytes.min(room);
        self.taken.set(others + self.bytes);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.take(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_given_back_and_never_larger_than_what_is_left() {
        let taken = Rc::default();
        let mut parts: Vec<_> = (0..5).map(|_| Ahead::of(&taken)).collect();
        for part in &mut parts {
            part.take(usize::MAX);
        }
        let bytes: Vec<_> = parts.iter().map(|part| part.bytes >> 20).collect();
        assert_eq!((bytes, taken.get()), (vec![16, 16, 16, 16, 0], ECHO_AHEAD_WORKER_BYTES));
        parts[1].take(1 << 20);
        parts.swap_remove(0);
        parts[0].take(3 << 20);
        assert_eq!(taken.get(), (3 + 1 + 16 + 16) << 20);
        drop(parts);
        assert_eq!(taken.get(), 0);
    }
}

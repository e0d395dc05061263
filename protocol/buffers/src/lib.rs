//! The bytes between two layers, and nothing else.
//!
//! [`ReceiveBuffer`] is filled at its end by the reader and consumed at its front by the
//! parser. [`SendQueue`] is appended to by the encoder and drained, in one vectored write, by
//! the owner of the socket. Both belong to a worker, not to a connection: an idle connection owns
//! no buffer. A [`PieceQueue`] holds what was received and waits for its reader. Over QUIC, a
//! [`Datagram`] comes and a [`DatagramBatch`] leaves.
//!
//! This crate must never know what the bytes mean.

mod chunk;
mod datagram;
mod outside;
mod piece_queue;
mod receive_buffer;
mod send_queue;
mod waiting_pieces;

pub use chunk::{Chunk, Memory};
pub use datagram::{BpfInstruction, Datagram, DatagramBatch, DatagramSink};
pub use outside::Outside;
pub use piece_queue::PieceQueue;
pub use receive_buffer::{ReceiveBuffer, detach};
pub use send_queue::{COPIED_BYTES, Flush, SendQueue};
pub use waiting_pieces::WaitingPieces;

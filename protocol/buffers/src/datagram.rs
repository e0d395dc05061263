//! Datagrams, and what carries them.

use std::io;
use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;

/// A datagram that came.
#[derive(Debug)]
pub struct Datagram {
    /// The address of its sender.
    pub from: SocketAddr,
    /// The address that it was sent to, where that is known.
    pub to: Option<IpAddr>,
    /// The two bits of ECN (RFC 3168 §5).
    pub ecn: u8,
    /// Its bytes.
    pub bytes: BytesMut,
}

/// One or more datagrams for one address, one after the other in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramBatch {
    /// The address of their receiver.
    pub to: SocketAddr,
    /// The address that they are to be sent from, where that matters.
    pub from: Option<IpAddr>,
    /// The two bits of ECN.
    pub ecn: u8,
    /// How many bytes all of them have.
    pub bytes: usize,
    /// How long each is but the last, if there are several.
    pub segment_bytes: Option<usize>,
}

/// An instruction of classic BPF (bpf(4)). A program of them is given a datagram's bytes and returns the number of the socket
/// that is to have it, of several with one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfInstruction {
    /// The operation's number.
    pub code: u16,
    /// How many instructions are passed over where a condition holds.
    pub if_true: u8,
    /// How many where it does not.
    pub if_false: u8,
    /// Its operand.
    pub operand: u32,
}

/// A way out for datagrams.
pub trait DatagramSink {
    /// Sends the datagrams at the beginning of `buffer`. A datagram that can't be sent is lost, as on any path.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and no other: nothing was sent.
    fn send(&mut self, batch: &DatagramBatch, buffer: &[u8]) -> io::Result<()>;
}

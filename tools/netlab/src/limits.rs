//! The bounds of the lab, each with its reason.

use std::time::Duration;

/// Bytes that the delay line holds in flight and in its queue, for each direction.
/// Default: 512 MiB. Unit: bytes. Reason: 40 Gbit/s at 100 ms one way; beyond it packets are dropped and counted, so that a sender without end can't fill the machine's memory.
/// Against: line-flood.
pub const LINE_HELD_BYTES: usize = 512 * 1024 * 1024;

/// The least that a queue of a rate-limited direction holds, however short it was asked for.
/// Default: 32 KiB. Unit: bytes. Reason: the smallest burst that `tc tbf` is given in such set-ups; less than a few packets would be no queue at all.
/// Against: none.
pub const QUEUE_MIN_BYTES: u64 = 32 * 1024;

/// Packets that the delay line takes from the kernel before it lets due ones go.
/// Default: 64. Unit: packets. Reason: a tenth of a millisecond of work, so that reading never makes due packets late.
/// Against: none.
pub const LINE_BATCH_COUNT: usize = 64;

/// The request line of a raw TCP transfer.
/// Default: 64. Unit: bytes. Reason: a verb and a number of 20 digits, with room to spare.
/// Against: raw-request-flood.
pub const RAW_REQUEST_BYTES: usize = 64;

/// Time that a peer of a raw TCP server has for its request line.
/// Default: 5 s. Unit: time. Reason: it is one packet, sent at once, even with an RTT of 600 ms and losses.
/// Against: raw-request-flood.
pub const RAW_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections that a raw TCP server carries at a time; more are closed at once.
/// Default: 64. Unit: connections. Reason: each has a thread and a block; a measurement needs at most 16.
/// Against: raw-request-flood.
pub const RAW_CONNECTIONS_COUNT: usize = 64;

/// Silence of a peer after which a raw TCP transfer is given up.
/// Default: 30 s. Unit: time. Reason: longer than any backoff of TCP that a shaped line of the lab causes.
/// Against: none.
pub const RAW_SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that the process that keeps a lab has to build and verify it.
/// Default: 120 s. Unit: time. Reason: the slowest profile measures for about 30 s.
/// Against: none.
pub const UP_TIMEOUT: Duration = Duration::from_secs(120);

/// Time that processes have between SIGTERM and SIGKILL when a lab goes down.
/// Default: 2 s. Unit: time. Reason: a server that ends by itself does so within it.
/// Against: none.
pub const DOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Characters in the name of a lab.
/// Default: 32. Unit: characters. Reason: it becomes part of file names and of namespaces' names.
/// Against: none.
pub const NAME_COUNT: usize = 32;

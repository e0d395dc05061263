//! The bounds of the loop itself, each with its reason.

use std::time::Duration;

/// Connections that one worker, or, of a server, all workers together hold at a time; 0 stands for 90 % of the file descriptors.
/// Default: 0. Unit: connections. Reason: beyond it the longest idle connection is shed, so that a crowd of idle peers cannot lock out the others.
/// Answers: connection-flood.
pub const CONNECTIONS_MAX_COUNT: usize = 0;

/// The block of the receive buffer, one per worker.
/// Default: 256 KiB. Unit: bytes. Reason: four times the largest slice that is copied when it outlives its turn.
/// Answers: none.
pub const BLOCK_BYTES: usize = 256 * 1024;

/// The block for a connection that filled the usual one and kept nothing of it, one per worker that has had such a connection.
/// Default: 1 MiB. Unit: bytes. Reason: a pass's worth in one read; a small request never pays for it.
/// Answers: none.
pub const BULK_BLOCK_BYTES: usize = 1024 * 1024;

/// What one connection may read and write in one pass before the others have their turn.
/// Default: 1 MiB. Unit: bytes. Reason: a third of a millisecond of work, so that one greedy peer cannot starve the others.
/// Answers: greedy-peer.
pub const PASS_BYTES: usize = 1024 * 1024;

/// Reads of one connection in one pass.
/// Default: 8. Unit: system calls. Reason: as above, for peers that send many small pieces.
/// Answers: greedy-peer.
pub const PASS_READS_COUNT: u32 = 8;

/// Calls of one session in one pass.
/// Default: 32. Unit: calls. Reason: as above, for responses that leave as fast as they are made.
/// Answers: greedy-peer.
pub const PASS_CALLS_COUNT: u32 = 32;

/// What must have arrived of a long body that comes fast before its reader is woken; 0: any byte wakes it.
/// Default: 512 KiB. Unit: bytes. Reason: a wake-up for each burst of 64 KiB costs as much as TCP's own receiving does; beyond this, the bytes leave the cache before they are read.
/// Answers: none.
pub const GATHER_BYTES: usize = 512 * 1024;

/// What must have come of a connection within 8 ms for that.
/// Default: 4 MiB. Unit: bytes. Reason: 4 Gbit/s, at which gathering takes a millisecond; slower ones are read as they come.
/// Answers: none.
pub const GATHER_AFTER_BYTES: usize = 4 * 1024 * 1024;

/// How often connections whose bytes are gathered are looked at; one of which nothing was read since the look before is read as it comes again.
/// Default: 1 ms. Unit: time. Reason: what a peer that pauses in the middle of a fast body has sent waits for twice as long at most.
/// Answers: pause-in-a-body.
pub const GATHER_TIME: Duration = Duration::from_millis(1);

/// Connections accepted from one listener before the open ones have their turn.
/// Default: 64. Unit: connections. Reason: a burst of new connections must not delay the open ones by more than a millisecond.
/// Answers: connection-flood.
pub const ACCEPTS_PER_TURN_COUNT: u32 = 64;

/// Mails that are delivered before the sockets have their turn.
/// Default: 1024. Unit: mails. Reason: as for accepted connections.
/// Answers: none.
pub const MAILS_PER_TURN_COUNT: u32 = 1024;

/// Sockets of datagrams that a worker has for its connections to one address; more connections share them. Default: 64. Unit:
/// sockets. Reason: servers that deal connections to their threads by the client's port have something to deal, and
/// thousands of connections need no more. Answers: none.
pub const DATAGRAM_SOCKETS_COUNT: usize = 64;

/// Datagrams that are taken from one socket before the connections have their turn.
/// Default: 1024. Unit: datagrams. Reason: 1.5 MB, half a millisecond of work; what is behind them waits in the kernel.
/// Answers: datagram-flood.
pub const DATAGRAMS_PER_TURN_COUNT: u32 = 1024;

/// Connections that the kernel keeps ready to be accepted, for each listener.
/// Default: 4096. Unit: connections. Reason: a burst that arrives within one long turn; Linux caps it at `somaxconn`.
/// Answers: none.
pub const BACKLOG_COUNT: u32 = 4096;

/// Pause of accepting when the process or the system has run out of file descriptors, unless a connection closes before.
/// Default: 100 ms. Unit: time. Reason: waiting connections stay in the backlog, and the loop never spins on a call that fails.
/// Answers: descriptor-exhaustion.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Unsent bytes of a connection at which its session is asked for more no longer, before a rate is known.
/// Default: 64 KiB. Unit: bytes. Reason: what most responses fit in, and as much as a peer that reads nothing takes; it doubles
/// while the peer takes everything. Answers: tcp-window-closed.
pub const UNSENT_START_BYTES: usize = 64 * 1024;

/// The least that bound falls to on a slow path.
/// Default: 16 KiB. Unit: bytes. Reason: one TLS record, one HTTP/2 frame.
/// Answers: tcp-window-closed.
pub const UNSENT_MIN_BYTES: usize = 16 * 1024;

/// The most that bound rises to on a fast path.
/// Default: 1 MiB. Unit: bytes. Reason: 4 ms at 2 Gbit/s; beyond it a larger bound gains nothing.
/// Answers: tcp-window-closed.
pub const UNSENT_MAX_BYTES: usize = 1024 * 1024;

/// How much a connection's unsent bytes may be in time, at the rate at which they leave.
/// Default: 4 ms. Unit: time. Reason: a small response waits this long at most behind a large one.
/// Answers: none.
pub const UNSENT_TIME: Duration = Duration::from_millis(4);

/// What foreign bytes may make one connection keep before nothing more is read from it.
/// Default: 64 MiB. Unit: bytes. Reason: the largest window that grows with use and 100 pieces of responses have room beneath
/// it; what a peer sends beyond waits in its own memory. Answers: memory-of-a-connection.
pub const CONNECTION_HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What foreign bytes may make one worker, or, of a server, all workers together keep before the connections that hold most are
/// closed; 0 stands for half of the memory that the process may use.
/// Default: 0. Unit: bytes. Reason: the other half is for the program, its files and the kernel's sockets; a few connections are
/// lost rather than all of them. Answers: memory-of-a-worker.
pub const HELD_BYTES_MAX: usize = 0;

/// How long a closing connection may take to take `CLOSE_STALL_BYTES` of what is still to be sent.
/// Default: 30 s. Unit: time. Reason: a reader that stopped must not keep its last response in memory for ever.
/// Answers: slow-reader.
pub const CLOSE_STALL: Duration = Duration::from_secs(30);

/// What a closing connection has to take within `CLOSE_STALL` to be given as long again.
/// Default: 15 KiB. Unit: bytes. Reason: some 500 bytes a second, as a peer has to take while the connection is open; a reader of a byte now and then must not keep its last response either.
/// Answers: reader-of-single-bytes.
pub const CLOSE_STALL_BYTES: usize = 15 * 1024;

/// How long a closed connection is read from and discarded, so that a reset does not destroy its last response.
/// Default: 2 s. Unit: time. Reason: a few round trips of a slow path.
/// Answers: none.
pub const LINGER: Duration = Duration::from_secs(2);

/// How much is discarded in that time.
/// Default: 1 MiB. Unit: bytes. Reason: what a peer has in flight when it learns of the end; more is an abuse.
/// Answers: endless-upload.
pub const LINGER_BYTES: usize = 1024 * 1024;

/// Threads of a pool for blocking work.
/// Default: 16. Unit: threads. Reason: what one disk serves at a time, with some to spare for requests that wait for a slow one; a thread without work costs nothing, for it ends.
/// Answers: blocking-work.
pub const OFFLOAD_THREADS_COUNT: usize = 16;

/// Blocking jobs that wait for a thread; beyond it new ones are refused.
/// Default: 1024. Unit: jobs. Reason: at 100 µs each, 16 threads work them off in 7 ms; a disk that hangs must not collect jobs without end.
/// Answers: blocking-work.
pub const OFFLOAD_QUEUE_COUNT: usize = 1024;

/// How long a thread of such a pool stays without work.
/// Default: 10 s. Unit: time. Reason: a thread starts in 20 µs; what comes more often than that keeps its thread.
/// Answers: none.
pub const OFFLOAD_IDLE: Duration = Duration::from_secs(10);

/// The bounds of a worker; each field says more at the constant of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// [`CONNECTIONS_MAX_COUNT`]
    pub connections_max_count: usize,
    /// [`BLOCK_BYTES`]
    pub block_bytes: usize,
    /// [`BULK_BLOCK_BYTES`]
    pub bulk_block_bytes: usize,
    /// [`PASS_BYTES`]
    pub pass_bytes: usize,
    /// [`PASS_READS_COUNT`]
    pub pass_reads_count: u32,
    /// [`PASS_CALLS_COUNT`]
    pub pass_calls_count: u32,
    /// [`GATHER_BYTES`]
    pub gather_bytes: usize,
    /// [`GATHER_AFTER_BYTES`]
    pub gather_after_bytes: usize,
    /// [`GATHER_TIME`]
    pub gather_time: Duration,
    /// [`ACCEPTS_PER_TURN_COUNT`]
    pub accepts_per_turn_count: u32,
    /// [`DATAGRAMS_PER_TURN_COUNT`]
    pub datagrams_per_turn_count: u32,
    /// [`MAILS_PER_TURN_COUNT`]
    pub mails_per_turn_count: u32,
    /// [`BACKLOG_COUNT`]
    pub backlog_count: u32,
    /// [`ACCEPT_PAUSE`]
    pub accept_pause: Duration,
    /// [`UNSENT_START_BYTES`]
    pub unsent_start_bytes: usize,
    /// [`UNSENT_MIN_BYTES`]
    pub unsent_min_bytes: usize,
    /// [`UNSENT_MAX_BYTES`]
    pub unsent_max_bytes: usize,
    /// [`UNSENT_TIME`]
    pub unsent_time: Duration,
    /// [`CONNECTION_HELD_BYTES_MAX`]
    pub connection_held_bytes_max: usize,
    /// [`HELD_BYTES_MAX`]
    pub held_bytes_max: usize,
    /// [`CLOSE_STALL`]
    pub close_stall: Duration,
    /// [`CLOSE_STALL_BYTES`]
    pub close_stall_bytes: usize,
    /// [`LINGER`]
    pub linger: Duration,
    /// [`LINGER_BYTES`]
    pub linger_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max_count: CONNECTIONS_MAX_COUNT,
            block_bytes: BLOCK_BYTES,
            bulk_block_bytes: BULK_BLOCK_BYTES,
            pass_bytes: PASS_BYTES,
            pass_reads_count: PASS_READS_COUNT,
            pass_calls_count: PASS_CALLS_COUNT,
            gather_bytes: GATHER_BYTES,
            gather_after_bytes: GATHER_AFTER_BYTES,
            gather_time: GATHER_TIME,
            accepts_per_turn_count: ACCEPTS_PER_TURN_COUNT,
            datagrams_per_turn_count: DATAGRAMS_PER_TURN_COUNT,
            mails_per_turn_count: MAILS_PER_TURN_COUNT,
            backlog_count: BACKLOG_COUNT,
            accept_pause: ACCEPT_PAUSE,
            unsent_start_bytes: UNSENT_START_BYTES,
            unsent_min_bytes: UNSENT_MIN_BYTES,
            unsent_max_bytes: UNSENT_MAX_BYTES,
            unsent_time: UNSENT_TIME,
            connection_held_bytes_max: CONNECTION_HELD_BYTES_MAX,
            held_bytes_max: HELD_BYTES_MAX,
            close_stall: CLOSE_STALL,
            close_stall_bytes: CLOSE_STALL_BYTES,
            linger: LINGER,
            linger_bytes: LINGER_BYTES,
        }
    }
}

/// How long a worker hears nothing from any socket before it gives free memory back to the operating system.
/// Default: 1 s. Unit: time. Reason: idle connections have given back by then what they don't need; a busy worker never pays for it.
/// Answers: none.
pub const QUIET_TIME: Duration = Duration::from_secs(1);

//! The bounds of the loop itself, each with its reason.

use std::time::Duration;

use bolide_limits::limits;

/// Sockets of datagrams that a worker has for its connections to one address; more connections share them. Default: 64. Unit:
/// sockets. Reason: servers that deal connections to their threads by the client's port have something to deal, and
/// thousands of connections need no more. Against: none.
pub const DATAGRAM_SOCKETS_COUNT: usize = 64;

limits! {
    /// The share of a turn that one connection, or one kind of work, may take.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Turns {
        /// The block of the receive buffer, one per worker. Default: 256 KiB. Unit: bytes. Reason: four times the largest slice
        /// that is copied when it outlives its turn. Against: none.
        block_bytes: usize = 256 * 1024,

        /// The block for a connection that filled the usual one and kept nothing of it, one per worker that has had such a
        /// connection. Default: 1 MiB. Unit: bytes. Reason: a pass's worth in one read; a small request never pays for it. Against:
        /// none.
        bulk_block_bytes: usize = 1024 * 1024,

        /// Bytes that one connection may read and write in one pass before the others have their turn. Default: 1 MiB. Unit: bytes.
        /// Reason: a third of a millisecond of work, so that one greedy peer cannot starve the others. Against: greedy-peer.
        pass_bytes: usize = 1024 * 1024,

        /// Reads of one connection in one pass. Default: 8. Unit: system calls. Reason: as above, for peers that send many small
        /// pieces. Against: greedy-peer.
        pass_reads_count: u32 = 8,

        /// Calls of one session in one pass. Default: 32. Unit: calls. Reason: as above, for responses that leave as fast as they
        /// are made. Against: greedy-peer.
        pass_calls_count: u32 = 32,

        /// Connections accepted from one listener before the open ones have their turn. Default: 64. Unit: connections. Reason: a
        /// burst of new connections must not delay the open ones by more than a millisecond. Against: connection-flood.
        accepts_per_turn_count: u32 = 64,

        /// Datagrams that are taken from one socket before the connections have their turn. Default: 1024. Unit: datagrams. Reason:
        /// 1.5 MB, half a millisecond of work; what is behind them waits in the kernel. Against: datagram-flood.
        datagrams_per_turn_count: u32 = 1024,

        /// Mails that are delivered before the sockets have their turn. Default: 1024. Unit: mails. Reason: as for accepted
        /// connections. Against: none.
        mails_per_turn_count: u32 = 1024,
    }
}

limits! {
    /// When the bytes of a long body that comes fast are gathered before its reader is woken.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Gathering {
        /// Bytes that must have arrived of a long body that comes fast before its reader is woken; 0: any byte wakes it. Default: 512
        /// KiB. Unit: bytes. Reason: a wake-up for each burst of 64 KiB costs as much as TCP's own receiving does; beyond this, the
        /// bytes leave the cache before they are read. Against: none.
        gather_bytes: usize = 512 * 1024,

        /// Bytes that must have come of a connection within 8 ms for that. Default: 4 MiB. Unit: bytes. Reason: 4 Gbit/s, at which
        /// gathering takes a millisecond; slower ones are read as they come. Against: none.
        gather_after_bytes: usize = 4 * 1024 * 1024,

        /// How often connections whose bytes are gathered are looked at; one of which nothing was read since the look before is
        /// read as it comes again. Default: 1 ms. Unit: time. Reason: what a peer that pauses in the middle of a fast body has sent
        /// waits for twice as long at most. Against: pause-in-a-body.
        gather_time: Duration = Duration::from_millis(1),
    }
}

limits! {
    /// The bytes of a connection that may wait to leave.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Unsent {
        /// Unsent bytes of a connection at which its session is asked for more no longer, before a rate is known. Default: 64 KiB.
        /// Unit: bytes. Reason: what most responses fit in, and as much as a peer that reads nothing takes; it doubles while the
        /// peer takes everything. Against: tcp-window-closed.
        unsent_start_bytes: usize = 64 * 1024,

        /// The least that bound falls to on a slow path. Default: 16 KiB. Unit: bytes. Reason: one TLS record, one HTTP/2 frame.
        /// Against: tcp-window-closed.
        unsent_min_bytes: usize = 16 * 1024,

        /// The most that bound rises to on a fast path. Default: 1 MiB. Unit: bytes. Reason: 4 ms at 2 Gbit/s; beyond it a larger
        /// bound gains nothing. Against: tcp-window-closed.
        unsent_max_bytes: usize = 1024 * 1024,

        /// How much a connection's unsent bytes may be in time, at the rate at which they leave. Default: 4 ms. Unit: time. Reason:
        /// a small response waits this long at most behind a large one. Against: none.
        unsent_time: Duration = Duration::from_millis(4),
    }
}

limits! {
    /// The end of a connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Closing {
        /// How long a closing connection may take to take `CLOSE_STALL_BYTES` of what is still to be sent. Default: 30 s. Unit:
        /// time. Reason: a reader that stopped must not keep its last response in memory for ever. Against: slow-reader.
        close_stall: Duration = Duration::from_secs(30),

        /// Bytes that a closing connection has to take within `CLOSE_STALL`, or to send within `LINGER`, to be given as long again.
        /// Default: 15 KiB. Unit: bytes. Reason: some 500 bytes a second, as a peer has to take while the connection is open; a
        /// reader of a byte now and then must not keep its last response either. Against: reader-of-single-bytes.
        close_stall_bytes: usize [from 0] = 15 * 1024,

        /// How long a closed connection is read from and discarded, so that a reset does not destroy its last response, unless
        /// the peer sends `CLOSE_STALL_BYTES` meanwhile. Default: 2 s. Unit: time. Reason: a few round trips of a slow path.
        /// Against: none.
        linger: Duration [from 0] = Duration::from_secs(2),

        /// How much of a closed connection is read and discarded in all. Default: 1 GiB. Unit: bytes. Reason: many clients read
        /// the response to an upload when they have sent all of it; to discard costs less than to take the upload would have.
        /// Against: endless-upload.
        linger_bytes: usize [from 0] = 1024 * 1024 * 1024,
    }
}

limits! {
    /// The bounds of a worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Limits {
        /// Connections that one worker, or, of a server, all workers together hold at a time; 0 stands for 90 % of the file
        /// descriptors. Default: 0. Unit: connections. Reason: beyond it the longest idle connection is shed, so that a crowd of
        /// idle peers cannot lock out the others. Against: connection-flood.
        connections_max_count: usize [from 0 to 1 << 30] = 0,

        /// Connections that the kernel keeps ready to be accepted, for each listener. Default: 4096. Unit: connections. Reason: a
        /// burst that arrives within one long turn; Linux caps it at `somaxconn`. Against: none.
        backlog_count: u32 [to (1 << 31) - 1] = 4096,

        /// Pause of accepting when the process or the system has run out of file descriptors, unless a connection closes before.
        /// Default: 100 ms. Unit: time. Reason: waiting connections stay in the backlog, and the loop never spins on a call that
        /// fails. Against: descriptor-exhaustion.
        accept_pause: Duration = Duration::from_millis(100),

        /// Memory that foreign bytes may make one connection keep before nothing more is read from it. Default: 64 MiB. Unit: bytes.
        /// Reason: the largest window that grows with use and 100 pieces of responses have room beneath it; what a peer sends
        /// beyond waits in its own memory. Against: memory-of-a-connection.
        connection_held_bytes_max: usize = 64 * 1024 * 1024,

        /// Memory that foreign bytes may make one worker, or, of a server, all workers together keep before the connections that hold most
        /// are closed; 0 stands for half of the memory that the process may use. Default: 0. Unit: bytes. Reason: the other half is
        /// for the program, its files and the kernel's sockets; a few connections are lost rather than all of them. Against:
        /// memory-of-a-worker.
        held_bytes_max: usize [from 0] = 0,
    }
    with {
        /// The share of a turn that one connection, or one kind of work, may take.
        turns: Turns = Turns::DEFAULT,
        /// When the bytes of a long body that comes fast are gathered before its reader is woken.
        gathering: Gathering = Gathering::DEFAULT,
        /// The bytes of a connection that may wait to leave.
        unsent: Unsent = Unsent::DEFAULT,
        /// The end of a connection.
        closing: Closing = Closing::DEFAULT,
    }
}

/// How long a worker hears nothing from any socket before it gives free memory back to the operating system.
/// Default: 1 s. Unit: time. Reason: idle connections have given back by then what they don't need; a busy worker never pays for it.
/// Against: none.
pub const QUIET_TIME: Duration = Duration::from_secs(1);

limits! {
    /// The limits of a pool of threads for blocking work.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct OffloadLimits {
        /// Threads of a pool for blocking work. Default: 16. Unit: threads. Reason: what one disk serves at a time, with some to
        /// spare for requests that wait for a slow one; a thread without work costs nothing, for it ends. Against: blocking-work.
        offload_threads_count: usize [to 1024] = 16,

        /// Blocking jobs that wait for a thread; beyond it new ones are refused. Default: 1024. Unit: jobs. Reason: at 100 µs each,
        /// 16 threads work them off in 7 ms; a disk that hangs must not collect jobs without end. Against: blocking-work.
        offload_queue_count: usize [from 0] = 1024,

        /// How long a thread of such a pool stays without work. Default: 10 s. Unit: time. Reason: a thread starts in 20 µs; what
        /// comes more often than that keeps its thread. Against: none.
        offload_idle: Duration [from 0] = Duration::from_secs(10),
    }
}

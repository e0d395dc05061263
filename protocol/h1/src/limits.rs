//! The limits of an HTTP/1.1 connection.

use std::time::Duration;

use bolide_limits::limits;

/// The number of hexadecimal digits in a chunk's size. Default: 16. Unit: digits. Reason: more do
/// not fit 64 bits, and leading zeros have no use. Against: chunk-size-overflow.
pub const CHUNK_SIZE_DIGITS_COUNT: u8 = 16;

/// How long an idle connection that a server leaves may still begin a request, which gets a response with
/// `Connection: close`. Default: 1 s. Unit: time. Reason: a request that is on its way arrives within a few
/// round trips; as long as HTTP/2 waits between its two GOAWAY frames. Against: none.
pub const LEAVE_NOTICE: Duration = Duration::from_secs(1);

limits! {
    /// The heads of messages, and what comes before them.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Heads {
        /// The length of a request line; beyond it the response is 414. Default: 16 KiB. Unit: bytes. Reason: RFC 9112 §3 asks for
        /// at least 8000. Against: long-request-line.
        request_line_bytes: u32 = 16 * 1024,

        /// The length of a head, start line included; beyond it the response is 431. Default: 32 KiB. Unit: bytes. Reason: nginx
        /// takes as much, and browsers send less. Against: large-head.
        head_bytes: u32 = 32 * 1024,

        /// The number of field lines in a head; beyond it the response is 431. Default: 100. Unit: lines. Reason: Apache, Envoy and
        /// hyper take as many. Against: many-fields.
        fields_count: u16 = 100,

        /// The number of empty lines that are skipped before a request. Default: 8. Unit: lines. Reason: RFC 9112 §2.2 asks for at
        /// least one. Against: empty-lines.
        empty_lines_count: u8 [from 0] = 8,

        /// How many interim responses may come before a final one. Default: 32. Unit: responses. Reason: 100, 102 and 103 come once
        /// or a few times. Against: interim-flood.
        interim_count: u8 [from 0] = 32,
    }
}

limits! {
    /// The bodies of messages.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Bodies {
        /// Size that the chunk extensions of one body may take together. Default: 16 KiB. Unit: bytes. Reason: they are ignored, so they
        /// are only a cost; hyper takes as much. Against: chunk-extensions.
        chunk_extension_bytes: u32 [from 0] = 16 * 1024,

        /// The length of a trailer section. Default: 16 KiB. Unit: bytes. Reason: trailers are few; hyper takes as much. Against:
        /// large-trailers.
        trailer_bytes: u32 [from 0] = 16 * 1024,

        /// The number of field lines in a trailer section. Default: 100. Unit: lines. Reason: the same as in a head. Against:
        /// many-trailers.
        trailers_count: u16 [from 0] = 100,

        /// How much of a request's body is read and thrown away, after its response is complete, to keep the connection. Default:
        /// 64 KiB. Unit: bytes. Reason: a round trip's worth costs less than a new connection. Against: unread-body.
        discard_bytes: u32 [from 0] = 64 * 1024,

        /// How much of a body may be reported and not yet consumed before reading stops. Default: 256 KiB. Unit: bytes. Reason: one
        /// block of a worker's receive buffer. Against: fast-body.
        unconsumed_bytes: u32 = 256 * 1024,

        /// Size that it may grow to, for a body whose reader takes all of it each time. No more than `unconsumed_bytes`, it stays as
        /// it is. Default: 1 MiB. Unit: bytes. Reason: what one turn reads; a reader that is slower than the peer is not given that
        /// much. Against: fast-body.
        unconsumed_bytes_max: u32 [from 0] = 1024 * 1024,
    }
}

limits! {
    /// Times that a connection, and what is on it, may take.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Times {
        /// How long a request's head may take from its first byte to its last, in all. Timeouts are kept to the millisecond.
        /// Default: 10 s. Unit: time. Reason: h2o allows as much. Against: slow-head.
        head_timeout: Duration = Duration::from_secs(10),

        /// How long a request's body may stand still while its bytes are wanted. Default: 30 s. Unit: time. Reason: longer than any
        /// retransmission that still succeeds. Against: slow-body.
        body_timeout: Duration = Duration::from_secs(30),

        /// The least rate of a request's body while its bytes are wanted and no response has begun, and of what waits to be sent.
        /// Default: 500. Unit: bytes per second. Reason: slower than any modem. Against: slow-body.
        body_rate_bytes: u32 [from 0] = 500,

        /// Over how long the rate of a request's body is averaged. Default: 10 s. Unit: time. Reason: short pauses of a mobile
        /// network are nothing to refuse. Against: slow-body.
        body_rate_window: Duration = Duration::from_secs(10),

        /// How long the peer may take nothing of what waits to be sent, or, on average, less than `BODY_RATE_BYTES`. Default: 30 s.
        /// Unit: time. Reason: nginx waits 60 s for the same. Against: slow-read.
        write_timeout: Duration = Duration::from_secs(30),

        /// How long a connection may stay without a request. Default: 60 s. Unit: time. Reason: nginx waits 75 s, h2o 10 s.
        /// Against: idle-connections.
        idle_timeout: Duration = Duration::from_secs(60),
    }
}

limits! {
    /// The limits of an HTTP/1.1 connection.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Limits {
        /// How many requests a client may have sent without a complete response; more than 64 count as 64. Default: 64. Unit:
        /// requests. Reason: their kinds are kept in place, without memory on the heap. Against: none.
        pipelined_count: u8 [to 64] = 64,

        /// How many requests a connection serves before it closes. Default: 4294967295, which is off. Unit: requests. Reason: long
        /// benchmarks keep one connection; the number of an exchange has 32 bits. Against: none.
        requests_count: u32 = u32::MAX,
    }
    with {
        /// The heads of messages, and what comes before them.
        heads: Heads = Heads::DEFAULT,
        /// The bodies of messages.
        bodies: Bodies = Bodies::DEFAULT,
        /// Times that a connection, and what is on it, may take.
        times: Times = Times::DEFAULT,
    }
}

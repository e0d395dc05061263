//! The limits of a server, layer by layer.

use std::time::Duration;

use bolide_limits::limits;

/// The longest request body that is handed over together with its head, when it has arrived with it, and counts
/// as used from then on. Default: 16 KiB. Unit: bytes. Reason: a frame of HTTP/2, and most calls and forms; what
/// handlers hold of a connection beyond its windows stays below what its heads may take. Against: large-body.
pub const WHOLE_BODY_BYTES: usize = 16 * 1024;

/// Number of events of one connection in one call before the others have their turn: requests, pieces of bodies and messages of
/// WebSockets. Default: 1024. Unit: events. Reason: some hundred microseconds of work; a megabyte has more than a hundred thousand
/// chunks of one byte. Against: one-byte-chunks.
pub const PASS_EVENTS_COUNT: u32 = 1024;

/// How often the watchdog looks at the workers. Default: 250 ms. Unit: time. Reason: a stuck worker is
/// reported within half a second after it may be. Against: stuck-handler.
pub const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// How many events a worker reports about its clients; the rest are counted, and their number stands in the
/// next. Default: 10. Unit: events per second. Reason: an attack must not become a flood of events. Against:
/// event-flood.
pub const EVENTS_PER_SECOND: u32 = 10;

/// The longest PROXY header of version 2. Default: 4 KiB. Unit: bytes. Reason: addresses take at most 232 bytes, and what
/// balancers add, such as the subject of a client's certificate, fits. Against: endless-proxy-header.
pub const PROXY_HEADER_BYTES: usize = 4096;

/// How long a PROXY header may take to arrive. Default: 5 s. Unit: time. Reason: its sender is a balancer nearby that sends it
/// with the connection's first packet; HAProxy advises 3 s or more. Against: endless-proxy-header.
pub const PROXY_HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// How many addresses of `X-Forwarded-For` or `Forwarded` are looked at to find a client's, from the right.
/// Default: 32. Unit: addresses. Reason: more trusted proxies in a row than anyone has; a long field costs no more.
/// Against: long-forwarded-for.
pub const FORWARDED_HOPS_COUNT: usize = 32;

/// The longest `X-Request-Id` that is passed on from a trusted peer; a longer one is replaced. Default: 128
/// bytes. Unit: bytes. Reason: identifiers are UUIDs or 32 digits; each is logged. Against: log-flood.
pub const REQUEST_ID_BYTES: usize = 128;

/// The largest content that is encoded on the event loop at a time by a slow coding; more is encoded by other threads.
/// Default: 8 KiB. Unit: bytes. Reason: 0.3 ms of the slowest coding; handing over costs 20 µs. Against: compression-flood.
pub const ENCODED_INLINE_BYTES: usize = 8 * 1024;

/// The largest piece that an encoded body is asked for at a time. Default: 32 KiB. Unit: bytes. Reason: each response that
/// is encoded holds one of them while it waits for a thread. Against: compression-flood.
pub const ENCODED_PIECE_BYTES: usize = 32 * 1024;

limits! {
    /// Limits of a WebSocket connection besides those of its messages.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct PeerLimits named "WEBSOCKET_" {
        /// How long a WebSocket peer may be silent before it is pinged, and then again before it is given up; 0 turns both off.
        /// Default: 30 s. Unit: time. Reason: NAT gateways forget a silent connection after a minute or more. Against:
        /// silent-websocket.
        ping_interval: Duration [from 0] = Duration::from_secs(30),

        /// How long a WebSocket peer may take to reply to a close frame. Default: 5 s. Unit: time. Reason: a few round trips of the
        /// slowest path. Against: unanswered-close.
        close_timeout: Duration = Duration::from_secs(5),

        /// How long a WebSocket message may take from its first frame to its last; 0 turns the limit off. Default: 5 min. Unit:
        /// time. Reason: a message of 16 MiB takes as long at 56 KB/s. Pings keep an unfinished message from being silent. Against:
        /// unfinished-message.
        message_timeout: Duration [from 0] = Duration::from_secs(300),

        /// How much may wait to be sent on a WebSocket connection before nothing more is received on it. Default: 256 KiB. Unit:
        /// bytes. Reason: an echo to a client that doesn't read must not fill memory. Against: unread-websocket.
        output_bytes: usize = 256 * 1024,
    }
}

limits! {
    /// The limits of a server, layer by layer.
    #[derive(Debug, Clone)]
    pub struct Limits {
        /// The largest request body of a route that says nothing else. Default: 1 MiB. Unit: bytes. Reason: nginx's default; enough
        /// for forms, too little to fill memory with. Against: slow-body, large-body.
        body_bytes_max: u64 [from 0] = 1024 * 1024,

        /// How long the response to a request may take to begin, from the last byte of the request that has arrived; beyond it the
        /// response is 503. A handler that has taken what has come of a body, and waits for its rest, is not late: its client is. 0
        /// turns it off. Default: 60 s. Unit: time. Reason: a handler that never responds must not hold its exchange for ever; nginx
        /// waits as long for a backend. Against: silent-handler.
        response_timeout: Duration [from 0] = Duration::from_secs(60),

        /// How long an exchange may take in all, from its head to its last byte; beyond it the response is 503, or breaks off.
        /// Default: 0 s, which is off. Unit: time. Reason: a download, an event stream or a tunnel may last; who serves none of
        /// these sets it. Against: endless-exchange.
        exchange_timeout: Duration [from 0] = Duration::ZERO,

        /// How many connections a client may have, by its address (64 bits of IPv6), with all workers together; more are closed at
        /// once. 0 turns it off. `trusted` peers and Unix sockets are not counted, the clients that PROXY headers name are.
        /// Default: 0. Unit: connections. Reason: a company's or a carrier's users share one address; a public server with browsers
        /// as clients may set 100. Against: connection-flood.
        client_connections_count: u32 [from 0] = 0,

        /// Growth of the HTTP/2 receive windows of one worker's connections together, at most, beyond
        /// `connection-window-bytes` of each. Default: 256 MiB. Unit: bytes. Reason: eight uploads as fast as a long path allows; a crowd of
        /// uploads whose handlers stall holds no more. Against: stalled-uploads.
        windows_bytes: u64 [from 0] = 256 * 1024 * 1024,

        /// A turn of a worker's loop that takes longer is reported. Default: 1 s. Unit: time. Reason: no connection of the worker
        /// is served meanwhile. Against: stuck-handler.
        long_turn: Duration = Duration::from_secs(1),
    }
    with {
        /// The limits of the protocols.
        connection: bolide_connection::Limits = bolide_connection::Limits::default(),
        /// The limits of the event loops, as they were when the server started. The number of connections is for all workers
        /// together.
        event_loop: bolide_eventloop::Limits = bolide_eventloop::Limits::default(),
    }
}

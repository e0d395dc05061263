//! The limits of a [`Client`](crate::Client).

use std::time::Duration;

use bolide_limits::limits;

/// Number of events that one connection may bring in one turn before the others have theirs: heads and pieces of responses. Default: 1024. Unit: events.
/// Reason: some hundred microseconds of work; a megabyte has more than a hundred thousand chunks of one byte. Against:
/// one-byte-chunks-of-a-server.
pub const PASS_EVENTS_COUNT: u32 = 1024;

/// For how long the addresses of a name are used before it is looked up again. Default: 30 s. Unit: time.
/// Reason: as long as short-lived records live. Against: none.
pub const ADDRESSES_TIME: Duration = Duration::from_secs(30);

/// Of how many names the addresses are kept. Default: 1024. Unit: names. Reason: some 100 KiB. Against: none.
pub const NAMES_COUNT: usize = 1024;

/// Size that the receive window of one response may grow to over HTTP/2: the most that is held of a response that is not read. Default: 4 MiB. Unit: bytes. Reason: 1 Gbit/s over 32 ms. Against: none.
pub const RESPONSE_WINDOW_BYTES: u32 = 4 << 20;

/// The receive window of one connection, over HTTP/2. Default: 1 GiB. Unit: bytes. Reason: more than those of
/// all responses together, for a caller who holds some without reading them must still get the others. Against:
/// none.
pub const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;

/// How long a line or an event's data may be in a stream of events. Default: 1 MiB. Unit: bytes. Reason: all
/// of it is held until the event is complete. Against: endless-event.
pub const EVENT_BYTES: usize = 1024 * 1024;

/// How long the kind and the identifier of an event may be. Default: 4 KiB. Unit: bytes. Reason: an identifier
/// goes back as a field of a request, which servers take up to 8 KiB. Against: endless-event-id.
pub const EVENT_NAME_BYTES: usize = 4096;

/// How long a reader of events waits before it asks again, until the server says otherwise. Default: 3 s.
/// Unit: time. Reason: browsers wait as long. Against: none.
pub const RECONNECT_DELAY: Duration = Duration::from_secs(3);

/// How long it waits at least, when it is the server that says how long. Default: 100 ms. Unit: time. Reason:
/// a server that says 0 and closes must not be asked without a pause. Against: endless-retry.
pub const RECONNECT_DELAY_MIN: Duration = Duration::from_millis(100);

/// How long it waits at most, however often it failed and whatever the server says. Default: 60 s. Unit:
/// time. Reason: a server that came back is found within a minute. Against: endless-retry.
pub const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(60);

/// How often in a row a reader of events may fail before it gives up. Default: 10. Unit: times. Reason: some
/// six minutes with growing delays. Against: none.
pub const RECONNECTS_COUNT: u32 = 10;

/// How many redirections in a row lead to a stream of events, unless the client follows another number.
/// Default: 20. Unit: times. Reason: browsers follow as many. Against: none.
pub const EVENT_REDIRECTS_COUNT: u32 = 20;

limits! {
    /// The limits of a client.
    #[derive(Debug, Clone)]
    pub struct ClientLimits {
        /// How many connections a client makes to one server. Default: 32. Unit: connections. Reason: five times what a browser
        /// makes; a server with a thread for each still serves others. Against: none.
        connections_count: usize = 32,

        /// How many requests of a client wait for a connection to one server; more fail at once. Default: 1024. Unit: requests.
        /// Reason: each is a thread of the caller that waits. Against: slow-server.
        waiting_count: usize = 1024,

        /// How long a server's name may take to be looked up. Default: 5 s. Unit: time. Reason: the system's resolver asks a second
        /// server after as long. Against: slow-server.
        resolve_timeout: Duration = Duration::from_secs(5),

        /// How long one connection may take, with TLS. Default: 10 s. Unit: time. Reason: three retransmissions of a lost segment
        /// fit. Against: slow-server.
        connect_timeout: Duration = Duration::from_secs(10),

        /// How long a request waits for a connection, until one was made or becomes free. Default: 30 s. Unit: time. Reason: three
        /// addresses of a server can be tried. Against: slow-server.
        wait_timeout: Duration = Duration::from_secs(30),

        /// How long a response may take from the end of the request to its head. Default: 60 s. Unit: time. Reason: twice as long
        /// as proxies wait, which respond for servers that don't. Against: slow-server.
        response_timeout: Duration = Duration::from_secs(60),

        /// How long a server may pause in a body, either way; not in a stream of events. Default: 60 s. Unit: time. Reason: nginx
        /// waits as long. Against: slow-server.
        pause_timeout: Duration = Duration::from_secs(60),

        /// How long a connection stays without a request. Default: 15 s. Unit: time. Reason: many servers close after 15 s to 75 s.
        /// Against: none.
        idle_timeout: Duration = Duration::from_secs(15),

        /// How much of a request's body may wait to be sent. Default: 256 KiB. Unit: bytes. Reason: what two wakes of a thread
        /// apart keep a fast path busy with. Against: slow-server.
        upload_bytes: usize = 256 * 1024,

        /// How often a request is sent again that has certainly not been acted on, or is idempotent and met a connection at its
        /// end. Default: 1. Unit: times. Reason: the second goes over a new connection. Against: none.
        retries_count: u32 = 1,

        /// How much of a response is collected by calls that return all of it, unless they say otherwise. Default: 16 MiB. Unit:
        /// bytes. Reason: a document, not a film. Against: endless-response.
        collected_bytes: usize = 16 * 1024 * 1024,
    }
}

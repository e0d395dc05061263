//! The limits of a reverse proxy.

use std::time::Duration;

use bolide_limits::limits;

/// How many interim responses of one exchange wait for the client's side, which looks once a turn; more are dropped.
/// Default: 4. Unit: responses. Reason: a server sends one or two, and few bytes of HTTP/2 stand for a large head.
/// Against: interim-flood.
pub const INTERIM_WAITING_COUNT: usize = 4;

limits! {
    /// Times that an upstream may take.
    #[derive(Debug, Clone)]
    pub struct Times {
        /// How long a request waits for a connection; beyond it the response is 503. Default: 10 s. Unit: time. Reason: clients
        /// that waited longer have mostly gone. Against: waiting-flood.
        wait_timeout: Duration = Duration::from_secs(10),

        /// How long a connection to an upstream may take, with TLS; beyond it the response is 504. Default: 10 s. Unit: time.
        /// Reason: three retransmissions of a lost segment fit. Against: silent-upstream.
        connect_timeout: Duration = Duration::from_secs(10),

        /// How long an upstream may take from the end of a request to the head of its response; beyond it the response is 504.
        /// Default: 30 s. Unit: time. Reason: h2o waits as long; shorter than the server's own patience. Against: silent-upstream.
        first_byte_timeout: Duration = Duration::from_secs(30),

        /// How long an upstream may pause in a body, either way; beyond it the response breaks off. Default: 60 s. Unit: time.
        /// Reason: nginx waits as long; event streams send a comment more often. Against: stalled-upstream.
        pause_timeout: Duration = Duration::from_secs(60),

        /// How long a tunnel may carry nothing. Default: 300 s. Unit: time. Reason: WebSocket applications send a ping more often.
        /// Against: idle-tunnel.
        tunnel_timeout: Duration = Duration::from_secs(300),

        /// How long a connection to an upstream may stay without a request. Default: 4 s. Unit: time. Reason: shorter than the 5 s
        /// after which Node closes, so that few requests meet a connection that ends. Against: none.
        idle_timeout: Duration = Duration::from_secs(4),

        /// How often the names of upstreams are looked up again; zero: never. Default: 30 s. Unit: time. Reason: as long as
        /// short-lived records live. Against: none.
        resolve_period: Duration [from 0] = Duration::from_secs(30),
    }
}

limits! {
    /// When a server of an upstream is passed over.
    #[derive(Debug, Clone)]
    pub struct Choice {
        /// After how many failures in a row an upstream is ejected. Default: 3. Unit: failures. Reason: one lost connection says
        /// nothing. Against: none.
        failures_count: u32 = 3,

        /// For how long an upstream is ejected at first; twice as long each time. Default: 1 s. Unit: time. Reason: as long as a
        /// process takes to restart. Against: none.
        ejection_time: Duration = Duration::from_secs(1),

        /// For how long an upstream is ejected at most. Default: 60 s. Unit: time. Reason: it is found again within a minute.
        /// Against: none.
        ejection_time_max: Duration = Duration::from_secs(60),

        /// How much more than its share of the open requests an upstream may have where a hash chooses among them; beyond it, the
        /// next in the order of the request's hash gets it. More than 100. Default: 125. Unit: per cent. Reason: with less, more
        /// requests leave the upstream that knows them; with more, one that many requests choose gets too many. Against:
        /// chosen-hash.
        hash_load_percent: u32 [from 101 to 10_000] = 125,

        /// For how long an upstream that is back, after an ejection or failed health checks, gets less than its share; zero: it
        /// gets all of it at once. Default: 0 s. Unit: time. Reason: most servers are as fast as ever when they are back; those
        /// that fill a cache first need some seconds. Against: none.
        slow_start: Duration [from 0] = Duration::ZERO,
    }
}

limits! {
    /// The limits of a reverse proxy. Each is counted for each worker and upstream.
    #[derive(Debug, Clone)]
    pub struct ProxyLimits {
        /// How many connections a worker makes to one upstream; those that have become tunnels don't count. Default: 1024. Unit:
        /// connections. Reason: each stream of events holds one; those of 16 workers find ports. Against: none.
        connections_count: usize = 1024,

        /// How many requests of a worker wait for a connection to one upstream; beyond it the response is 503. Default: 16384.
        /// Unit: requests. Reason: as many as 160 clients have with 100 streams each; each holds its head in memory. Against:
        /// waiting-flood.
        waiting_count: usize [from 0] = 16_384,

        /// How many requests of a worker may be open at one upstream, those that wait among them; beyond it another upstream is
        /// asked, or the response is 503. Default: 32768. Unit: requests. Reason: twice what may wait. Against: outstanding-flood.
        outstanding_count: u32 = 32_768,

        /// How often a request is repeated, where that is safe. Default: 2. Unit: times. Reason: as many upstreams may just be
        /// restarting. Against: retry-storm.
        retries_count: u8 [from 0] = 2,

        /// How many requests in a hundred may be repeated that an upstream has got, beyond the first ten; a hundred repetitions at
        /// most are saved up. Default: 20. Unit: per cent. Reason: a server in trouble must not get many times its load; Envoy
        /// allows as many. Against: retry-storm.
        retry_budget_percent: u32 [from 0] = 20,

        /// Size that the receive window of one response from an upstream over HTTP/2 may grow to: what is held for a client that reads
        /// slowly. Default: 1 MiB. Unit: bytes. Reason: 10 Gbit/s over 0.8 ms, and upstreams are near. Against: slow-download.
        response_window_bytes: u32 [from 65_535 to (1 << 31) - 1] = 1 << 20,

        /// The receive window of a connection to an upstream over HTTP/2. Default: 256 MiB. Unit: bytes. Reason: more than 100
        /// responses have together, for clients that read slowly must not stop the others. Against: slow-download.
        connection_window_bytes: u32 [from 65_535 to (1 << 31) - 1] = 256 << 20,
    }
    with {
        /// Times that an upstream may take.
        times: Times = Times::DEFAULT,
        /// When a server of an upstream is passed over.
        choice: Choice = Choice::DEFAULT,
    }
}

limits! {
    /// Intervals and patience of the health checks of an upstream.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct HealthLimits {
        /// How often each upstream is checked, where checks are turned on. Default: 5 s. Unit: time. Reason: HAProxy checks every 2
        /// s, nginx every 5 s. Against: none.
        health_interval: Duration = Duration::from_secs(5),

        /// How long the response to a check may take. Default: 2 s. Unit: time. Reason: an upstream that takes longer for it has no
        /// time for clients either. Against: silent-upstream.
        health_timeout: Duration = Duration::from_secs(2),

        /// After how many checks in a row that went well an upstream is up again. Default: 2. Unit: checks. Reason: the first may
        /// meet a process that is still starting. Against: none.
        health_rise_count: u32 = 2,

        /// After how many failures in a row an upstream is down. Default: 3. Unit: checks. Reason: one lost response says nothing.
        /// Against: none.
        health_fall_count: u32 = 3,
    }
}

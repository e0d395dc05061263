//! Every limit of an HTTP/3 connection. The windows and the number of streams are the transport's.

use std::time::Duration;

use bolide_limits::limits;
use bolide_semantics::HeadLimits;

/// Payload of a frame on the control stream. Default: 1024. Unit: bytes. Reason: fewer than ten settings are defined.
/// Against: settings-flood.
pub const CONTROL_FRAME_BYTES: u32 = 1024;

/// Unidirectional streams of the peer's that are open at once. Default: 16. Unit: streams. Reason: three are needed, and
/// those of unknown types are refused at once. Against: reserved-stream-flood.
pub const UNIDIRECTIONAL_STREAMS_COUNT: usize = 16;

/// Bytes for a unidirectional stream of ours that wait for the peer to read. Default: 16384. Unit: bytes. Reason: a
/// whole table of insertions, or thousands of acknowledgements. Against: control-stream-stalled.
pub const CONTROL_OUTPUT_BYTES: usize = 16 * 1024;

/// The largest DATA frame that counts as small. Default: 16. Unit: bytes. Reason: below this the
/// frame's header is most of what travels. Against: one-byte-data.
pub const SMALL_DATA_BYTES: u64 = 16;

/// PRIORITY_UPDATE frames remembered for requests that have not come yet. Default: 16. Unit: streams.
/// Reason: a hint, not a promise. Against: priority-update-flood.
pub const EARLY_PRIORITIES_COUNT: usize = 16;

/// How long a body's rate is measured. Default: 10 s. Unit: time. Reason: evens out bursts. Against: slow-body.
pub const BODY_RATE_TIME: Duration = Duration::from_secs(10);

/// Between the two GOAWAY frames of a shutdown. Default: 1 s. Unit: time. Reason: longer than a round trip. Against: none.
pub const DRAIN_NOTICE: Duration = Duration::from_secs(1);

/// How often open streams are looked through for those that are too slow. Default: 5 s. Unit: time.
/// Reason: the precision that the limits in seconds need. Against: none.
pub const SCAN_INTERVAL: Duration = Duration::from_secs(5);

/// After how long without exchanges a connection gives its memory back. Default: 200 ms. Unit: time. Reason: busy
/// connections never pay for it, and what one of many gives back serves the next. Against: none.
pub const TRIM_AFTER: Duration = Duration::from_millis(200);

/// Amount that a server may send on one stream before the client reads it. Default: 262144. Unit: bytes. Reason: 100 Mbit/s over
/// 20 ms; an upstream is near, and clients that read everything at once may allow more. Against: window-ignored.
pub const RESPONSE_WINDOW_BYTES: u32 = 256 * 1024;

/// Datagrams of open tunnels that wait for their reader; the oldest is dropped. Default: 64. Unit: datagrams. Reason: they
/// may be lost anywhere; 0 announces that none are taken. Against: datagram-flood.
pub const DATAGRAMS_COUNT: usize = 64;

limits! {
    /// The heads of messages, encoded and decoded.
    #[derive(Debug, Clone)]
    pub struct Heads {
        /// Decoded size of a head: names, values and 32 for each field. Default: 32768. Unit: bytes. Reason: between the 16 KiB and
        /// 60 KiB that others take. Against: qpack-bomb.
        header_list_bytes: u32 = 32 * 1024,

        /// How many times the header list's size a head gets 431 before the connection ends. Default: 4. Unit: times. Reason: an
        /// honest client that is too verbose learns why. Against: qpack-bomb.
        header_list_excess_count: u32 = 4,

        /// Field lines of a head, cookie crumbs counted singly. Default: 100. Unit: lines. Reason: what Apache, Envoy and hyper
        /// allow. Against: cookie-crumbs.
        header_fields_count: u32 = 100,

        /// Encoded size of one field section. Default: 131072. Unit: bytes. Reason: a list at the point where the connection ends,
        /// without any compression. Against: large-section.
        section_bytes: u32 = 128 * 1024,

        /// How many interim responses may come before a final one. Default: 32. Unit: responses. Reason: 100, 102 and 103 come once
        /// or a few times; as over HTTP/1.1. Against: interim-flood.
        interim_count: u8 [from 0] = 32,
    }
}

limits! {
    /// Budgets for what does no harm now and then, and much all the time.
    #[derive(Debug, Clone)]
    pub struct Budgets {
        /// Resets by the client before our response was complete, at once. Default: 100. Unit: resets. Reason: as many as it may
        /// have streams. Against: rapid-reset.
        client_resets_burst_count: u32 = 100,

        /// Resets by the client before our response was complete, refill. Default: 33. Unit: resets per second. Reason: people who
        /// leave pages early stay far below. Against: rapid-reset.
        client_resets_refill_count: u32 [from 0] = 33,

        /// Resets by the client before our response was complete, for the life of a connection. Default: 10000. Unit: resets.
        /// Reason: bounds a patient abuser. Against: rapid-reset.
        client_resets_life_count: u32 = 10_000,

        /// Resets that the peer made us send, at once. `None`: no limit. Default: 100. Unit: resets. Reason: as many as it may have
        /// streams. Against: made-you-reset.
        own_resets_burst_count: Option<u32> = Some(100),

        /// Resets that the peer made us send, refill. Default: 10. Unit: resets per second. Reason: each is a violation of the
        /// protocol. Against: made-you-reset.
        own_resets_refill_count: u32 [from 0] = 10,

        /// Frames and streams that do nothing useful, at once. `None`: no limit. Default: 10000. Unit: frames. Reason: clumsy peers
        /// send thousands, floods send millions. Against: unknown-frame-flood.
        glitches_burst_count: Option<u32> = Some(10_000),

        /// Frames and streams that do nothing useful, refill. Default: 330. Unit: frames per second. Reason: their cost is then
        /// below a thousandth of a core. Against: unknown-frame-flood.
        glitches_refill_count: u32 [from 0] = 330,

        /// Small DATA frames, at once. `None`: no limit. Default: 10000. Unit: frames. Reason: an interactive stream never sends so
        /// many together. Against: one-byte-data.
        small_data_burst_count: Option<u32> = Some(10_000),

        /// Small DATA frames, refill. Default: 5000. Unit: frames per second. Reason: messages of a few bytes are honest at this
        /// rate. Against: one-byte-data.
        small_data_refill_count: u32 [from 0] = 5000,
    }
}

limits! {
    /// Times that a connection, and what is on it, may take.
    #[derive(Debug, Clone)]
    pub struct Times {
        /// How long a stream may wait for the peer to take what we send, unless the peer takes `BODY_RATE_BYTES` of it meanwhile, or of
        /// all streams where it waits for those.
        /// Default: 30 s. Unit: time. Reason: a waiting response holds memory. Against: slow-reader.
        stalled_stream: Duration = Duration::from_secs(30),

        /// How long the peer's SETTINGS, or a head from the first byte of its stream, may take to be complete, the time included in
        /// which it waits for the encoder's instructions. Default: 10 s. Unit: time. Reason: in all, not for each byte. Against:
        /// slow-head, blocked-stream-hold.
        head_time: Duration = Duration::from_secs(10),

        /// How long a request's body may pause while we want more of it, unless all bodies of its connection together bring
        /// `BODY_RATE_BYTES` for each. Default: 30 s. Unit: time. Reason: a waiting handler holds memory; a client may send one body
        /// after the other. Against: slow-body.
        body_pause: Duration = Duration::from_secs(30),

        /// The same for the request of a gRPC call, whose messages may be far between. Default: 10 min. Unit: time. Reason: any
        /// client may say that its request is one, so its handler waits for long, not for ever. Against: slow-body.
        call_pause: Duration = Duration::from_secs(600),

        /// The slowest body, in either direction, measured over ten seconds when receiving, of one or of all of a connection on
        /// average. Default: 500. Unit: bytes per second. Reason: slower than any modem. Against: slow-body.
        body_rate_bytes: u32 [from 0] = 500,

        /// How long a connection without exchanges stays open. Default: 60 s. Unit: time. Reason: a page's next click. Against:
        /// none.
        idle_time: Duration = Duration::from_secs(60),
    }
}

limits! {
    /// The limits of one connection that can be configured.
    #[derive(Debug, Clone)]
    pub struct Limits {
        /// Requests that may be open at once, whatever the transport allows. Default: 100. Unit: streams. Reason: as over HTTP/2.
        /// Against: rapid-reset.
        concurrent_streams_count: u32 [to 100] = 100,

        /// Bytes of a body that were reported and are not consumed, beyond which its stream is not read. Default: 65536. Unit:
        /// bytes. Reason: the transport's own windows hold what comes then. Against: window-ignored.
        stream_unconsumed_bytes: u32 = 65_536,

        /// Entries of a SETTINGS frame. Default: 32. Unit: entries. Reason: fewer than ten are defined. Against: settings-flood.
        settings_entries_count: u32 = 32,
    }
    with {
        /// [`DATAGRAMS_COUNT`].
        datagrams_count: usize = DATAGRAMS_COUNT,
        /// [`RESPONSE_WINDOW_BYTES`].
        response_window_bytes: u32 = RESPONSE_WINDOW_BYTES,
        /// The heads of messages, encoded and decoded.
        heads: Heads = Heads::DEFAULT,
        /// Budgets for what does no harm now and then, and much all the time.
        budgets: Budgets = Budgets::DEFAULT,
        /// Times that a connection, and what is on it, may take.
        times: Times = Times::DEFAULT,
    }
}

impl Limits {
    /// Those of a received head.
    #[inline]
    pub(crate) fn of_heads(&self) -> HeadLimits {
        HeadLimits {
            list_bytes: self.heads.header_list_bytes,
            list_excess_count: self.heads.header_list_excess_count,
            fields_count: self.heads.header_fields_count,
        }
    }
}

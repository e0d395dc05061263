//! Every limit of an HTTP/2 connection.

use std::time::Duration;

use bolide_limits::limits;
use bolide_semantics::HeadLimits;

/// How many frames a request's body is looked for behind its head, and how many bodies may have been taken ahead
/// of their turn. Default: 128. Unit: frames. Reason: heads of as many streams as may be open, before their
/// bodies; looking further costs more than it saves. Against: bodies-far-behind.
pub const FRAMES_AHEAD_COUNT: usize = 128;

/// Window that a server's connection begins with, if `connection_window_bytes` is not less. Default: 131072. Unit: bytes. Reason:
/// while a client doesn't read, what it would send waits in its memory. Against: stalled-uploads.
pub const FIRST_WINDOW_BYTES: u32 = 128 * 1024;

/// The largest DATA frame that counts as small. Default: 16. Unit: bytes. Reason: below this the
/// frame's header is most of what travels. Against: one-byte-data.
pub const SMALL_DATA_BYTES: u32 = 16;

/// PRIORITY_UPDATE frames remembered for streams that are not open yet. Default: 16. Unit: streams.
/// Reason: a hint, not a promise. Against: priority-update.
pub const EARLY_PRIORITIES_COUNT: usize = 16;

/// Streams that we reset whose numbers are remembered, as ranges. Default: 32. Unit: ranges. Reason:
/// frames that cross our reset are not the peer's fault. Against: none.
pub const RESET_RANGES_COUNT: usize = 32;

/// How long a body's rate is measured. Default: 10 s. Unit: time. Reason: evens out bursts. Against:
/// slow-body.
pub const BODY_RATE_TIME: Duration = Duration::from_secs(10);

/// Between the two GOAWAY frames of a shutdown, when the peer does not reply to the PING between them.
/// Default: 1 s. Unit: time. Reason: longer than a round trip. Against: none.
pub const DRAIN_NOTICE: Duration = Duration::from_secs(1);

/// How often open streams are looked through for those that are too slow. Default: 5 s. Unit: time.
/// Reason: the precision that the limits in seconds need. Against: none.
pub const SCAN_INTERVAL: Duration = Duration::from_secs(5);

/// After how long without exchanges a connection gives its memory back. Default: 200 ms. Unit: time.
/// Reason: busy connections never pay for it, and what one of many gives back serves the next. Against: none.
pub const TRIM_AFTER: Duration = Duration::from_millis(200);

limits! {
    /// The bytes that a peer may send ahead.
    #[derive(Debug, Clone)]
    pub struct Windows {
        /// The window of a stream at its start. Default: 65536. Unit: bytes. Reason: a body of 64 KiB fits without a pause, which
        /// the protocol's default of 65535 does not allow. Against: window-ignored.
        stream_window_bytes: u32 [to (1 << 31) - 1] = 65_536,

        /// The window of a connection. A server's begins with `FIRST_WINDOW_BYTES` and grows to this when bodies need it. Never below 65535, which
        /// the protocol starts with. Default: 1048576. Unit: bytes. Reason: sixteen bodies of 64 KiB may wait for their handlers
        /// without holding up others. Against: window-ignored.
        connection_window_bytes: u32 [to (1 << 31) - 1] = 1 << 20,

        /// Size that the window of a stream may grow to. Equal to `stream_window_bytes`, windows of streams stay as they are. Default:
        /// 16777216. Unit: bytes. Reason: 10 Gbit/s over 13 ms; beyond that the connection's memory decides. Against: none.
        stream_window_bytes_max: u32 [to (1 << 31) - 1] = 16 << 20,

        /// Size that the window of a connection may grow to, and so the body bytes it can make us hold. Equal to
        /// `connection_window_bytes`, the window stays as it is. Default: 33554432. Unit: bytes. Reason: twice a stream. Against:
        /// none.
        connection_window_bytes_max: u32 [to (1 << 31) - 1] = 32 << 20,
    }
}

limits! {
    /// The sizes of frames, and how many of those that control something are taken.
    #[derive(Debug, Clone)]
    pub struct Frames {
        /// Payload of one frame that we accept. Default: 16384. Unit: bytes. Reason: the protocol's own default; larger frames buy
        /// nothing on the receiving side. Against: none.
        frame_bytes: u32 [from 16384 to 16_777_215] = 16_384,

        /// Payload of one DATA frame that we send, when the peer allows more than its default. Default: 1048576. Unit: bytes.
        /// Reason: beyond this a larger frame only delays other streams. Against: none.
        data_frame_bytes: u32 [from 1024 to 16_777_215] = 1 << 20,

        /// Entries of one SETTINGS frame. Default: 32. Unit: entries. Reason: fewer than ten are defined. Against: settings-flood.
        settings_entries_count: u32 = 32,

        /// SETTINGS frames at once, and refill in one second. Default: 50. Unit: frames. Reason: an honest peer sends one or two in
        /// its life. Against: settings-flood.
        settings_frames_count: u32 = 50,

        /// Control frames of ours that wait for the peer to read. Default: 1000. Unit: frames. Reason: each replies to a frame of a
        /// peer that writes and never reads. Against: ping-flood.
        control_frames_count: u32 = 1000,
    }
}

limits! {
    /// The heads of messages, encoded and decoded.
    #[derive(Debug, Clone)]
    pub struct Heads {
        /// Decoded size of a head: names, values and 32 for each field. Default: 32768. Unit: bytes. Reason: between the 16 KiB and
        /// 60 KiB that others take. Against: hpack-bomb.
        header_list_bytes: u32 = 32 * 1024,

        /// How many times the header list's size a head gets 431 before the connection ends. Default: 4. Unit: times. Reason: an
        /// honest client that is too verbose learns why. Against: hpack-bomb.
        header_list_excess_count: u32 = 4,

        /// Field lines of a head, cookie crumbs counted singly. Default: 100. Unit: lines. Reason: what Apache, Envoy and hyper
        /// allow. Against: cookie-crumbs.
        header_fields_count: u32 = 100,

        /// CONTINUATION frames of one header block. Default: 8. Unit: frames. Reason: a block within the list's limit needs two.
        /// Against: continuation-flood.
        continuation_frames_count: u32 [from 0] = 8,

        /// Encoded size of one header block. Default: 131072. Unit: bytes. Reason: a list at the point where the connection ends,
        /// without any compression. Against: continuation-flood.
        header_block_bytes: u32 = 128 * 1024,

        /// How many interim responses may come before a final one. Default: 32. Unit: responses. Reason: 100, 102 and 103 come once
        /// or a few times; as over HTTP/1.1. Against: interim-flood.
        interim_count: u8 [from 0] = 32,

        /// The decoder's dynamic table. Default: 4096. Unit: bytes. Reason: the protocol's default; more memory for each connection
        /// buys little. Against: hpack-bomb.
        header_table_bytes: u32 [from 0 to 65_535] = 4096,
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
        /// streams. Against: myr.
        own_resets_burst_count: Option<u32> = Some(100),

        /// Resets that the peer made us send, refill. Default: 10. Unit: resets per second. Reason: each is a violation of the
        /// protocol. Against: myr.
        own_resets_refill_count: u32 [from 0] = 10,

        /// Resets that the peer made us send, for the life of a connection. `None`: no limit. Default: 1024. Unit: resets. Reason:
        /// bounds a patient abuser. Against: myr.
        own_resets_life_count: Option<u32> = Some(1024),

        /// Frames that do nothing useful, at once. `None`: no limit. Default: 10000. Unit: frames. Reason: clumsy peers send
        /// thousands, floods send millions. Against: ping-flood.
        glitches_burst_count: Option<u32> = Some(10_000),

        /// Frames that do nothing useful, refill. Default: 330. Unit: frames per second. Reason: their cost is then below a
        /// thousandth of a core. Against: ping-flood.
        glitches_refill_count: u32 [from 0] = 330,

        /// Small DATA frames, at once. `None`: no limit. Default: 10000. Unit: frames. Reason: an interactive stream never sends so
        /// many together. Against: one-byte-data.
        small_data_burst_count: Option<u32> = Some(10_000),

        /// Small DATA frames, refill. Default: 5000. Unit: frames per second. Reason: messages of a few bytes are honest at this
        /// rate. Against: one-byte-data.
        small_data_refill_count: u32 [from 0] = 5000,

        /// Small DATA frames in tunnels that arrive while earlier bytes of their tunnel wait to be read, at once. Default: 100000.
        /// Unit: frames. Reason: more than a tunnel's first window has bytes; who reads what comes is never counted. Against:
        /// one-byte-data.
        tunnel_data_burst_count: u32 = 100_000,

        /// Small DATA frames in tunnels that arrive while earlier bytes of their tunnel wait to be read, refill. Default: 100000.
        /// Unit: frames per second. Reason: their cost is then some hundredths of a core. Against: one-byte-data.
        tunnel_data_refill_count: u32 [from 0] = 100_000,
    }
}

limits! {
    /// Times that a connection, and what is on it, may take.
    #[derive(Debug, Clone)]
    pub struct Times {
        /// How long in all a stream may wait for the peer to open its window, unless the peer takes `BODY_RATE_BYTES` of it
        /// meanwhile. Default: 30 s. Unit: time. Reason: a waiting response holds memory. Against: h2-bomb.
        stalled_stream: Duration = Duration::from_secs(30),

        /// How long in all the connection's window may keep every stream waiting, unless the peer takes `BODY_RATE_BYTES`
        /// meanwhile. Default: 60 s. Unit: time. Reason: a waiting response holds memory. Against: zero-window.
        stalled_connection: Duration = Duration::from_secs(60),

        /// How long the preface with the first SETTINGS, a frame, or a header block may take to be complete. Default: 10 s. Unit:
        /// time. Reason: in all, not for each byte. Against: slow-head.
        head_time: Duration = Duration::from_secs(10),

        /// How long a request's body may pause while we want more of it, unless all bodies of its connection together bring
        /// `BODY_RATE_BYTES` for each. Default: 30 s. Unit: time. Reason: a waiting handler holds memory; a client may send one body
        /// after the other. Against: slow-body.
        body_pause: Duration = Duration::from_secs(30),

        /// The same for the request of a gRPC call, whose messages may be far between; its rate is not measured. Default: 10 min.
        /// Unit: time. Reason: any client may say that its request is one, so its handler waits for long, not for ever. Against:
        /// slow-body.
        call_pause: Duration = Duration::from_secs(600),

        /// The slowest body, in either direction, measured over ten seconds when receiving, of one or of all of a connection on
        /// average. Default: 500. Unit: bytes per second. Reason: slower than any modem. Against: slow-body.
        body_rate_bytes: u32 [from 0] = 500,

        /// How long a connection without exchanges stays open. Default: 60 s. Unit: time. Reason: a page's next click. Against:
        /// none.
        idle_time: Duration = Duration::from_secs(60),

        /// How long the socket may take nothing, or less than `BODY_RATE_BYTES`, while we have something to send. Default: 30 s.
        /// Unit: time. Reason: the peer is gone or does not read. Against: tcp-window-closed.
        write_pause: Duration = Duration::from_secs(30),

        /// How long the peer may take to acknowledge SETTINGS. Default: 30 s. Unit: time. Reason: until then excess streams are
        /// refused for free. Against: settings-ack-withheld.
        acknowledgement_time: Duration = Duration::from_secs(30),

        /// After how long without a frame, while exchanges are open, a PING asks whether the peer is there. Default: 60 s. Unit:
        /// time. Reason: tunnels and long calls may be silent. Against: none.
        ping_after: Duration = Duration::from_secs(60),

        /// How long the peer may take to reply to that PING. Default: 20 s. Unit: time. Reason: longer than any network's queue.
        /// Against: none.
        ping_reply: Duration = Duration::from_secs(20),
    }
}

limits! {
    /// The limits of one connection that can be configured.
    #[derive(Debug, Clone)]
    pub struct Limits {
        /// Streams that a client may have open at once. Default: 100. Unit: streams. Reason: what edge servers announce; enough to
        /// fill any link. Against: rapid-reset.
        concurrent_streams_count: u32 = 100,
    }
    with {
        /// True if a connection's receive window begins with `FIRST_WINDOW_BYTES` and grows beyond `connection_window_bytes` only as far as
        /// [`set_receive_budget`](crate::Connection::set_receive_budget) allows, for its owner shares memory among connections.
        /// Default: `false`.
        connection_window_is_granted: bool = false,
        /// The bytes that a peer may send ahead.
        windows: Windows = Windows::DEFAULT,
        /// The sizes of frames, and how many of those that control something are taken.
        frames: Frames = Frames::DEFAULT,
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

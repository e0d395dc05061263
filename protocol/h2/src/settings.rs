//! RFC 9113 §6.5: what both ends announced, and what has been acknowledged.

use bolide_semantics::Role;

use crate::error::Fault;
use crate::frame::settings::{ENTRY_BYTES, id};
use crate::frame::window_update::WINDOW_BYTES_MAX;
use crate::limits::Limits;

/// The initial window of a stream before any SETTINGS (RFC 9113 §6.9.2), in bytes.
pub(crate) const INITIAL_WINDOW_BYTES: u32 = 65_535;

/// Streams that a client opens before the server has said how many it allows. Unit: streams.
const CONCURRENT_STREAMS_UNSAID: u32 = 100;

/// The largest table that the decoder keeps, in bytes.
const TABLE_BYTES_MAX: u32 = 65_535;

/// Both ends' settings.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Streams that the peer allows us to open.
    pub(crate) peer_concurrent_streams: u32,
    /// The window with which the peer's streams begin, in bytes.
    pub(crate) peer_window_bytes: u32,
    /// The largest frame that the peer takes, in bytes.
    pub(crate) peer_frame_bytes: u32,
    /// True if the peer understands extended CONNECT (RFC 8441).
    pub(crate) peer_connect_protocol: bool,
    /// True if the peer's first SETTINGS have come.
    pub(crate) received: bool,
    /// True if our first SETTINGS have been queued: the connection has begun.
    pub(crate) sent: bool,
    /// SETTINGS of ours that have not been acknowledged.
    unacknowledged: u8,
    /// When the oldest of these was sent.
    pub(crate) sent_ms: u32,
    /// The window with which our streams begin as far as we hold the peer to it, in bytes.
    pub(crate) window_bytes: u32,
    /// The window that we announced last, in bytes.
    window_bytes_announced: u32,
}

/// Changes that a peer's SETTINGS frame causes elsewhere.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Gain of each stream's send window, in bytes.
    pub(crate) window_difference: i64,
    pub(crate) concurrent_streams: bool,
    pub(crate) header_table_bytes: Option<u32>,
}

impl Settings {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            peer_concurrent_streams: CONCURRENT_STREAMS_UNSAID,
            peer_window_bytes: INITIAL_WINDOW_BYTES,
            peer_frame_bytes: crate::limits::Frames::DEFAULT.frame_bytes,
            peer_connect_protocol: false,
            received: false,
            sent: false,
            unacknowledged: 0,
            sent_ms: 0,
            // A smaller window holds once the peer has acknowledged it, a larger one at once.
            window_bytes: limits.windows.stream_window_bytes.max(INITIAL_WINDOW_BYTES),
            window_bytes_announced: limits.windows.stream_window_bytes,
        }
    }

    /// Our first SETTINGS frame.
    pub(crate) fn write_first(&mut self, out: &mut Vec<u8>, role: Role, limits: &Limits) {
        let mut entries = [(0, 0); 8];
        let mut count = 0;
        let mut add = |id, value, default| {
            if value != default {
                entries[count] = (id, value);
                count += 1;
            }
        };
        let header_table = limits.heads.header_table_bytes.min(TABLE_BYTES_MAX);
        add(id::HEADER_TABLE_SIZE, header_table, 4096);
        match role {
            Role::Client => add(id::ENABLE_PUSH, 0, 1),
            Role::Server => {
                add(id::MAX_CONCURRENT_STREAMS, limits.concurrent_streams_count, u32::MAX);
            }
        }
        add(id::INITIAL_WINDOW_SIZE, limits.windows.stream_window_bytes, INITIAL_WINDOW_BYTES);
        add(id::MAX_FRAME_SIZE, limits.frames.frame_bytes, 16_384);
        add(id::MAX_HEADER_LIST_SIZE, limits.heads.header_list_bytes, u32::MAX);
        if role == Role::Server {
            add(id::ENABLE_CONNECT_PROTOCOL, 1, 0);
            add(id::NO_RFC7540_PRIORITIES, 1, 0);
        }
        crate::frame::settings::write(out, &entries[..count]);
        self.sent = true;
        self.unacknowledged += 1;
    }

    /// Announces a larger window for the streams to come. Returns what each open stream gains.
    pub(crate) fn write_window(&mut self, out: &mut Vec<u8>, bytes: u32, now_ms: u32) -> i32 {
        let difference = bytes.saturating_sub(self.window_bytes);
        self.window_bytes += difference;
        self.window_bytes_announced = self.window_bytes;
        crate::frame::settings::write(out, &[(id::INITIAL_WINDOW_SIZE, self.window_bytes)]);
        if self.unacknowledged == 0 {
            self.sent_ms = now_ms;
        }
        self.unacknowledged += 1;
        difference as i32
    }

    /// Returns whether the peer has acknowledged everything that we announced.
    #[inline]
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.unacknowledged == 0
    }

    /// Returns whether our first SETTINGS, sent when the connection began, are all that waits for its acknowledgement.
    pub(crate) fn is_never_acknowledged(&self) -> bool {
        self.unacknowledged == 1 && self.sent_ms == 0
    }

    /// An acknowledgement came. Returns what each open stream's receive window changes by.
    pub(crate) fn acknowledged(&mut self, now_ms: u32) -> Option<i32> {
        self.unacknowledged = self.unacknowledged.checked_sub(1)?;
        self.sent_ms = now_ms;
        let difference = i64::from(self.window_bytes_announced) - i64::from(self.window_bytes);
        self.window_bytes = self.window_bytes_announced;
        Some(difference as i32)
    }

    /// The peer's SETTINGS came.
    pub(crate) fn receive(
        &mut self,
        payload: &[u8],
        role: Role,
        limits: &Limits,
    ) -> Result<Changes, Fault> {
        if payload.len() as u32 > limits.frames.settings_entries_count * ENTRY_BYTES {
            return Err(Fault::abuse("settings-flood", "too many entries in a SETTINGS frame"));
        }
        let mut changes = Changes { concurrent_streams: !self.received, ..Changes::default() };
        self.received = true;
        for (id, value) in crate::frame::settings::entries(payload) {
            match id {
                id::HEADER_TABLE_SIZE => changes.header_table_bytes = Some(value),
                id::ENABLE_PUSH if value > 1 || (value == 1 && role == Role::Client) => {
                    return Err(Fault::protocol("ENABLE_PUSH has a value that is not allowed"));
                }
                id::MAX_CONCURRENT_STREAMS => {
                    self.peer_concurrent_streams = value;
                    changes.concurrent_streams = true;
                }
                id::INITIAL_WINDOW_SIZE => {
                    if value > WINDOW_BYTES_MAX {
                        return Err(Fault::flow_control("INITIAL_WINDOW_SIZE is above 2^31-1"));
                    }
                    changes.window_difference +=
                        i64::from(value) - i64::from(self.peer_window_bytes);
                    self.peer_window_bytes = value;
                }
                id::MAX_FRAME_SIZE => {
                    if !(16_384..=0xff_ffff).contains(&value) {
                        return Err(Fault::protocol("MAX_FRAME_SIZE is out of range"));
                    }
                    self.peer_frame_bytes = value;
                }
                id::ENABLE_CONNECT_PROTOCOL => {
                    if value > 1 || (value == 0 && self.peer_connect_protocol) {
                        return Err(Fault::protocol("ENABLE_CONNECT_PROTOCOL is not allowed"));
                    }
                    self.peer_connect_protocol = value == 1;
                }
                id::NO_RFC7540_PRIORITIES if value > 1 => {
                    return Err(Fault::protocol("NO_RFC7540_PRIORITIES is neither 0 nor 1"));
                }
                _ => {}
            }
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::limits;

    fn receive(settings: &mut Settings, entries: &[(u16, u32)]) -> Result<Changes, Fault> {
        let mut frame = Vec::new();
        crate::frame::settings::write(&mut frame, entries);
        settings.receive(&frame[9..], Role::Server, &Limits::default())
    }

    #[test]
    fn a_server_announces_its_limits() {
        let limits = Limits::default();
        let mut out = Vec::new();
        Settings::new(&limits).write_first(&mut out, Role::Server, &limits);
        let entries: Vec<_> = crate::frame::settings::entries(&out[9..]).collect();
        assert_eq!(entries, [(3, 100), (4, 65_536), (6, 32_768), (8, 1), (9, 1)]);
    }

    #[test]
    fn a_client_wants_no_push() {
        let limits = Limits {
            frames: limits::Frames { frame_bytes: 1 << 20, ..limits::Frames::DEFAULT },
            ..Limits::default()
        };
        let mut out = Vec::new();
        Settings::new(&limits).write_first(&mut out, Role::Client, &limits);
        let entries: Vec<_> = crate::frame::settings::entries(&out[9..]).collect();
        assert_eq!(entries, [(2, 0), (4, 65_536), (5, 1 << 20), (6, 32_768)]);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for (entry, code) in [
            ((2, 2), ErrorCode::ProtocolError),
            ((4, 0x8000_0000), ErrorCode::FlowControlError),
            ((5, 16_383), ErrorCode::ProtocolError),
            ((5, 0x100_0000), ErrorCode::ProtocolError),
            ((8, 2), ErrorCode::ProtocolError),
            ((9, 2), ErrorCode::ProtocolError),
        ] {
            let mut settings = Settings::new(&Limits::default());
            assert_eq!(receive(&mut settings, &[entry]).unwrap_err().code, code, "{entry:?}");
        }
    }

    #[test]
    fn unknown_entries_are_ignored_and_the_last_value_counts() {
        let mut settings = Settings::new(&Limits::default());
        let changes = receive(&mut settings, &[(0xff, 1), (4, 10), (4, 70_000)]).unwrap();
        assert_eq!(changes.window_difference, 70_000 - 65_535);
        assert!(changes.concurrent_streams);
        let changes = receive(&mut settings, &[(4, 0)]).unwrap();
        assert_eq!(changes.window_difference, -70_000);
        assert!(!changes.concurrent_streams);
    }

    #[test]
    fn a_smaller_window_holds_from_its_acknowledgement() {
        let limits = Limits {
            windows: limits::Windows { stream_window_bytes: 1000, ..limits::Windows::DEFAULT },
            ..Limits::default()
        };
        let mut settings = Settings::new(&limits);
        settings.write_first(&mut Vec::new(), Role::Client, &limits);
        assert_eq!(settings.window_bytes, INITIAL_WINDOW_BYTES);
        assert_eq!(settings.acknowledged(0), Some(1000 - 65_535));
        assert_eq!(settings.window_bytes, 1000);
        assert_eq!(settings.acknowledged(0), None);
        assert_eq!(settings.write_window(&mut Vec::new(), 3000, 0), 2000);
        assert_eq!(settings.acknowledged(0), Some(0));
    }
}

//! The limits that a file can set: one row for each field, by its name.
//!
//! What a limit is for stands in docs/LIMITS.md, which is written from the constants.

use std::time::Duration;

use bolide::files::OffloadLimits;
use bolide::proxy::ProxyLimits;
use bolide::server::{
    ConnectionLimits, Http1Limits, Http2Limits, Http3Limits, Limits, LogLimits, LoopLimits,
};
use bolide::websocket::{self, Options};
use bolide::websocket::{
    WEBSOCKET_CLOSE_TIMEOUT, WEBSOCKET_MESSAGE_TIMEOUT, WEBSOCKET_OUTPUT_BYTES,
    WEBSOCKET_PING_INTERVAL,
};
use bolide_acme::AcmeLimits;
use bolide_reverse_proxy::limits::{
    HEALTH_FALL_COUNT, HEALTH_INTERVAL, HEALTH_RISE_COUNT, HEALTH_TIMEOUT,
};
use bolide_static_files::limits::{
    CACHE_BYTES, CACHE_FILES_COUNT, CACHED_FILE_BYTES, FRESH, WAITING_BYTES,
};

use super::document::Section;
use super::value::{Range, Setting};

/// The largest window of HTTP/2 (RFC 9113 §6.9.1).
const WINDOW_BYTES_MAX: u64 = (1 << 31) - 1;

/// What health checks of an upstream go by.
#[derive(Debug, Clone)]
pub(crate) struct HealthLimits {
    pub(crate) health_interval: Duration,
    pub(crate) health_timeout: Duration,
    pub(crate) health_rise_count: u32,
    pub(crate) health_fall_count: u32,
}

impl Default for HealthLimits {
    fn default() -> Self {
        Self {
            health_interval: HEALTH_INTERVAL,
            health_timeout: HEALTH_TIMEOUT,
            health_rise_count: HEALTH_RISE_COUNT,
            health_fall_count: HEALTH_FALL_COUNT,
        }
    }
}

/// What a folder may take of a worker.
#[derive(Debug, Clone)]
pub(crate) struct FilesLimits {
    pub(crate) cache_bytes: usize,
    pub(crate) cache_files_count: usize,
    pub(crate) cached_file_bytes: usize,
    pub(crate) fresh: Duration,
    pub(crate) waiting_bytes: usize,
}

impl Default for FilesLimits {
    fn default() -> Self {
        Self {
            cache_bytes: CACHE_BYTES,
            cache_files_count: CACHE_FILES_COUNT,
            cached_file_bytes: CACHED_FILE_BYTES,
            fresh: FRESH,
            waiting_bytes: WAITING_BYTES,
        }
    }
}

/// What the threads may do that wait for the disk for a folder.
#[derive(Debug, Clone)]
pub(crate) struct OffloadRows {
    pub(crate) offload_threads_count: usize,
    pub(crate) offload_queue_count: usize,
    pub(crate) offload_idle: Duration,
}

impl Default for OffloadRows {
    fn default() -> Self {
        let OffloadLimits { threads_max_count, queue_max_count, idle } = OffloadLimits::default();
        Self {
            offload_threads_count: threads_max_count,
            offload_queue_count: queue_max_count,
            offload_idle: idle,
        }
    }
}

impl OffloadRows {
    /// As the pool takes them.
    pub(crate) fn limits(&self) -> OffloadLimits {
        OffloadLimits {
            threads_max_count: self.offload_threads_count,
            queue_max_count: self.offload_queue_count,
            idle: self.offload_idle,
        }
    }
}

/// How the WebSocket connections of the built-in routes are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WebSocketLimits {
    pub(crate) messages: websocket::Limits,
    pub(crate) kept: KeptLimits,
}

/// What such a connection may take beside its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptLimits {
    pub(crate) ping_interval: Duration,
    pub(crate) close_timeout: Duration,
    pub(crate) message_timeout: Duration,
    pub(crate) output_bytes: usize,
}

impl Default for KeptLimits {
    fn default() -> Self {
        Self {
            ping_interval: WEBSOCKET_PING_INTERVAL,
            close_timeout: WEBSOCKET_CLOSE_TIMEOUT,
            message_timeout: WEBSOCKET_MESSAGE_TIMEOUT,
            output_bytes: WEBSOCKET_OUTPUT_BYTES,
        }
    }
}

impl WebSocketLimits {
    /// As handlers take them.
    pub(crate) fn options(&self) -> Options {
        Options::new()
            .limits(self.messages)
            .ping_interval(self.kept.ping_interval)
            .close_timeout(self.kept.close_timeout)
            .message_timeout(self.kept.message_timeout)
            .output_bytes_max(self.kept.output_bytes)
    }
}

/// One limit of `L`.
pub(crate) struct Row<L> {
    /// The field; the constant that is its default has its name in capitals, behind the table's prefix.
    pub(crate) field: &'static str,
    /// What it may be.
    pub(crate) range: Range,
    /// The field of a value.
    pub(crate) of: fn(&mut L) -> &mut dyn Setting,
}

impl<L> Row<L> {
    /// The key in a file.
    pub(crate) fn key(&self) -> String {
        self.field.replace('_', "-")
    }
}

/// A group of limits: where they stand in docs/LIMITS.md, and its rows.
pub(crate) struct Table<L: 'static> {
    /// The crate's folder.
    pub(crate) folder: &'static str,
    /// What the names of the constants begin with.
    pub(crate) prefix: &'static str,
    /// A row for each field.
    pub(crate) rows: &'static [Row<L>],
}

impl<L> Table<L> {
    /// Takes what a section says of these limits.
    pub(crate) fn read(&self, section: &mut Section<'_>, limits: &mut L) -> Result<(), String> {
        for row in self.rows {
            section.read(&row.key(), |value| (row.of)(limits).read(value, &row.range))?;
        }
        Ok(())
    }
}

/// Rows from names of fields, each with its least value where that is not 1, and its most.
macro_rules! table {
    ($name:ident: $limits:ty, $folder:literal, $($prefix:literal,)? [$($field:ident $(from $least:literal)? $(to $most:expr)?),* $(,)?]) => {
        #[doc = concat!("The limits of `", $folder, "`.")]
        pub(crate) static $name: Table<$limits> = Table {
            folder: $folder,
            prefix: concat!($($prefix)?),
            rows: &[$(Row {
                field: stringify!($field),
                range: Range {
                    least: first(&[$($least,)? 1]),
                    most: first(&[$($most,)? u64::MAX]),
                    is_bytes: names_bytes(stringify!($field)),
                },
                of: |limits| &mut limits.$field,
            }),*],
        };
    };
}

const fn first(numbers: &[u64]) -> u64 {
    numbers[0]
}

/// Whether the name of a limit has `bytes` in it.
const fn names_bytes(name: &str) -> bool {
    let (name, word) = (name.as_bytes(), b"bytes");
    let mut at = 0;
    while at + word.len() <= name.len() {
        let mut same = 0;
        while same < word.len() && name[at + same] == word[same] {
            same += 1;
        }
        if same == word.len() {
            return true;
        }
        at += 1;
    }
    false
}

table!(SERVER: Limits, "service/server", [
    body_bytes_max from 0,
    response_timeout from 0,
    exchange_timeout from 0,
    client_connections_count from 0,
    windows_bytes from 0,
    long_turn,
]);

table!(LOOP: LoopLimits, "eventloop", [
    connections_max_count from 0 to 1 << 30,
    backlog_count to (1 << 31) - 1,
    accept_pause,
    connection_held_bytes_max,
    held_bytes_max from 0,
    close_stall,
    close_stall_bytes from 0,
    linger from 0,
    linger_bytes from 0,
]);

table!(OFFLOAD: OffloadRows, "eventloop", [
    offload_threads_count to 1024,
    offload_queue_count from 0,
    offload_idle from 0,
]);

table!(CONNECTION: ConnectionLimits, "protocol/connection", [handshake_timeout, version_timeout]);

table!(HTTP1: Http1Limits, "protocol/h1", [
    request_line_bytes,
    head_bytes,
    fields_count,
    empty_lines_count from 0,
    chunk_extension_bytes from 0,
    trailer_bytes from 0,
    trailers_count from 0,
    discard_bytes from 0,
    unconsumed_bytes,
    unconsumed_bytes_max from 0,
    pipelined_count to 64,
    interim_count from 0,
    requests_count,
    head_timeout,
    body_timeout,
    body_rate_bytes from 0,
    body_rate_window,
    write_timeout,
    idle_timeout,
]);

table!(HTTP2: Http2Limits, "protocol/h2", [
    concurrent_streams_count,
    frame_bytes from 16384 to 16_777_215,
    data_frame_bytes from 1024 to 16_777_215,
    stream_window_bytes to WINDOW_BYTES_MAX,
    connection_window_bytes to WINDOW_BYTES_MAX,
    stream_window_bytes_max to WINDOW_BYTES_MAX,
    connection_window_bytes_max to WINDOW_BYTES_MAX,
    header_list_bytes,
    header_list_excess_count,
    header_fields_count,
    continuation_frames_count from 0,
    header_block_bytes,
    interim_count from 0,
    header_table_bytes from 0 to 65_535,
    client_resets_burst_count,
    client_resets_refill_count from 0,
    client_resets_life_count,
    own_resets_burst_count,
    own_resets_refill_count from 0,
    own_resets_life_count,
    glitches_burst_count,
    glitches_refill_count from 0,
    small_data_burst_count,
    small_data_refill_count from 0,
    tunnel_data_burst_count,
    tunnel_data_refill_count from 0,
    settings_entries_count,
    settings_frames_count,
    control_frames_count,
    stalled_stream,
    stalled_connection,
    head_time,
    body_pause,
    call_pause,
    body_rate_bytes from 0,
    idle_time,
    write_pause,
    acknowledgement_time,
    ping_after,
    ping_reply,
]);

table!(HTTP3: Http3Limits, "protocol/h3", [
    concurrent_streams_count to 100,
    stream_unconsumed_bytes,
    header_list_bytes,
    header_list_excess_count,
    header_fields_count,
    section_bytes,
    interim_count from 0,
    settings_entries_count,
    client_resets_burst_count,
    client_resets_refill_count from 0,
    client_resets_life_count,
    own_resets_burst_count,
    own_resets_refill_count from 0,
    glitches_burst_count,
    glitches_refill_count from 0,
    small_data_burst_count,
    small_data_refill_count from 0,
    stalled_stream,
    head_time,
    body_pause,
    call_pause,
    body_rate_bytes from 0,
    idle_time,
]);

table!(PROXY: ProxyLimits, "service/reverse-proxy", [
    connections_count,
    waiting_count from 0,
    wait_timeout,
    outstanding_count,
    connect_timeout,
    first_byte_timeout,
    pause_timeout,
    tunnel_timeout,
    idle_timeout,
    retries_count from 0,
    retry_budget_percent from 0,
    failures_count,
    ejection_time,
    ejection_time_max,
    hash_load_percent from 101 to 10_000,
    slow_start from 0,
    resolve_period from 0,
    response_window_bytes from 65_535 to WINDOW_BYTES_MAX,
    connection_window_bytes from 65_535 to WINDOW_BYTES_MAX,
]);

table!(HEALTH: HealthLimits, "service/reverse-proxy", [
    health_interval,
    health_timeout,
    health_rise_count,
    health_fall_count,
]);

table!(ACME: AcmeLimits, "service/acme", [retry_delay, retry_delay_max]);

table!(FILES: FilesLimits, "service/static-files", [
    cache_bytes from 0,
    cache_files_count from 0,
    cached_file_bytes from 0 to 1 << 30,
    fresh from 0,
    waiting_bytes,
]);

table!(LOG: LogLimits, "service/server", "LOG_", [
    block_bytes from 1024 to 1 << 24,
    queue_count to 65_536,
    delay,
]);

table!(WEBSOCKET: websocket::Limits, "protocol/websocket", [
    message_bytes,
    fragments_count,
    empty_fragments_count from 0,
    inflate_free_bytes from 0,
    inflate_ratio_count,
]);

table!(WEBSOCKET_KEPT: KeptLimits, "service/server", "WEBSOCKET_", [
    ping_interval from 0,
    close_timeout,
    message_timeout from 0,
    output_bytes,
]);

#[cfg(test)]
mod tests {
    mod fixed;

    use super::*;
    use fixed::CANNOT_BE_SET;

    /// The fields of a value, from its debug form.
    fn fields(value: &impl std::fmt::Debug) -> Vec<String> {
        let text = format!("{value:#?}");
        let own =
            text.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
        own.filter_map(|line| line.trim().split_once(": ").map(|(name, _)| name.to_owned()))
            .collect()
    }

    fn names<L>(table: &Table<L>) -> Vec<String> {
        table.rows.iter().map(|row| row.field.to_owned()).collect()
    }

    #[test]
    fn every_limit_of_a_server_can_be_set() {
        assert_eq!(names(&HTTP1), fields(&Http1Limits::default()));
        let mut http2 = fields(&Http2Limits::default());
        // The server decides it: its connections share memory.
        http2.retain(|field| field != "connection_window_is_granted");
        assert_eq!(names(&HTTP2), http2);
        let mut http3 = fields(&Http3Limits::default());
        // No handler takes datagrams, and a client's window is no server's.
        let others = ["datagrams_count", "response_window_bytes"];
        http3.retain(|field| !others.contains(&field.as_str()));
        assert_eq!(names(&HTTP3), http3);
        assert_eq!(names(&PROXY), fields(&ProxyLimits::default()));
        assert_eq!(names(&HEALTH), fields(&HealthLimits::default()));
        assert_eq!(names(&ACME), fields(&AcmeLimits::default()));
        assert_eq!(names(&FILES), fields(&FilesLimits::default()));
        assert_eq!(names(&LOG), fields(&LogLimits::default()));
        assert_eq!(names(&WEBSOCKET), fields(&websocket::Limits::default()));
        assert_eq!(names(&WEBSOCKET_KEPT), fields(&KeptLimits::default()));
        let inner = |names: Vec<String>, others: &[&str]| -> Vec<String> {
            names.into_iter().filter(|name| !others.contains(&name.as_str())).collect()
        };
        let whole = ["connection", "event_loop"];
        assert_eq!(names(&SERVER), inner(fields(&Limits::default()), &whole));
        assert_eq!(names(&OFFLOAD), fields(&OffloadRows::default()));
        let connection = inner(fields(&ConnectionLimits::default()), &["h1", "h2", "h3"]);
        assert_eq!(names(&CONNECTION), connection);
    }

    /// The names on the page below the heading of a crate.
    fn on_the_page(folder: &str) -> Vec<String> {
        let page = include_str!("../../../../docs/LIMITS.md");
        let heading = format!("## `{folder}`");
        let rows = page.lines().skip_while(|line| *line != heading).skip(1);
        let rows = rows.take_while(|line| !line.starts_with("## "));
        rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
            .collect()
    }

    #[test]
    fn every_limit_on_the_page_can_be_set_or_says_why_not() {
        let mut settable = Vec::new();
        fn add<L>(settable: &mut Vec<(&str, String)>, table: &Table<L>) {
            settable.extend(table.rows.iter().map(|row| {
                (table.folder, format!("{}{}", table.prefix, row.field.to_ascii_uppercase()))
            }));
        }
        add(&mut settable, &SERVER);
        add(&mut settable, &CONNECTION);
        add(&mut settable, &HTTP1);
        add(&mut settable, &HTTP2);
        add(&mut settable, &HTTP3);
        add(&mut settable, &LOOP);
        add(&mut settable, &PROXY);
        add(&mut settable, &HEALTH);
        add(&mut settable, &ACME);
        add(&mut settable, &FILES);
        add(&mut settable, &OFFLOAD);
        add(&mut settable, &LOG);
        add(&mut settable, &WEBSOCKET);
        add(&mut settable, &WEBSOCKET_KEPT);
        for folder in [
            "eventloop",
            "protocol/connection",
            "protocol/h1",
            "protocol/h2",
            "protocol/h3",
            "protocol/hpack",
            "protocol/qpack",
            "protocol/quic",
            "protocol/semantics",
            "protocol/websocket",
            "service/access",
            "service/acme",
            "service/measurement",
            "service/reverse-proxy",
            "service/server",
            "service/site",
            "service/static-files",
        ] {
            let of_crate = CANNOT_BE_SET.iter().filter(|(its, ..)| *its == folder);
            let mut fixed: Vec<&str> =
                of_crate.flat_map(|(_, names, _)| names.iter().copied()).collect();
            fixed.sort_unstable();
            let (can, mut cannot): (Vec<String>, Vec<String>) =
                on_the_page(folder).into_iter().partition(|name| {
                    settable.iter().any(|(its, known)| *its == folder && known == name)
                });
            cannot.sort_unstable();
            assert_eq!(cannot, fixed, "{folder}: what can't be set");
            assert!(!can.is_empty() || !cannot.is_empty(), "{folder} has no limits");
        }
        assert!(CANNOT_BE_SET.iter().all(|(.., why)| why.len() > 20), "each has its reason");
    }

    #[test]
    fn bytes_are_told_by_the_name() {
        assert!(names_bytes("body_bytes_max") && names_bytes("bytes") && names_bytes("a_bytes"));
        assert!(!names_bytes("byte") && !names_bytes("fields_count") && !names_bytes(""));
    }
}

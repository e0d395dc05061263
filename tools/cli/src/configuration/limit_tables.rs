//! The limits that a file can set: one row for each field, by its name.
//!
//! What a limit is for stands in docs/LIMITS.md, which is written from the constants.

use std::time::Duration;

use bolide::{ConnectionLimits, Http1Limits, Http2Limits, Limits, LogLimits, ProxyLimits};
use bolide_reverse_proxy::limits::{
    HEALTH_FALL_COUNT, HEALTH_INTERVAL, HEALTH_RISE_COUNT, HEALTH_TIMEOUT,
};
use bolide_static_files::limits::{CACHE_BYTES, CACHE_FILES_COUNT, FRESH, WAITING_BYTES};

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
    pub(crate) fresh: Duration,
    pub(crate) waiting_bytes: usize,
}

impl Default for FilesLimits {
    fn default() -> Self {
        Self {
            cache_bytes: CACHE_BYTES,
            cache_files_count: CACHE_FILES_COUNT,
            fresh: FRESH,
            waiting_bytes: WAITING_BYTES,
        }
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
    answer_timeout from 0,
    exchange_timeout from 0,
    windows_bytes from 0,
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
    settings_entries_count,
    settings_frames_count,
    control_frames_count,
    stalled_stream,
    stalled_connection,
    head_time,
    body_pause,
    body_rate_bytes from 0,
    idle_time,
    write_pause,
    acknowledgement_time,
    ping_after,
    ping_answer,
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
    resolve_period from 0,
    answer_window_bytes from 65_535 to WINDOW_BYTES_MAX,
    connection_window_bytes from 65_535 to WINDOW_BYTES_MAX,
]);

table!(HEALTH: HealthLimits, "service/reverse-proxy", [
    health_interval,
    health_timeout,
    health_rise_count,
    health_fall_count,
]);

table!(FILES: FilesLimits, "service/static-files", [
    cache_bytes from 0,
    cache_files_count from 0,
    fresh from 0,
    waiting_bytes,
]);

table!(LOG: LogLimits, "service/server", "LOG_", [
    block_bytes from 1024 to 1 << 24,
    queue_count to 65_536,
    delay,
]);

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(names(&HTTP2), fields(&Http2Limits::default()));
        assert_eq!(names(&PROXY), fields(&ProxyLimits::default()));
        assert_eq!(names(&HEALTH), fields(&HealthLimits::default()));
        assert_eq!(names(&FILES), fields(&FilesLimits::default()));
        assert_eq!(names(&LOG), fields(&LogLimits::default()));
        let inner = |names: Vec<String>, others: &[&str]| -> Vec<String> {
            names.into_iter().filter(|name| !others.contains(&name.as_str())).collect()
        };
        assert_eq!(names(&SERVER), inner(fields(&Limits::default()), &["connection"]));
        let connection = inner(fields(&ConnectionLimits::default()), &["h1", "h2"]);
        assert_eq!(names(&CONNECTION), connection);
    }

    #[test]
    fn bytes_are_told_by_the_name() {
        assert!(names_bytes("body_bytes_max") && names_bytes("bytes") && names_bytes("a_bytes"));
        assert!(!names_bytes("byte") && !names_bytes("fields_count") && !names_bytes(""));
    }
}

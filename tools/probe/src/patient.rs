//! Limits of connections to servers that are measured.

use std::sync::Arc;
use std::time::Duration;

use bolide_connection::{
    Http1Limits, Http2Limits, Http3Limits, Limits, Opening, http1_limits, http2_limits,
    http3_limits,
};

use crate::plan::RESPONSE_WINDOW_BYTES;

/// Longer than any run.
const NEVER: Duration = Duration::MAX;

/// Limits of a connection to a server that is measured: the measurement decides how long things may take, and a server that is asked
/// a million times a second may respond as often. `connect_timeout` is the time for its handshakes.
pub fn patient_limits(connect_timeout: Duration) -> Limits {
    let h1 = Http1Limits {
        times: http1_limits::Times {
            idle_timeout: NEVER,
            write_timeout: NEVER,
            body_timeout: NEVER,
            ..http1_limits::Times::DEFAULT
        },
        heads: http1_limits::Heads {
            head_bytes: 256 * 1024,
            fields_count: 1000,
            ..http1_limits::Heads::DEFAULT
        },
        ..Http1Limits::default()
    };
    let h2 = Http2Limits {
        heads: http2_limits::Heads {
            header_list_bytes: 256 * 1024,
            header_fields_count: 1000,
            ..http2_limits::Heads::DEFAULT
        },
        budgets: http2_limits::Budgets {
            glitches_burst_count: None,
            small_data_burst_count: None,
            own_resets_burst_count: None,
            own_resets_life_count: None,
            ..http2_limits::Budgets::DEFAULT
        },
        times: http2_limits::Times {
            stalled_stream: NEVER,
            stalled_connection: NEVER,
            head_time: connect_timeout,
            body_pause: NEVER,
            call_pause: NEVER,
            body_rate_bytes: 0,
            idle_time: NEVER,
            write_pause: NEVER,
            acknowledgement_time: NEVER,
            ping_after: NEVER,
            ..http2_limits::Times::DEFAULT
        },
        ..Http2Limits::default()
    };
    Limits {
        h1: Arc::new(h1),
        h2: Arc::new(h2),
        h3: Arc::new(of_http3(connect_timeout)),
        opening: Opening { handshake_timeout: connect_timeout, version_timeout: connect_timeout },
    }
}

/// The same for HTTP/3.
fn of_http3(connect_timeout: Duration) -> Http3Limits {
    Http3Limits {
        response_window_bytes: RESPONSE_WINDOW_BYTES,
        datagrams_count: 0,
        heads: http3_limits::Heads {
            header_list_bytes: 256 * 1024,
            header_fields_count: 1000,
            ..http3_limits::Heads::DEFAULT
        },
        budgets: http3_limits::Budgets {
            own_resets_burst_count: None,
            glitches_burst_count: None,
            small_data_burst_count: None,
            ..http3_limits::Budgets::DEFAULT
        },
        times: http3_limits::Times {
            stalled_stream: NEVER,
            head_time: connect_timeout,
            body_pause: NEVER,
            call_pause: NEVER,
            idle_time: NEVER,
            ..http3_limits::Times::DEFAULT
        },
        ..Http3Limits::default()
    }
}

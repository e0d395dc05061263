//! The HTTP/2 connection of Bolide, without I/O (RFC 9113, RFC 9218, RFC 8441).
//!
//! One [`Connection`] serves both roles. Bytes come in and go out through the buffers of a
//! [`Context`](bolide_semantics::Context); what they mean is reported by
//! [`poll`](Connection::poll); orders are given by the `send_…` methods.
//!
//! This crate must never know sockets, a clock, threads, or what a request is answered with.

mod abuse;
mod closed;
mod connection;
mod consume;
mod deadlines;
mod error;
mod frame;
mod goaway;
mod head_writer;
mod incoming;
pub mod limits;
mod output_watch;
mod pending;
mod ping;
mod priority;
mod receive;
mod receive_control;
mod receive_data;
mod receive_flow;
mod receive_headers;
mod receive_settings;
mod receive_window;
mod resets;
mod run;
mod scan;
mod scheduler;
mod send;
mod send_body;
mod settings;
mod shared_fields;
mod stats;
mod stream;
mod stream_list;
mod streams;
mod unanswered;
mod whole_body;

pub use connection::Connection;
pub use error::ErrorCode;
pub use limits::Limits;
pub use resets::{RESET_CODES, Resets};
pub use shared_fields::SharedFields;
pub use stats::{OwnStalls, Stalls, Stats};

#[cfg(test)]
mod test_time {
    //! The one instant from which the unit tests count.

    use std::sync::OnceLock;
    use std::time::Instant;

    #[allow(clippy::disallowed_methods, reason = "an Instant can't be made from a number")]
    pub(crate) fn start() -> Instant {
        static START: OnceLock<Instant> = OnceLock::new();
        *START.get_or_init(Instant::now)
    }
}

//! RFC 9000, RFC 9001, RFC 9002, RFC 9114: both roles of a connection over a simulated network.

mod congestion;
mod early;
mod pair;
mod paths;
mod windows;

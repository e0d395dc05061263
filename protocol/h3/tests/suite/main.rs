//! RFC 9114, RFC 9204, RFC 9218, RFC 9220, RFC 9297: an HTTP/3 connection against a peer that can send anything, and against
//! another of its kind.

mod attacks;
mod foreign;
mod goaway;
mod messages;
mod network;
mod orders;
mod pair;
mod priorities;
mod qpack;
mod streams;
mod subject;

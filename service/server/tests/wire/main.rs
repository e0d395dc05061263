//! The server through real sockets, byte by byte.

mod answers;
mod limits;
mod raw_client;
mod shutdown;

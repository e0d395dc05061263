//! Frames of HTTP/2 and WebSocket as bytes, for tests: our encoders are never only tested against our decoders.

mod block;
mod http2;
mod websocket;

pub use block::block;
pub use http2::*;
pub use websocket::{upgrade, websocket};

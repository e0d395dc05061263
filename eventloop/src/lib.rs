//! The event loop of Bolide: sockets, timers and threads; no HTTP.

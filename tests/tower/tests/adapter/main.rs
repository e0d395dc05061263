//! The adapter under axum: one application responds as under `axum::serve`; cancellation, backpressure, wakes, shutdown.

#![cfg(test)]

mod app;
mod backpressure;
mod cancellation;
mod closes;
mod extractors;
mod http2;
mod informational;
mod layers;
mod long_polls;
mod pair;
mod panics;
mod repeats;
mod serving;
mod start;
mod streams;
mod tls;
mod unready;
mod upgrades;
mod wakes;
mod whole_bodies;

//! The adapter under axum: one application responds as under `axum::serve`; cancellation, backpressure, wakes, shutdown.

#[cfg(test)]
mod app;
#[cfg(test)]
mod backpressure;
#[cfg(test)]
mod cancellation;
#[cfg(test)]
mod closes;
#[cfg(test)]
mod extractors;
#[cfg(test)]
mod http2;
#[cfg(test)]
mod informational;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod long_polls;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod panics;
#[cfg(test)]
mod repeats;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod start;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod unready;
#[cfg(test)]
mod upgrades;
#[cfg(test)]
mod wakes;
#[cfg(test)]
mod whole_bodies;

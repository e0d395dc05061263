//! Promises of the adapter beyond equal responses: cancellation, backpressure, wakes, shutdown.

#[cfg(test)]
mod backpressure;
#[cfg(test)]
mod cancellation;
#[cfg(test)]
mod informational;
#[cfg(test)]
mod long_polls;
#[cfg(test)]
mod panics;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod start;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod unready;
#[cfg(test)]
mod wakes;
#[cfg(test)]
mod whole_bodies;

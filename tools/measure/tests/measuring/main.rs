//! Measurements against servers with planted behaviour, in this process and over the loopback device.

#![cfg(test)]

mod planted;

mod failures;
mod latencies;
mod ndt7;
mod responsiveness;
mod transfers;

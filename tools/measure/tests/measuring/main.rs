//! Measurements against servers with planted behaviour, in this process and over the loopback device.

#[cfg(test)]
mod planted;

#[cfg(test)]
mod failures;
#[cfg(test)]
mod latencies;
#[cfg(test)]
mod ndt7;
#[cfg(test)]
mod responsiveness;
#[cfg(test)]
mod transfers;

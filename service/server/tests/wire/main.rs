//! The server through real sockets, byte by byte.

#[cfg(test)]
mod clock;
#[cfg(test)]
mod handover;
#[cfg(test)]
mod http3;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod responses;

mod limits;
#[cfg(test)]
mod observed;
#[cfg(test)]
mod outward;
#[cfg(test)]
mod profiled;
#[cfg(test)]
mod raw_client;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod websocket;

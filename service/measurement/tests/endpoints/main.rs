//! The measurement endpoints through real sockets, by a foreign WebSocket client.

#[cfg(test)]
mod echo;
mod events;
#[cfg(test)]
mod ndt7;
#[cfg(test)]
mod responsiveness;
#[cfg(test)]
mod served;
mod sizes;

//! The measurement endpoints through real sockets, by a foreign WebSocket client.

#![cfg(test)]

mod echo;
mod events;
mod ndt7;
mod responsiveness;
mod served;
mod sizes;

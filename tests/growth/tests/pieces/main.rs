//! Work per piece: n pieces and four times as many, for each carrier of small pieces. Whatever grows with what has piled up shows as a
//! ratio near 16.

#![cfg(test)]

mod cost;
mod http3;
mod parts;
mod proxy;
mod server;
mod table;
mod talk;
mod turns;
mod wire;

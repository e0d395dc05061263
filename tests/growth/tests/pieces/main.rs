//! Work per piece: n pieces and four times as many, for each carrier of small pieces. Whatever grows with what has piled up shows as a
//! ratio near 16.

#[cfg(test)]
mod cost;
#[cfg(test)]
mod http3;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod server;
#[cfg(test)]
mod table;
#[cfg(test)]
mod talk;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod wire;

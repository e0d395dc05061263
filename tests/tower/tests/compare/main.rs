//! One axum application under `axum::serve` and under Bolide: the responses are compared.

#[cfg(test)]
mod app;
#[cfg(test)]
mod closes;
#[cfg(test)]
mod extractors;
#[cfg(test)]
mod http2;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod pair;
#[cfg(test)]
mod repeats;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod upgrades;

//! Foreign clients, each over every version that it speaks. One that isn't installed is skipped, loudly.
//!
//! The modules are `cfg(test)`, so that Clippy knows all of their functions as tests.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod browsers;
#[cfg(test)]
mod curl;
#[cfg(test)]
mod go;
#[cfg(test)]
mod h2load;
#[cfg(test)]
mod h2spec;
#[cfg(test)]
mod http3;
#[cfg(test)]
mod hyper_client;
#[cfg(test)]
mod ndt7;
#[cfg(test)]
mod nghttp;
#[cfg(test)]
mod node;
#[cfg(test)]
mod openssl;
#[cfg(test)]
mod pebble;
#[cfg(test)]
mod prometheus;
#[cfg(test)]
mod python;
#[cfg(test)]
mod random_data;
#[cfg(test)]
mod websocket;
#[cfg(test)]
mod wrk;

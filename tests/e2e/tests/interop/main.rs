//! Foreign clients, each over every version that it speaks. One that isn't installed is skipped, loudly.

#![cfg(test)]

mod attacks;
mod browsers;
mod curl;
mod go;
mod h2load;
mod h2spec;
mod http3;
mod hyper_client;
mod ndt7;
mod nghttp;
mod node;
mod openssl;
mod pebble;
mod prometheus;
mod python;
mod random_data;
mod websocket;
mod wrk;

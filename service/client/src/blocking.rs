//! The client for users: calls that wait, on top of a thread with an event loop.

mod addresses;
mod agent;
mod client;
mod client_state;
mod connection;
mod error;
mod pending_request;
mod redirect;
mod request;
mod response;
mod sending;

pub use client::{Client, ClientBuilder, Redirects, Versions};
pub use error::{ClientError, ErrorKind};
pub use request::{BodyWriter, Request};
pub use response::Response;

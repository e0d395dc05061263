//! The client for users: calls that wait, on top of a thread with an event loop.

mod addresses;
mod agent;
mod client;
mod command_queue;
mod connection;
mod error;
mod pending_request;
mod redirect;
mod request;
mod response;

pub use client::{Client, ClientBuilder, Versions};
pub use error::{ClientError, ErrorKind};
pub use redirect::Redirects;
pub use request::{BodyWriter, Request};
pub use response::Response;

//! Rules for who may send requests to a route, and how many: addresses, certificates, passwords, another server's word, rates.
//!
//! [`Access`] says so for one route; [`Access::guard`] puts it before the route's handler in each worker's router.

mod access;
mod bandwidth;
mod basic;
mod concurrency;
mod forward;
pub mod limits;
mod rate;
mod user;

pub use access::{Access, AllowedCertificate, Guarded};
pub use bandwidth::Bandwidth;
pub use basic::{AuthError, BasicAuth, hash_password};
pub use concurrency::Concurrency;
pub use forward::ForwardAuth;
pub use rate::{RateError, RateKey, RateLimit, Verdict};

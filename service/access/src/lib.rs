//! Who may send requests to a route, and how many.
//!
//! [`Access`] says so for one route; [`Access::guard`] puts it before the route's handler in each worker's router.

mod access;
pub mod limits;
mod rate;

pub use access::{Access, AllowedCertificate, Guarded};
pub use rate::{RateError, RateKey, RateLimit, Verdict};

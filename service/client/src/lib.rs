//! The outbound side of Bolide: a connection to a server, driven by the event loop.
//!
//! A [`Session`] takes one connection from `connect` to its end: TLS, the version, requests, and who
//! is to blame when it is over. The caller is its [`Owner`]: it is told what comes and gives its
//! [`Orders`]. What sessions of a worker need in turn, they are [lent](Workbench).
//!
//! A [`Pool`] keeps what is known of a server's connections, so that they are used again; it makes none
//! itself.
//!
//! A [`Client`] is all of this for users: a thread of its own with an event loop, asked from any thread by
//! calls that wait. [`EventSource`] reads Server-Sent Events with it.
//!
//! This crate must never know frames or sockets, nor what is asked and why.

mod blocking;
mod datagrams;
mod dial;
mod ending;
mod events;
pub mod limits;
mod orders;
mod owner;
mod pool;
mod resolve;
mod session;
mod trust;

pub use blocking::{
    BodyWriter, Client, ClientBuilder, ClientError, ErrorKind, Redirects, Request, Response,
    Versions,
};
pub use bolide_connection::{Alpn, ClientOptions, ClientTls, Identity, Trust, WallClock};
pub use bolide_eventloop::Destination;
pub use datagrams::WorkerWorkbench;
pub use dial::{Dial, Speaks};
pub use ending::{Ending, Step};
pub use events::{Event, EventParser, EventSource, TooLong};
pub use limits::ClientLimits;
pub use orders::Orders;
pub use owner::{Established, Owner};
pub use pool::{ConnectionKey, Pool, PoolCensus, PoolLimits, WaitKey};
pub use resolve::{ResolveError, resolve};
pub use session::{Session, Workbench};
pub use trust::{TrustError, platform_trust};

//! Whole connections on the simulated network: what one end does, as a list of actions.

mod act;
mod frames;
mod messages;
mod party;
mod run;

pub use act::{Act, Script};
pub use party::Party;
pub use run::{network, run};

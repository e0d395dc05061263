//! What the tests from outside need: the program `bolide` as a process, and foreign tools.

mod program;
mod server;
mod tools;

pub use program::{Program, program, root};
pub use server::Server;
pub use tools::{Finished, find, finish, run, scratch, skip, spawn};

//! Tools of the tests from outside: the program `bolide` as a process, and foreign tools.

mod decision;
mod nginx;
mod program;
mod server;
mod tools;

pub use decision::decide;
pub use nginx::{Nginx, free_address};
pub use program::{Program, copy_program, program, root};
pub use server::Server;
pub use tools::{Finished, find, finish, run, scratch, skip, spawn};

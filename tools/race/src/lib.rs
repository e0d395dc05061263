//! Races between HTTP servers: each one verified, timed in interleaved rounds in random order,
//! compared with intervals, and reported with what the data carries and no more.
//!
//! [`command`] is `bolide race`; [`bulk`] is `bolide net bulk`, one transfer through a lab; [`catalogue`] says what is run, [`contender`] who runs,
//! [`statistics`] what may be said about it.

pub mod bulk;
pub mod catalogue;
pub mod command;
pub mod contender;
pub mod differing;
pub mod generator;
pub mod manifest;
pub mod outcome;
pub mod requests;
pub mod rounds;
pub mod statistics;

mod builder;
mod cells;
mod columns;
mod entrant;
mod figures;
mod gather;
mod grpc;
mod idle;
mod interrupt;
mod preflight;
mod process;
mod progress;
mod race;
mod report;
mod store;
mod summary;
mod table;
mod verify;
mod workplace;

//! The engine against servers whose behaviour is known.

#![cfg(test)]

mod plans;
mod planted;

mod calls;
mod early;
mod events;
mod failures;
mod http3;
mod loads;
mod protocols;
mod records;
mod scenarios;
mod websocket;

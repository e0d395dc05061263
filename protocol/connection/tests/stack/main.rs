//! The stack of a connection, in memory.

#![cfg(test)]

mod both_roles;
mod http3;

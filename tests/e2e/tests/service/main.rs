//! `bolide serve` as a service: sockets that are handed in, what a service manager is told, upgrades of the binary,
//! privileges, and the commands and units for operators.

#![cfg(test)]

mod activation;
mod documentation;
mod instance;
mod machine;
mod manager;
mod privileges;
mod upgrade;

//! `bolide serve` as a service: sockets that are handed in, what a service manager is told, upgrades of the binary,
//! privileges, and the commands and units for operators.
//!
//! The modules are `cfg(test)`, so that Clippy knows all of their functions as tests.

#[cfg(test)]
mod activation;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod instance;
#[cfg(test)]
mod machine;
#[cfg(test)]
mod manager;
#[cfg(test)]
mod privileges;
#[cfg(test)]
mod upgrade;

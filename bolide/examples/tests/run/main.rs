//! Each example is started as a user would, and used.

#[cfg(test)]
mod grpc;
#[cfg(test)]
mod program;
#[cfg(test)]
mod web;

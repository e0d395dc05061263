//! gRPC: the cases of its interoperability tests, by tonic's client and by grpc-go's; deadlines;
//! the health and the reflection service. The cases go through `bolide serve --proxy` too.

#![cfg(test)]

mod cases;
mod deadlines;
mod go;
mod load;
mod messages;
mod proxied;
mod service;
mod services;
mod start;

//! gRPC: the cases of its interoperability tests, by tonic's client and by grpc-go's; deadlines;
//! the health and the reflection service.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod deadlines;
#[cfg(test)]
mod go;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod service;
#[cfg(test)]
mod services;
#[cfg(test)]
mod start;

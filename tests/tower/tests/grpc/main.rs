//! gRPC: the cases of its interoperability tests, by tonic's client and by grpc-go's; deadlines;
//! the health and the reflection service. The cases go through `bolide serve --proxy` too.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod deadlines;
#[cfg(test)]
mod go;
#[cfg(test)]
mod load;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod proxied;
#[cfg(test)]
mod service;
#[cfg(test)]
mod services;
#[cfg(test)]
mod start;

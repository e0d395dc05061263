//! `bolide::client` against Bolide's own server, and against sockets that follow a script.

#[cfg(test)]
mod bodies;
#[cfg(test)]
mod events;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod redirects;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod versions;

//! Static files as a client sees them.

#[cfg(test)]
mod changes;
#[cfg(test)]
mod client;
#[cfg(test)]
mod conditions;
#[cfg(test)]
mod otherwise;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod ranges;
#[cfg(test)]
mod repeated;
#[cfg(test)]
mod sendfile;
#[cfg(test)]
mod slow_disk;
#[cfg(test)]
mod variants;

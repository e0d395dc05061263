//! The whole proxy on a simulated network, with faults on both of its sides.

#[cfg(test)]
mod isolation;
#[cfg(test)]
mod party;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod runs;

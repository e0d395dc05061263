//! `bolide serve --proxy` before foreign servers, asked by a foreign client. What isn't installed is skipped,
//! loudly.
//!
//! The modules are `cfg(test)`, so that Clippy knows all of their functions as tests.

#[cfg(test)]
mod behind;
#[cfg(test)]
mod chains;
#[cfg(test)]
mod pairs;

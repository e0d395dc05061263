//! The engine against servers whose behaviour is known.

#[cfg(test)]
mod plans;
#[cfg(test)]
mod planted;

mod failures;
mod loads;
mod protocols;

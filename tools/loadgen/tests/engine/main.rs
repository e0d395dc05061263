//! The engine against servers whose behaviour is known.

#[cfg(test)]
mod plans;
#[cfg(test)]
mod planted;

#[cfg(test)]
mod calls;
#[cfg(test)]
mod early;
#[cfg(test)]
mod events;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod http3;
#[cfg(test)]
mod loads;
#[cfg(test)]
mod protocols;
#[cfg(test)]
mod records;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod websocket;

//! A seeded network in virtual time, under the event loop of Bolide.
//!
//! [`Simulation`] runs one worker and its service on [`SimKernel`], without a socket, a thread or a
//! clock. Clients are small state machines. Everything that a network may do is drawn from one seed: how
//! bytes are cut and delayed, where calls come short or would block, what is reset and what stalls
//! ([`Faults`]). The same seed gives the same run, so that a seed is all that a failure needs to be
//! seen again.
//!
//! Time moves only when neither the worker nor a client has anything to do; a worker that never rests is
//! found out.
//!
//! ```
//! # use bolide_eventloop::{Accepted, After, Service, Turn};
//! # use bolide_simnet::{Simulation, Wire, for_each_seed};
//! # use std::time::{Duration, Instant};
//! # struct Shout;
//! # impl Service for Shout {
//! #     type Session = ();
//! #     type Message = ();
//! #     fn open(&mut self, _: &Accepted, _: Instant) -> Option<((), After)> {
//! #         Some(((), After::IDLE))
//! #     }
//! #     fn turn(&mut self, (): &mut (), turn: &mut Turn<'_, ()>) -> After {
//! #         turn.output.tail().extend(turn.input.unread().to_ascii_uppercase());
//! #         turn.input.consume(turn.input.len());
//! #         if turn.eof { After::FINISHED } else { After::IDLE }
//! #     }
//! #     fn shut_down(&mut self, (): &mut (), _: &mut Turn<'_, ()>) -> After { After::FINISHED }
//! # }
//! for_each_seed(0..8, |seed| {
//!     let mut simulation = Simulation::new(seed, |_| Shout);
//!     let client = simulation.connect(|wire: &mut Wire<'_>| {
//!         if wire.is_new() {
//!             wire.send(b"hello");
//!             wire.finish();
//!         }
//!     });
//!     simulation.run_for(Duration::from_secs(60));
//!     assert_eq!(simulation.received(client), b"HELLO");
//! });
//! ```

mod client;
mod faults;
mod kernel;
mod line;
mod network;
mod random;
mod simulation;

pub use client::{Client, ClientId, Wire};
pub use faults::{Call, Faults, Misfortune};
pub use kernel::{Around, SimKernel, SimListener, SimSocket};
pub use random::Random;
pub use simulation::{Simulation, for_each_seed};

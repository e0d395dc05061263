//! A relay in any network: what it accepts, it connects onward, and every byte passes both ways.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bolide_eventloop::{
    Accepted, After, Agenda, CloseCause, Destination, Limits, Outbound, Service, Token, Turn,
};
use bolide_simnet::{Faults, Random, Simulation, Wire, for_each_seed};
use bytes::Bytes;

const SEEDS: u64 = 256;
const LONG: Duration = Duration::from_secs(3600);
/// Bytes that wait for one side before the other is no longer read.
const PIPE_BYTES: usize = 4096;

fn onward() -> Destination {
    Destination::Inet(SocketAddr::from(([203, 0, 113, 1], 7)))
}

/// Bytes that wait for a session.
#[derive(Default)]
struct Pipe {
    bytes: Vec<u8>,
    eof: bool,
    /// Nothing will take it any more.
    broken: bool,
}

/// Pairs of sessions, which share the worker's memory and wake each other by the agenda.
#[derive(Default)]
struct Relay {
    pipes: BTreeMap<Token, Pipe>,
    /// Session that asked for the connection with this tag.
    asked: BTreeMap<u64, Token>,
    partners: BTreeMap<Token, Token>,
    refused: usize,
}

struct Session {
    token: Token,
    accepted: bool,
    started: bool,
}

impl Service for Relay {
    type Session = Session;
    type Message = ();

    fn open(&mut self, accepted: &Accepted, _: Instant) -> Option<(Session, After)> {
        self.pipes.insert(accepted.token, Pipe::default());
        let session = Session { token: accepted.token, accepted: true, started: false };
        Some((session, After { more: true, ..After::READ }))
    }

    fn connecting(&mut self, outbound: &Outbound, _: Instant) -> Option<(Session, After)> {
        let asker = self.asked.remove(&outbound.tag)?;
        self.pipes.get(&asker)?;
        self.partners.insert(asker, outbound.token);
        self.partners.insert(outbound.token, asker);
        self.pipes.insert(outbound.token, Pipe::default());
        Some((Session { token: outbound.token, accepted: false, started: false }, After::READ))
    }

    fn connect_failed(&mut self, _: u64, error: io::Error, _: &mut Agenda) {
        panic!("the simulated network always begins to connect: {error}");
    }

    fn turn(&mut self, session: &mut Session, turn: &mut Turn<'_, ()>) -> After {
        assert_eq!(session.token, turn.token);
        if turn.connected && !std::mem::replace(&mut session.started, true) {
            if session.accepted {
                self.asked.insert(turn.token.key(), turn.token);
                turn.agenda.connect(onward(), turn.token.key());
            } else if let Some(partner) = self.partners.get(&turn.token) {
                turn.agenda.call(*partner);
            }
        }
        let own = self.pipes.entry(turn.token).or_default();
        if own.broken {
            return After::CLOSED;
        }
        if !own.bytes.is_empty() && turn.output.is_empty() {
            turn.output.push(Bytes::from(std::mem::take(&mut own.bytes)));
            if let Some(partner) = self.partners.get(&turn.token) {
                turn.agenda.call(*partner);
            }
        }
        let (ended, waits) = (own.eof && own.bytes.is_empty(), !own.bytes.is_empty());
        let Some(partner) = self.partners.get(&turn.token).copied() else {
            if ended {
                return After::FINISHED;
            }
            return After { wants_input: false, ..After::READ };
        };
        let pipe = self.pipes.entry(partner).or_default();
        let room = PIPE_BYTES.saturating_sub(pipe.bytes.len()).min(turn.input.len());
        if room > 0 {
            pipe.bytes.extend_from_slice(&turn.input.take(room));
            turn.agenda.call(partner);
        }
        if turn.eof && turn.input.is_empty() && !pipe.eof {
            pipe.eof = true;
            turn.agenda.call(partner);
        }
        if ended && turn.connected {
            return After::FINISHED;
        }
        let full = pipe.bytes.len() >= PIPE_BYTES;
        After { wants_input: !full, more: waits, ..After::READ }
    }

    fn shut_down(&mut self, _: &mut Session, _: &mut Turn<'_, ()>) -> After {
        After::CLOSED
    }

    fn close(&mut self, session: Session, cause: CloseCause, agenda: &mut Agenda) {
        self.refused += usize::from(cause == CloseCause::Failed(io::ErrorKind::ConnectionRefused));
        self.pipes.remove(&session.token);
        if let Some(partner) = self.partners.remove(&session.token) {
            self.partners.remove(&partner);
            let pipe = self.pipes.entry(partner).or_default();
            pipe.eof = true;
            pipe.broken = cause != CloseCause::Finished;
            agenda.call(partner);
        }
    }
}

/// Echoes, and ends when the other side has.
fn far_end() -> impl FnMut(&mut Wire<'_>) {
    let (mut echoed, mut finished) = (0, false);
    move |wire: &mut Wire<'_>| {
        if wire.was_reset() || finished {
            return;
        }
        let news = wire.received()[echoed..].to_vec();
        echoed += news.len();
        wire.send(&news);
        if wire.eof() {
            finished = true;
            wire.finish();
        }
    }
}

fn relay(
    seed: u64,
    faults: Faults,
) -> (Simulation<Relay>, Vec<(bolide_simnet::ClientId, Vec<u8>)>) {
    let mut random = Random::new(seed);
    let mut simulation = Simulation::with(seed, faults, Limits::default(), |_| Relay::default());
    simulation.answer(onward(), far_end);
    let clients = (0..random.within(1..=5))
        .map(|_| {
            let length = [0, 1, 1000, 100_000][random.within(0..=3)];
            let bytes: Vec<u8> = (0..length).map(|_| random.within(0..=255) as u8).collect();
            let sent = bytes.clone();
            let client = simulation.connect(move |wire: &mut Wire<'_>| {
                if wire.is_new() {
                    wire.send(&sent);
                }
                // The relay ends both ways at once, so the end is said last.
                if wire.received().len() == sent.len() && !wire.was_reset() {
                    wire.finish();
                }
            });
            (client, bytes)
        })
        .collect();
    (simulation, clients)
}

#[test]
fn every_byte_passes_both_ways_in_any_rough_network() {
    for_each_seed(0..SEEDS, |seed| {
        let faults = Faults::rough(&mut Random::new(seed));
        let (mut simulation, clients) = relay(seed, faults);
        simulation.run_for(LONG);
        for (client, bytes) in &clients {
            assert!(simulation.received(*client) == *bytes, "not every byte came back");
            assert!(simulation.was_closed(*client), "a pair is left open");
        }
        let stats = simulation.stats();
        assert_eq!(stats.outbound, clients.len() as u64);
        assert_eq!((stats.connects_failed, stats.open, stats.panics), (0, 0, 0));
    });
}

#[test]
fn a_broken_or_refused_way_leaves_nobody_behind() {
    for_each_seed(0..SEEDS, |seed| {
        let faults = Faults::hostile(&mut Random::new(seed));
        let (mut simulation, clients) = relay(seed, faults);
        simulation.run_for(LONG);
        for (client, bytes) in &clients {
            let received = simulation.received(*client);
            assert!(bytes.starts_with(&received), "a wrong byte came back");
        }
        let stats = simulation.stats();
        assert_eq!(stats.panics, 0);
        // Those that were given up before they were established count as well.
        assert!(stats.connects_failed >= simulation.service().refused as u64);
        simulation.shut_down(Duration::from_secs(1));
        assert_eq!(simulation.stats().open, 0);
    });
}

#[test]
fn where_nobody_answers_the_session_learns_that_it_was_refused() {
    let mut simulation =
        Simulation::with(1, Faults::none(), Limits::default(), |_| Relay::default());
    let client = simulation.connect(|_: &mut Wire<'_>| {});
    simulation.run_for(LONG);
    assert_eq!(simulation.service().refused, 1);
    assert_eq!(simulation.stats().connects_failed, 1);
    assert!(simulation.was_closed(client));
}

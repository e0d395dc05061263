//! An echo in any network: every byte comes back, or the connection fails cleanly.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_eventloop::{Accepted, After, Agenda, CloseCause, Limits, Service, Token, Turn, limits};
use bolide_simnet::{Faults, Misfortune, Random, Simulation, Wire, for_each_seed};
use bytes::Bytes;

const SEEDS: u64 = 256;
const LONG: Duration = Duration::from_secs(3600);
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Echoes; closes what is silent for a minute.
#[derive(Default)]
struct Echo {
    /// True if a session with nothing to echo may be shed.
    may_be_shed: bool,
    open: BTreeSet<Token>,
    timed_out: Vec<(Instant, Instant)>,
    closed: Vec<CloseCause>,
}

struct Session {
    token: Token,
    deadline: Instant,
    ending: bool,
    mail: Vec<u8>,
}

impl Service for Echo {
    type Session = Session;
    type Message = Vec<u8>;

    fn open(&mut self, accepted: &Accepted, now: Instant) -> Option<(Session, After)> {
        assert!(self.open.insert(accepted.token));
        let deadline = now + IDLE_TIMEOUT;
        let session = Session { token: accepted.token, deadline, ending: false, mail: Vec::new() };
        let after = After { idle: self.may_be_shed, ..After::READ };
        Some((session, after.by(Some(deadline))))
    }

    fn turn(&mut self, session: &mut Session, turn: &mut Turn<'_, Vec<u8>>) -> After {
        assert_eq!(session.token, turn.token);
        turn.output.push(Bytes::from(std::mem::take(&mut session.mail)));
        // While output waits, it is the peer who is slow to read.
        if !turn.input.is_empty() || !turn.output.is_empty() {
            session.deadline = turn.now + IDLE_TIMEOUT;
        } else if turn.now >= session.deadline {
            self.timed_out.push((session.deadline, turn.now));
            return After::FINISHED;
        }
        let room = turn.output_limit.saturating_sub(turn.output.len());
        let bytes = turn.input.take(turn.input.len().min(room));
        turn.output.push(bytes);
        let full = turn.output.len() >= turn.output_limit;
        if turn.input.is_empty() && (turn.eof || session.ending) {
            return After::FINISHED;
        }
        let idle = self.may_be_shed && turn.input.is_empty();
        After { wants_input: !full, more: full, idle, ..After::READ }.by(Some(session.deadline))
    }

    fn message(
        &mut self,
        session: &mut Session,
        message: Vec<u8>,
        token: Token,
        agenda: &mut Agenda,
    ) {
        session.mail.extend(message);
        agenda.call(token);
    }

    fn shut_down(&mut self, session: &mut Session, turn: &mut Turn<'_, Vec<u8>>) -> After {
        session.ending = true;
        self.turn(session, turn)
    }

    fn close(&mut self, session: Session, cause: CloseCause, _: &mut Agenda) {
        assert!(self.open.remove(&session.token));
        self.closed.push(cause);
    }
}

/// Sends `bytes` in pieces, with pauses, then its end.
fn talker(seed: u64, bytes: Vec<u8>) -> impl FnMut(&mut Wire<'_>) {
    let mut random = Random::new(seed);
    let mut sent = 0;
    let mut next = Duration::ZERO;
    move |wire| {
        if sent == bytes.len() || wire.was_reset() || wire.now() < next {
            return;
        }
        let piece = random.within(1..=bytes.len()).min(bytes.len() - sent);
        wire.send(&bytes[sent..sent + piece]);
        sent += piece;
        if sent == bytes.len() {
            wire.finish();
        }
        let pause = Duration::from_millis(random.within(0..=2000) as u64);
        next = wire.now() + pause;
        wire.wake_after(pause);
    }
}

/// Five talkers of different lengths; returns what each sends.
fn talk(simulation: &mut Simulation<Echo>, seed: u64) -> Vec<(bolide_simnet::ClientId, Vec<u8>)> {
    let mut random = Random::new(!seed);
    let mut talks = Vec::new();
    for number in 0..5 {
        let length = [1, 10, 300, 3000, 12_000][random.within(0..=4)];
        let bytes = random.bytes(length);
        let delay = Duration::from_millis(random.within(0..=500) as u64);
        let client = talker(seed + number, bytes.clone());
        talks.push((simulation.connect_after(delay, 0, client), bytes));
    }
    talks
}

/// Small blocks and passes, so that the rare paths are walked often.
fn cramped(random: &mut Random) -> Limits {
    Limits {
        turns: limits::Turns {
            block_bytes: random.within(64..=5000),
            pass_bytes: random.within(100..=10_000),
            pass_reads_count: random.within(1..=4) as u32,
            pass_calls_count: random.within(1..=4) as u32,
            accepts_per_turn_count: random.within(1..=3) as u32,
            ..limits::Turns::DEFAULT
        },
        unsent: limits::Unsent {
            unsent_start_bytes: random.within(200..=20_000),
            unsent_min_bytes: 100,
            ..limits::Unsent::DEFAULT
        },
        ..Limits::default()
    }
}

#[test]
fn every_byte_comes_back_through_a_rough_network() {
    for_each_seed(0..SEEDS, |seed| {
        let mut random = Random::new(seed);
        let faults = Faults::rough(&mut random);
        let limits = if seed % 2 == 0 { Limits::default() } else { cramped(&mut random) };
        // The slowest networks carry less than a reader has to take.
        let limits = Limits {
            closing: limits::Closing { close_stall_bytes: 1, ..limits.closing },
            ..limits
        };
        let mut simulation = Simulation::with(seed, faults, limits, |_| Echo::default());
        let talks = talk(&mut simulation, seed);
        simulation.run_until(LONG, |simulation| simulation.stats().closed() == 5);
        simulation.run_for(Duration::from_secs(60));
        for (client, bytes) in talks {
            let received = simulation.received(client);
            assert!(received == bytes, "{} of {} bytes", received.len(), bytes.len());
            assert!(simulation.saw_eof(client) && !simulation.was_reset(client));
        }
        let stats = simulation.stats();
        assert_eq!((stats.closed.finished, stats.open, stats.panics), (5, 0, 0), "{stats:?}");
        assert_eq!(stats.bytes_received, stats.bytes_sent);
        assert!(simulation.service().open.is_empty());
    });
}

#[test]
fn a_hostile_network_costs_connections_and_nothing_else() {
    let failed = AtomicU64::new(0);
    for_each_seed(0..SEEDS, |seed| {
        let mut random = Random::new(seed);
        let faults = Faults::hostile(&mut random);
        let limits = if seed % 2 == 0 { Limits::default() } else { cramped(&mut random) };
        let mut simulation = Simulation::with(seed, faults, limits, |_| Echo::default());
        let talks = talk(&mut simulation, seed);
        simulation.run_until(LONG, |simulation| simulation.stats().closed() == 5);
        simulation.run_for(Duration::from_secs(60));
        for (client, bytes) in talks {
            let received = simulation.received(client);
            assert!(bytes.starts_with(&received));
            assert!(received == bytes || simulation.was_reset(client));
        }
        let stats = simulation.stats();
        assert_eq!(stats.closed.finished + stats.closed.failed, 5, "{stats:?}");
        assert_eq!((stats.open, stats.panics), (0, 0));
        failed.fetch_add(stats.closed.failed, Ordering::Relaxed);
    });
    let failed = failed.into_inner();
    if std::env::var("SIMNET_SEED").is_err() {
        assert!(failed > 50, "only {failed} connections failed: the network is not hostile");
    }
}

#[test]
fn a_seed_replays() {
    for_each_seed(0..20, |seed| {
        let run = || {
            let faults = Faults::hostile(&mut Random::new(seed));
            let mut simulation =
                Simulation::with(seed, faults, Limits::default(), |_| Echo::default());
            talk(&mut simulation, seed);
            simulation.run_for(Duration::from_secs(300));
            (simulation.digest(), simulation.calls(), simulation.stats(), simulation.now())
        };
        assert_eq!(run(), run());
    });
}

#[test]
fn every_single_call_may_be_the_one_that_goes_wrong() {
    let run = |fault: Option<(u64, Misfortune)>| {
        let faults = Faults { at_call: fault, buffer_bytes: 4000, ..Faults::none() };
        let mut simulation = Simulation::with(7, faults, Limits::default(), |_| Echo::default());
        let bytes = Random::new(1).bytes(100_000);
        let client = simulation.connect(talker(1, bytes.clone()));
        simulation.run_until(LONG, |simulation| simulation.stats().closed() == 1);
        simulation.run_for(Duration::from_secs(60));
        assert_eq!(simulation.stats().open, 0, "{fault:?}");
        let whole = simulation.received(client) == bytes;
        let reset = fault.is_some_and(|(_, misfortune)| misfortune == Misfortune::Reset);
        assert!(whole || reset && simulation.was_reset(client), "{fault:?}");
        simulation.calls()
    };
    let calls = run(None);
    assert!(calls > 40);
    for number in 0..calls {
        for misfortune in [Misfortune::Short, Misfortune::WouldBlock, Misfortune::Reset] {
            run(Some((number, misfortune)));
        }
    }
    for every in 2..20 {
        for misfortune in [Misfortune::Short, Misfortune::WouldBlock] {
            let faults = Faults { every_call: Some((every, misfortune)), ..Faults::none() };
            let mut simulation =
                Simulation::with(every, faults, Limits::default(), |_| Echo::default());
            for (client, bytes) in talk(&mut simulation, every) {
                simulation.run_until(LONG, |simulation| simulation.received(client) == bytes);
                assert!(simulation.received(client) == bytes, "every {every} {misfortune:?}");
            }
        }
    }
}

#[test]
fn deadlines_come_in_order_and_never_early() {
    for_each_seed(0..64, |seed| {
        let mut simulation = Simulation::new(seed, |_| Echo::default());
        for number in 0..20 {
            let client = |wire: &mut Wire<'_>| {
                if wire.is_new() {
                    wire.send(b"hello");
                }
                if wire.eof() {
                    wire.finish();
                }
            };
            simulation.connect_after(Duration::from_millis(97 * number), 0, client);
        }
        simulation.run_until(LONG, |simulation| simulation.stats().closed() == 20);
        let timed_out = &simulation.service().timed_out;
        assert_eq!(timed_out.len(), 20);
        // All deadlines of one tick may come in any order.
        let tick = Duration::from_millis(16);
        for (deadline, called) in timed_out {
            assert!(called >= deadline && *called <= *deadline + tick);
        }
        assert!(timed_out.windows(2).all(|pair| pair[0].0 <= pair[1].0 + tick));
        assert!(timed_out.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    });
}

#[test]
fn descriptor_exhaustion_pauses_and_never_spins() {
    // Every second accept fails, most of them for lack of descriptors.
    let faults = Faults { accept_failure: 2, ..Faults::none() };
    let mut simulation = Simulation::with(3, faults, Limits::default(), |_| Echo {
        may_be_shed: true,
        ..Echo::default()
    });
    let clients: Vec<_> = (0..50)
        .map(|number| {
            let bytes = vec![number as u8; 100];
            (simulation.connect(talker(number, bytes.clone())), bytes)
        })
        .collect();
    simulation.run_for(Duration::from_secs(60));
    // Some are shed to make room, and told so by an end; none is left waiting.
    let stats = simulation.stats();
    assert!(stats.work.accept_pauses > 5, "{stats:?}");
    assert_eq!((stats.accepted, stats.open), (50, 0), "{stats:?}");
    assert!(stats.work.waits < 5000, "{stats:?}");
    for (client, bytes) in clients {
        assert!(bytes.starts_with(&simulation.received(client)));
        assert!(simulation.was_closed(client));
    }
}

#[test]
fn tcp_window_closed_stops_the_worker_from_reading() {
    let faults = Faults { buffer_bytes: 10_000, ..Faults::none() };
    let limits = Limits {
        unsent: limits::Unsent { unsent_start_bytes: 5000, ..limits::Unsent::DEFAULT },
        ..Limits::default()
    };
    let mut simulation = Simulation::with(1, faults, limits, |_| Echo::default());
    let bytes = Random::new(1).bytes(1_000_000);
    let sent = bytes.clone();
    let client = simulation.connect(move |wire: &mut Wire<'_>| {
        if wire.is_new() {
            wire.read(false);
            wire.send(&sent);
            wire.wake_after(Duration::from_secs(30));
        } else if wire.now() >= Duration::from_secs(30) {
            wire.read(true);
        }
    });
    simulation.run_for(Duration::from_secs(29));
    let held = simulation.stats().bytes_received;
    assert!(held < 1_000_000 / 2, "the worker read {held} bytes that it could not send");
    simulation.run_until(LONG, |simulation| simulation.received(client).len() == bytes.len());
    assert!(simulation.received(client) == bytes);
}

#[test]
fn a_shutdown_ends_in_any_network() {
    for_each_seed(0..SEEDS, |seed| {
        let faults = Faults::hostile(&mut Random::new(seed));
        let mut simulation = Simulation::with(seed, faults, Limits::default(), |_| Echo::default());
        talk(&mut simulation, seed);
        simulation.run_for(Duration::from_millis(seed * 10));
        simulation.shut_down(Duration::from_secs(seed % 20));
        let stats = simulation.stats();
        assert_eq!((stats.open, stats.accepted), (0, stats.closed()));
        assert!(simulation.service().open.is_empty());
    });
}

#[test]
fn mail_finds_its_session_or_comes_back() {
    let mut simulation =
        Simulation::with(1, Faults::none(), Limits::default(), |_| Echo::default());
    let client = simulation.connect(|_: &mut Wire<'_>| {});
    simulation.run_until(LONG, |simulation| simulation.stats().accepted == 1);
    let token = *simulation.service().open.first().expect("it is open");
    simulation.mailbox().send(token, b"letter".to_vec()).expect("the worker runs");
    assert!(simulation.run_until(LONG, |simulation| simulation.received(client) == b"letter"));
}

#[test]
fn a_reader_of_single_bytes_does_not_keep_its_last_response() {
    let faults = Faults { buffer_bytes: 1, ..Faults::none() };
    let mut simulation = Simulation::with(1, faults, Limits::default(), |_| Echo::default());
    let mut due = Duration::ZERO;
    let client = simulation.connect(move |wire: &mut Wire<'_>| {
        if wire.is_new() {
            wire.send(&[7; 1000]);
            wire.finish();
        }
        let reads = wire.now() >= due;
        wire.read(reads);
        if reads {
            due = wire.now() + Duration::from_secs(10);
            wire.wake_after(Duration::from_secs(10));
        }
    });
    let stall = Limits::default().closing.close_stall;
    simulation.run_until(3 * stall, |simulation| simulation.was_closed(client));
    assert!(simulation.was_closed(client), "after {:?}", simulation.now());
    assert_eq!(simulation.service().closed, [CloseCause::Stalled]);
}

#[test]
fn what_comes_after_the_last_response_is_discarded_while_enough_of_it_comes() {
    for (second_bytes, is_enough) in [(16_000, true), (200, false)] {
        let mut simulation =
            Simulation::with(1, Faults::none(), Limits::default(), |_| Echo::default());
        let mut seconds = 0..30;
        let mut due = Duration::ZERO;
        // An upload that goes on when the server, to which the client had been silent for too long, has ended its side.
        let client = simulation.connect(move |wire: &mut Wire<'_>| {
            if !wire.eof() || wire.was_reset() || wire.now() < due {
                return;
            }
            match seconds.next() {
                Some(_) => wire.send(&vec![7; second_bytes]),
                None => wire.finish(),
            }
            due = wire.now() + Duration::from_secs(1);
            wire.wake_after(Duration::from_secs(1));
        });
        simulation.run_until(LONG, |simulation| simulation.was_closed(client));
        let is_whole = simulation.now() >= IDLE_TIMEOUT + Duration::from_secs(30);
        assert_eq!(is_whole, is_enough, "after {:?}", simulation.now());
        assert_eq!(simulation.service().closed, [CloseCause::Finished]);
    }
}

//! Services on a simulated network: futures that wait, bodies both ways, wakes from inside and outside
//! the worker, any cuts, delays, short calls and resets.

mod clients;
mod held;
mod world;

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bolide_server::{Router, worker_service};
use bolide_simnet::{ClientId, Faults, Misfortune, Random, Simulation, Wire, for_each_seed};
use tokio::runtime::Builder;

use crate::default_limits;
use crate::handler::{Recipe, TowerHandler};
use clients::{Asked, Multiplexer, Responses, pipeline};
use world::World;

const SEEDS: u64 = 256;

/// Longer than every deadline of a server.
const LONG: Duration = Duration::from_secs(3600);

/// How often a thread outside the worker lets those go who wait.
const TICK: Duration = Duration::from_millis(50);

/// The day that RFC 9110 §5.6.7 gives as its example.
fn wall_clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

/// Results of the clients of a run.
struct Run {
    pipelines: Vec<(Vec<u8>, Vec<u8>)>,
    streams: Vec<(Vec<Asked>, Responses)>,
    world: Rc<World>,
    digest: u64,
    calls: u64,
}

fn run(seed: u64, faults: Faults, clients: u64) -> Run {
    let runtime = Builder::new_current_thread().build().expect("a runtime that nobody drives");
    let world = Rc::new(World::default());
    let recipe = Recipe {
        make: {
            let world = Rc::clone(&world);
            move || world::service(Rc::clone(&world))
        },
        runtime: runtime.handle().clone(),
        finish: None,
        extend: Vec::new(),
        informs: seed.is_multiple_of(2),
        body_bytes_max: u64::MAX,
    };
    let router = Router::new().fallback(TowerHandler::new(recipe));
    let make = |_| worker_service(router, default_limits(), wall_clock, Instant::now());
    let mut simulation = Simulation::with(seed, faults, Default::default(), make);
    let (mut pipelines, mut streams) = (Vec::new(), Vec::new());
    for number in 0..clients {
        let (client, expected) = pipeline(seed * 31 + number);
        pipelines.push((simulation.connect(client), expected));
        let responses = Responses::default();
        let mut client = Multiplexer::new(seed * 37 + number, Rc::clone(&responses));
        let asked = client.asked().to_vec();
        simulation.connect(move |wire: &mut Wire<'_>| client.advance(wire));
        streams.push((asked, responses));
    }
    // Rarer and rarer, until none is left that could begin to wait.
    let mut tick = TICK;
    while simulation.now() < LONG {
        simulation.run_for(tick);
        world.release_all();
        tick += TICK / 10;
    }
    simulation.run_for(LONG);
    let stats = simulation.stats();
    assert_eq!((stats.panics, stats.open), (0, 0), "{stats:?}");
    assert_eq!(world.futures(), 0, "a future outlives its exchange");
    let received = |(client, expected): (ClientId, _)| (simulation.received(client), expected);
    Run {
        pipelines: pipelines.into_iter().map(received).collect(),
        streams,
        world,
        digest: simulation.digest(),
        calls: simulation.calls(),
    }
}

fn assert_complete(run: &Run) {
    for (received, expected) in &run.pipelines {
        let (got, all) = (received.len(), expected.len());
        assert!(received == expected, "a pipeline differs: {got} of {all} bytes");
    }
    for (asked, responses) in &run.streams {
        for (asked, (response, ended)) in asked.iter().zip(responses.borrow().iter()) {
            let (got, all) = (response.len(), asked.response.len());
            assert!(*ended && *response == asked.response, "{}: {got} of {all} bytes", asked.path);
        }
    }
}

/// No slower than what a server takes for a stalled reader.
fn rough(seed: u64) -> Faults {
    let rough = Faults::rough(&mut Random::new(seed));
    Faults {
        stall: 0,
        delay: Duration::from_micros(50)..=Duration::from_millis(20),
        buffer_bytes: rough.buffer_bytes.max(5000),
        ..rough
    }
}

#[test]
fn no_wake_is_lost_in_a_rough_network() {
    let waits = AtomicUsize::new(0);
    for_each_seed(0..SEEDS, |seed| {
        let run = run(seed, rough(seed), 3);
        assert_complete(&run);
        waits.fetch_add(run.world.waits(), Ordering::Relaxed);
    });
    assert!(waits.into_inner() > 0, "nobody has waited");
}

#[test]
fn a_hostile_network_costs_answers_and_leaves_no_future_behind() {
    for_each_seed(0..SEEDS, |seed| {
        let run = run(seed, Faults::hostile(&mut Random::new(seed)), 3);
        for (received, expected) in &run.pipelines {
            let timeout = received.windows(13).position(|part| part == b"HTTP/1.1 408 ");
            let responses = &received[..timeout.unwrap_or(received.len())];
            assert!(expected.starts_with(responses), "a pipeline's bytes differ");
        }
        for (asked, responses) in &run.streams {
            for (asked, (response, ended)) in asked.iter().zip(responses.borrow().iter()) {
                assert!(asked.response.starts_with(response), "{}: other bytes", asked.path);
                assert!(!*ended || *response == asked.response, "{}: a short response", asked.path);
            }
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for_each_seed(0..16, |seed| {
        let once = || {
            let run = run(seed, Faults::hostile(&mut Random::new(seed)), 3);
            (run.digest, run.calls, run.world.waits())
        };
        assert_eq!(once(), once());
    });
}

#[test]
fn any_one_call_may_come_short_or_have_to_wait() {
    let faulty = |fault| {
        let faults = Faults { at_call: fault, buffer_bytes: 4000, ..Faults::none() };
        let run = run(3, faults, 1);
        assert_complete(&run);
        run.calls
    };
    let calls = faulty(None);
    assert!(calls > 15, "{calls}");
    for call in 0..calls {
        for misfortune in [Misfortune::Short, Misfortune::WouldBlock] {
            faulty(Some((call, misfortune)));
        }
    }
}

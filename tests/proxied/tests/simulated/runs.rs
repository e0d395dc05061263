//! 256 seeds of any cuts, delays, short calls and resets, on both sides of the proxy.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use bolide_connection::{Connection, Limits as ConnectionLimits};
use bolide_eventloop::{Limits as LoopLimits, Stats};
use bolide_reverse_proxy::{ProxyLimits, ProxySettings, ReverseProxy, Upstream, UpstreamStats};
use bolide_semantics::Role;
use bolide_server::{Destination, Limits, Method, Router, StatusCode, worker_service};
use bolide_simnet::{Faults, Random, Simulation, Wire, for_each_seed};

use crate::party::Party;
use crate::roles::{Asked, Asker, Fate, Origin, Requests};

const SEEDS: u64 = 256;

/// Longer than every deadline.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

const HTTP1: &str = "203.0.113.1:9000";
const HTTP2: &str = "203.0.113.2:9000";

struct Run {
    requests: Vec<Requests>,
    stats: Stats,
    upstreams: Vec<UpstreamStats>,
    digest: u64,
}

pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

fn asked(random: &mut Random, fates: &[Fate]) -> Asked {
    // Few fill the first window of a stream: a byte in a segment of its own takes as long as a long segment.
    let length = [0, 0, 1, 1, 100, 100, 1_000, 1_000, 5_000, 5_000, 65_536, 70_000];
    let length = length[random.within(0..=11)];
    let method = [Method::GET, Method::PUT, Method::POST][random.within(0..=2)].clone();
    let body = if method == Method::GET { Vec::new() } else { random.bytes(length) };
    let fate = fates[random.within(0..=fates.len() - 1)];
    Asked::new(method, fate, body, random.within(0..=1) == 0)
}

fn settings(seed: u64) -> ProxySettings {
    let urls = [format!("http://{HTTP1}"), format!("h2c://{HTTP2}")];
    let urls = match seed % 3 {
        0 => &urls[..1],
        1 => &urls[1..],
        _ => &urls[..],
    };
    let upstreams = urls.iter().map(|url| Upstream::parse(url).expect("an upstream")).collect();
    // Few connections, so that requests wait for one.
    let limits = ProxyLimits { connections_count: 2, ..ProxyLimits::default() };
    let settings = ProxySettings::new(upstreams).expect("settings").limits(limits);
    // A random name would make the bytes of each run others.
    settings.pseudonym("bolide").expect("a name")
}

fn run(seed: u64, faults: Faults, fates: &[Fate]) -> Run {
    let start = Instant::now();
    let settings = settings(seed);
    let routed = settings.clone();
    let make = move |_| {
        let router = Router::new().fallback(ReverseProxy::new(&routed));
        worker_service(router, Limits::default(), wall_clock, start)
    };
    let mut simulation = Simulation::with(seed, faults, LoopLimits::default(), make);
    for address in [HTTP1, HTTP2] {
        let to = Destination::Inet(address.parse().expect("an address"));
        simulation.answer(to, move || {
            let connection = Connection::new(Role::Server, None, start);
            let mut party = Party::new(connection, start, Origin::default());
            move |wire: &mut Wire<'_>| party.advance(wire)
        });
    }
    let mut random = Random::new(seed * 31);
    let mut all = Vec::new();
    for number in 0..4 {
        let count = random.within(1..=6);
        let requests = (0..count).map(|_| asked(&mut random, fates)).collect();
        let requests: Requests = Rc::new(RefCell::new(requests));
        let limits = ConnectionLimits::default();
        let connection = if number % 2 == 0 {
            Connection::http1(&limits, start)
        } else {
            Connection::with_prior_knowledge(&limits, start)
        };
        let mut party = Party::new(connection, start, Asker::new(&requests));
        simulation.connect(move |wire: &mut Wire<'_>| party.advance(wire));
        all.push(requests);
    }
    simulation.run_for(LONG);
    let stats = simulation.stats();
    assert_eq!(stats.panics, 0);
    assert_eq!(stats.open, 0, "a connection outlives every deadline");
    Run { requests: all, stats, upstreams: settings.stats(), digest: simulation.digest() }
}

/// No slower than what a server takes for a stalled reader, and always a descriptor for who connects.
fn rough(seed: u64) -> Faults {
    let rough = Faults::rough(&mut Random::new(seed));
    Faults {
        stall: 0,
        delay: Duration::from_micros(50)..=Duration::from_millis(20),
        buffer_bytes: rough.buffer_bytes.max(5000),
        accept_failure: 0,
        ..rough
    }
}

/// Whatever has come is what was asked for, or says that it is not.
fn assert_honest(asked: &Asked) {
    match asked.status {
        Some(StatusCode::OK) => {
            assert!(asked.body.starts_with(&asked.response), "other bytes: {:?}", asked.fate);
            assert!(!asked.ended || asked.response == asked.body, "a short response looks whole");
            assert!(!asked.ended || asked.fate == Fate::Echo, "{:?} looks whole", asked.fate);
        }
        Some(status) => assert!(status.is_server_error() || status.is_client_error(), "{status}"),
        None => assert!(!asked.ended),
    }
}

#[test]
fn every_response_arrives_through_a_rough_network() {
    for_each_seed(0..SEEDS, |seed| {
        let Run { requests, stats, upstreams, .. } = run(seed, rough(seed), &[Fate::Echo]);
        for asked in requests.iter().flat_map(|requests| requests.borrow().clone()) {
            let (got, all) = (asked.response.len(), asked.body.len());
            assert_eq!(asked.status, Some(StatusCode::OK), "{stats:?} {upstreams:?}");
            assert!(asked.ended, "{got} of {all} bytes: {stats:?} {upstreams:?}");
            assert_honest(&asked);
        }
        assert_eq!(upstreams.iter().map(|one| one.failures).sum::<u64>(), 0, "{upstreams:?}");
    });
}

#[test]
fn an_upstream_that_dies_before_in_and_after_answers_harms_nobody_else() {
    let fates = [Fate::Echo, Fate::Echo, Fate::DieAtHead, Fate::DieInBody];
    for_each_seed(0..SEEDS, |seed| {
        let Run { requests, .. } = run(seed, rough(seed), &fates);
        for asked in requests.iter().flat_map(|requests| requests.borrow().clone()) {
            assert_honest(&asked);
        }
    });
}

#[test]
fn no_wrong_byte_through_a_hostile_network() {
    let fates = [Fate::Echo, Fate::Echo, Fate::Echo, Fate::DieAtHead, Fate::DieInBody];
    for_each_seed(0..SEEDS, |seed| {
        let hostile = Faults::hostile(&mut Random::new(seed));
        let Run { requests, .. } = run(seed, hostile, &fates);
        for asked in requests.iter().flat_map(|requests| requests.borrow().clone()) {
            assert_honest(&asked);
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for_each_seed(0..16, |seed| {
        for fates in [&[Fate::Echo][..], &[Fate::Echo, Fate::DieAtHead, Fate::DieInBody]] {
            let digest = || run(seed, Faults::hostile(&mut Random::new(seed)), fates).digest;
            assert_eq!(digest(), digest(), "{fates:?}");
        }
    });
}

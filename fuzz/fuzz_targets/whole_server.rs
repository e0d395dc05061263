//! A server with the measurement endpoints and up to four clients of either version on one worker.

#![no_main]

use std::time::{Instant, SystemTime};

use bolide_eventloop::Limits as LoopLimits;
use bolide_fuzz::{Party, Script, network, run};
use bolide_server::{Limits, Router, worker_service};
use bolide_simnet::Simulation;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|scripts: Vec<Script>| {
    let Some(first) = scripts.first() else { return };
    let start = Instant::now();
    let faults = network(first.piece);
    let mut simulation = Simulation::with(1, faults, LoopLimits::default(), |_| {
        let router = bolide_measurement::routes(Router::new());
        worker_service(router, Limits::default(), SystemTime::now, start)
    });
    for script in scripts.into_iter().take(4) {
        simulation.connect(Party::new(script, true));
    }
    run(simulation);
});

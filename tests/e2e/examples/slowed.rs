//! A server that takes more CPU time for a request than it needs, for races whose result is known: `slowed PORT NS`.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use bolide::{Router, Server};

/// Steps by which the loop is timed when the program starts.
const TIMED_STEPS: u64 = 50_000_000;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Some(Ok(port)), Some(Ok(ns)), None) = (words.next(), words.next(), words.next()) else {
        eprintln!("slowed PORT NS: the port to listen on, and what each request takes more, in ns");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    work(TIMED_STEPS);
    let steps_per_ns = TIMED_STEPS as f64 / started.elapsed().as_nanos() as f64;
    let steps = (ns as f64 * steps_per_ns) as u64;
    let routes = move || {
        Router::new().get("/ping", move |_| {
            work(steps);
            "pong"
        })
    };
    match Server::new().workers(1).http(&format!("127.0.0.1:{port}")).run(routes) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("slowed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// So many steps that nothing can leave out.
fn work(steps: u64) {
    for step in 0..steps {
        black_box(step);
    }
}

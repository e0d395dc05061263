//! A few requests from this process: tests of races need no generator on the machine.

use std::time::Instant;

use super::{Figures, Job};
use crate::interrupt::Interrupt;
use crate::process::Reading;
use crate::verify::{Ask, Line, loaded_body};

const REQUESTS_COUNT: u64 = 200;

pub(super) fn run(
    job: &Job<'_>,
    interrupt: &Interrupt,
    middle: &mut dyn FnMut(),
) -> Result<Figures, String> {
    let (begin, started) = (Reading::of(&job.server), Instant::now());
    let expected_bytes = loaded_body(job.cell).len();
    let (path, fields) = (job.path.clone(), Vec::new());
    let ask = Ask { path, body: None, pieces: 1, fields, expected_bytes };
    let mut line = Line::open(job.address, job.cell.protocol)?;
    for number in 0..REQUESTS_COUNT {
        interrupt.check()?;
        line.ask(&ask)?;
        if number == REQUESTS_COUNT / 2 {
            middle();
        }
    }
    let (used, _) = Reading::of(&job.server).since(&begin);
    Ok(Figures {
        completed: REQUESTS_COUNT,
        rate: REQUESTS_COUNT as f64 / started.elapsed().as_secs_f64(),
        cpu_us: used.as_secs_f64() * 1e6 / REQUESTS_COUNT as f64,
        ..Figures::default()
    })
}

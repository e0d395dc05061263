//! A few requests from this process: tests of races need no generator on the machine. A rate is met without a clock.

use std::collections::BTreeMap;
use std::time::Instant;

use fastrand::Rng;
use http::StatusCode;

use super::{Figures, Job};
use crate::interrupt::Interrupt;
use crate::requests::filled;
use crate::verify::{Ask, OpenConnection, difference};

const REQUESTS_COUNT: u64 = 500;

pub(super) fn run(
    job: &Job<'_>,
    interrupt: &Interrupt,
    middle: &mut dyn FnMut(),
) -> Result<Figures, String> {
    let (begin, started) = (job.server_reading(), Instant::now());
    let mut connection = OpenConnection::open(job.address, job.cell.protocol)?;
    let mut random = Rng::with_seed(job.seed);
    let mut failures = BTreeMap::new();
    let mut connections = 1;
    for number in 0..REQUESTS_COUNT {
        interrupt.check()?;
        let exchange = &job.exchanges[random.usize(..job.exchanges.len())];
        let path = filled(&exchange.path, 0, number as usize);
        let expected_bytes = exchange.expected.len();
        let (body, fields) = (exchange.body.clone(), Vec::new());
        let response = match connection.ask(&Ask { path, body, pieces: 1, fields, expected_bytes })
        {
            Err(error) if connection.is_broken => return Err(error),
            Err(_) => {
                *failures.entry("reset".to_owned()).or_default() += 1;
                connection = OpenConnection::open(job.address, job.cell.protocol)?;
                continue;
            }
            Ok(response) => response,
        };
        let kind = if response.status != StatusCode::OK {
            Some("status")
        } else if exchange
            .fields
            .iter()
            .any(|(name, value)| response.field(name) != Some(value.as_bytes()))
        {
            Some("fields")
        } else {
            difference(&response.body, &exchange.expected).map(|_| "body")
        };
        if let Some(kind) = kind {
            *failures.entry(kind.to_owned()).or_default() += 1;
        }
        if response.fields.contains(&("connection".to_owned(), b"close".to_vec())) {
            connection = OpenConnection::open(job.address, job.cell.protocol)?;
            connections += 1;
        }
        if number == REQUESTS_COUNT / 2 {
            middle();
        }
    }
    let (used, _) = job.server_reading().since(&begin);
    Ok(Figures {
        completed: REQUESTS_COUNT,
        failed: failures.values().sum(),
        failures,
        connections,
        rate: job.rate.unwrap_or_else(|| REQUESTS_COUNT as f64 / started.elapsed().as_secs_f64()),
        cpu_us: used.as_secs_f64() * 1e6 / REQUESTS_COUNT as f64,
        ..Figures::default()
    })
}

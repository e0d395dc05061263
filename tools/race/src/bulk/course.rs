//! The rounds: a lab, a server in it, a client, one transfer after the other in random order.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use bolide_netlab::shape::Shape;
use bolide_semantics::in_lines;
use fastrand::Rng;

use super::outcome::{Point, Results, Row};
use super::prepared::{Gathered, Prepared, gather, versions};
use super::stack::{Direction, Stack};
use super::stage::Stage;
use super::sweep::{RTT_RATE_BITS_PER_SECOND, RTTS_MS, Sweep};
use super::{Arguments, show};

/// Payload of a transfer of the RTT sweep, at most: two seconds of its rate.
const RTT_BYTES_MAX: u64 = 128 << 20;

/// Measures everything. `Ok(false)`: a transfer failed.
pub(super) fn run(arguments: &Arguments) -> Result<bool, String> {
    let setting = &arguments.setting;
    let prepared = Prepared::new(setting)?;
    if arguments.bytes == 0 {
        return Err("--bytes 0: nothing would be measured".to_owned());
    }
    let Gathered { present, stacks, skipped } = gather(&setting.only, &prepared)?;
    let ground = prepared.ground(setting);
    let mut results = Results {
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
        machine: prepared.machine(),
        bytes: arguments.bytes,
        rounds: arguments.rounds,
        seed: setting.seed,
        congestion_control: setting.congestion.clone(),
        rows: rows(&stacks),
        sweeps: Vec::new(),
        versions: versions(&present, &stacks),
        skipped,
    };
    let stage = |shape| Stage::up(setting, shape, &present, &ground, &prepared);
    let plain = stage(Shape::default())?;
    let told = rounds(&plain, arguments, &mut results.rows)
        .and_then(|()| sweeps(&plain, arguments, &stacks, &mut results.sweeps));
    plain.down()?;
    let told = told.and_then(|()| round_trips(&stage, arguments, &stacks, &mut results.sweeps));
    // What was measured is worth having also when the rest was interrupted.
    out(&show::tables(&results))?;
    let page = show::write(&arguments.out, &results)?;
    eprintln!("{}", page.display());
    told?;
    let failed = |failed: &Option<String>| failed.is_some();
    Ok(!results.rows.iter().any(|row| failed(&row.failed))
        && !results.sweeps.iter().any(|point| failed(&point.failed)))
}

fn out(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
}

fn rows(stacks: &[Stack]) -> Vec<Row> {
    let row = |direction| {
        stacks.iter().filter(move |stack| stack.goes(direction)).map(move |stack| Row {
            stack: stack.clone(),
            direction,
            samples: Vec::new(),
            failed: None,
        })
    };
    Direction::ALL.into_iter().flat_map(row).collect()
}

/// Every row once in each round; a row that has failed is left out from then on.
fn rounds(stage: &Stage<'_>, arguments: &Arguments, rows: &mut [Row]) -> Result<(), String> {
    let mut random = Rng::with_seed(arguments.setting.seed);
    for round in 1..=arguments.rounds {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let row = &mut rows[index];
            if row.failed.is_some() {
                continue;
            }
            eprint!("\x1b[2K\rround {round} of {}: {}", arguments.rounds, row.stack.title);
            match stage.measure(&row.stack, row.direction, arguments.bytes, &[]) {
                Ok(sample) => row.samples.push(sample),
                Err(error) => {
                    stage.check()?;
                    let (title, direction) = (&row.stack.title, row.direction.title());
                    eprintln!("\x1b[2K\r{title}, {direction}: {}", in_lines(&error));
                    row.failed = Some(error);
                }
            }
        }
    }
    eprint!("\x1b[2K\r");
    Ok(())
}

/// The sweeps that need no other network.
fn sweeps(
    stage: &Stage<'_>,
    arguments: &Arguments,
    stacks: &[Stack],
    points: &mut Vec<Point>,
) -> Result<(), String> {
    for sweep in arguments.sweep.iter().filter(|sweep| **sweep != Sweep::Rtt) {
        for (mut point, options) in stacks.iter().flat_map(|stack| sweep.points(stack)) {
            let streams = if *sweep == Sweep::Streams { point.x as u64 } else { 1 };
            eprint!("\x1b[2K\r{}: {}", sweep.name(), point.stack.title);
            fill(&mut point, stage, arguments.bytes / streams.max(1), &options)?;
            points.push(point);
        }
    }
    Ok(())
}

/// The sweep over round trips, each in a lab of its own.
fn round_trips<'a>(
    stage: &dyn Fn(Shape) -> Result<Stage<'a>, String>,
    arguments: &Arguments,
    stacks: &[Stack],
    points: &mut Vec<Point>,
) -> Result<(), String> {
    if !arguments.sweep.contains(&Sweep::Rtt) {
        return Ok(());
    }
    for rtt in RTTS_MS {
        let shape = Shape {
            rate: Some(RTT_RATE_BITS_PER_SECOND),
            delay: std::time::Duration::from_millis(rtt) / 2,
            ..Shape::default()
        };
        let stage = stage(shape)?;
        for (mut point, options) in stacks.iter().flat_map(|stack| Sweep::Rtt.points(stack)) {
            if point.x as u64 == rtt {
                eprint!("\x1b[2K\r{rtt} ms: {}", point.stack.title);
                fill(&mut point, &stage, arguments.bytes.min(RTT_BYTES_MAX), &options)?;
                points.push(point);
            }
        }
        stage.down()?;
    }
    eprint!("\x1b[2K\r");
    Ok(())
}

fn fill(
    point: &mut Point,
    stage: &Stage<'_>,
    bytes: u64,
    options: &[String],
) -> Result<(), String> {
    match stage.measure(&point.stack, point.direction, bytes.max(1), options) {
        Ok(sample) => point.sample = Some(sample),
        Err(error) => {
            stage.check()?;
            point.failed = Some(error);
        }
    }
    Ok(())
}

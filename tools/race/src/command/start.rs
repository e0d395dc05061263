//! `bolide race start`: one contender, as a race starts it, to try something with it.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use bolide_probe::nearest::suggestion;
use clap::Args;
use serde::Serialize;

use crate::catalogue::{Protocol, Selection, cells};
use crate::contender::{Contender, OWN, Sources};
use crate::entrant::Ground;
use crate::gather::gather;
use crate::interrupt::Interrupt;
use crate::process;
use crate::race::{Layout, backend};
use crate::workplace::Workplace;

/// How often there is a look whether it runs, and whether it is to be stopped.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Args)]
pub(super) struct StartArguments {
    /// Contender to start.
    contender: String,

    /// Configure it as for the first workload of this table that it supports.
    #[arg(long, value_name = "NAME", default_value = "engine")]
    table: String,

    /// Directory of the contenders' files. Default: as for a race.
    #[arg(long, value_name = "DIR")]
    contenders: Option<PathBuf>,
}

/// Facts about it once it responds.
#[derive(Debug, Serialize)]
struct Started<'a> {
    name: &'a str,
    version: &'a str,
    protocol: Protocol,
    address: SocketAddr,
    path: String,
    pid: u32,
}

/// Starts it on the core of a race's servers, prints where it is as a line of JSON, and waits for Ctrl-C or SIGTERM.
///
/// # Errors
///
/// It can't be started, or has ended by itself.
pub(super) fn start(arguments: &StartArguments) -> Result<(), String> {
    let interrupt = Interrupt::install()?;
    let sources = Sources::find(arguments.contenders.as_deref())?;
    let contenders = sources.contenders()?;
    let name = arguments.contender.as_str();
    let names: Vec<&str> = contenders.iter().map(|one| one.name.as_str()).collect();
    let contender = contenders
        .iter()
        .find(|one| one.name == name)
        .ok_or_else(|| format!("no contender `{name}`; {}", suggestion(name, &names)))?;
    let tables = Selection::Named(vec![arguments.table.clone()]).tables()?;
    let cells = cells(&tables);
    let cell = cells
        .iter()
        .find(|cell| contender.plays(cell))
        .ok_or_else(|| format!("{name} supports no workload of table `{}`", arguments.table))?;
    // This program serves what a proxy asks for.
    let other = contenders.iter().find(|one| one.name == OWN && one.name != name);
    let others = other.filter(|_| cell.behind().is_some());
    let wanted: Vec<&Contender> = others.into_iter().chain([contender]).collect();
    let found = gather(&wanted, &sources, &interrupt)?;
    let present = found.into_iter().collect::<Result<Vec<_>, _>>()?;
    let wanted = present.last().ok_or("nothing was found")?;
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let ground = Ground { sources: &sources, interrupt: &interrupt, program, seed: 0 };
    let mut place = Workplace::new(ground.seed)?;
    let layout = Layout::of(process::available());
    let (cores, others) = layout.of_cell(cell);
    let backend = backend(name, cell, &present, others, &mut place, &ground)?;
    let behind = backend.as_ref().map(|backend| backend.address);
    let mut running = wanted.start(name, cell, cores, behind, &mut place, &ground)?;
    let started = Started {
        name,
        version: &wanted.version,
        protocol: cell.protocol,
        address: running.address,
        path: contender.path(cell),
        pid: running.process.id(),
    };
    let line = serde_json::to_string(&started).map_err(|error| error.to_string())?;
    writeln!(io::stdout(), "{line}").map_err(|error| format!("the standard output: {error}"))?;
    while !interrupt.has_come() {
        if let Some(status) = running.process.ended() {
            return Err(format!("{name} ended ({status}); {}", running.process.last_lines()));
        }
        thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}

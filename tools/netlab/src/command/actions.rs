//! The actions of the command.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::thread::{CpuSet, sched_setaffinity};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{
    Action, DownArguments, ExecArguments, IperfArguments, ListenArguments, StatusArguments,
    UpArguments, show,
};
use crate::Mistake;
use crate::iperf::{self, Options};
use crate::lab::{Lab, program};
use crate::linux::topology::check_congestion;
use crate::raw;

/// The exit code of `exec` where there is no such program.
const NOT_FOUND: u8 = 127;

/// The exit code of `up` that was interrupted, as a shell reports it.
const AT_INTERRUPT: u8 = 130;

/// How far `up` is.
const MAKING: u8 = 0;
const MADE: u8 = 1;
const INTERRUPTED: u8 = 2;

pub(super) fn carry_out(action: &Action) -> Result<ExitCode, Mistake> {
    match action {
        Action::Up(arguments) => up(arguments),
        Action::Exec(arguments) => exec(arguments),
        Action::Status(arguments) => status(arguments),
        Action::Down(arguments) => down(arguments),
        Action::Iperf(arguments) => iperf(arguments),
        Action::Listen(arguments) => listen(arguments),
        Action::Keep => Ok(crate::linux::keeper::keep()),
    }
}

/// Writes a result to the standard output.
fn out(text: &str) -> Result<(), Mistake> {
    std::io::stdout().write_all(text.as_bytes()).map_err(Mistake::io("the standard output"))
}

fn json(value: &impl serde::Serialize) -> Result<(), Mistake> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Mistake::Failed(format!("the JSON: {error}")))?;
    out(&format!("{text}\n"))
}

fn up(arguments: &UpArguments) -> Result<ExitCode, Mistake> {
    let spec = arguments.spec()?;
    let stage = end_at_interrupt(&spec.name)?;
    let made = Lab::up(&spec, |step| eprintln!("{step} …"));
    if stage.swap(MADE, Ordering::SeqCst) == INTERRUPTED {
        // Without its keeper it could not be completed, and nothing of it is left.
        made.map_or(Ok(()), Lab::down)?;
        eprintln!("bolide net: interrupted; the lab was removed");
        return Ok(ExitCode::from(AT_INTERRUPT));
    }
    let lab = made?;
    let complaints = lab.report().map(crate::lab::Report::complaints).unwrap_or_default();
    if arguments.json {
        json(&show::Described::of(&lab, true))?;
    } else {
        out(&show::lab(&lab, true))?;
    }
    if complaints.is_empty() {
        if !arguments.json {
            out(&show::hint(&spec))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // A lab that doesn't do what was asked would only mislead.
    lab.down()?;
    for complaint in complaints {
        eprintln!("bolide net: {complaint}");
    }
    eprintln!("bolide net: the lab was removed; --no-verify keeps one that is not measured");
    Ok(ExitCode::FAILURE)
}

/// From here on, SIGINT and SIGTERM end the keeper of the lab that this process is making, once. Returns how far it is.
fn end_at_interrupt(name: &str) -> Result<Arc<AtomicU8>, Mistake> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(Mistake::io("signals can't be watched"))?;
    let (name, stage) = (name.to_owned(), Arc::new(AtomicU8::new(MAKING)));
    let watched = Arc::clone(&stage);
    std::thread::spawn(move || {
        signals.forever().next();
        let begun =
            watched.compare_exchange(MAKING, INTERRUPTED, Ordering::SeqCst, Ordering::SeqCst);
        if begun.is_err() || !Lab::end_own_keeper(&name) {
            std::process::exit(AT_INTERRUPT.into());
        }
    });
    Ok(stage)
}

fn exec(arguments: &ExecArguments) -> Result<ExitCode, Mistake> {
    let lab = Lab::find(&arguments.name)?;
    let (program, rest) = arguments
        .command
        .split_first()
        .ok_or_else(|| Mistake::Usage("no program to run: give one after --".to_owned()))?;
    pin(&arguments.cores)?;
    if !is_there(Path::new(program)) {
        // As shells and `env` say it, so that the program's own codes can be told apart.
        eprintln!(
            "bolide: `{}` not found, neither by its path nor in PATH",
            program.to_string_lossy()
        );
        return Ok(ExitCode::from(NOT_FOUND));
    }
    let mut command = lab.command(arguments.node, program);
    let error = command.args(rest).exec();
    Err(Mistake::Failed(format!(
        "`{}` can't be run: {error}",
        command.get_program().to_string_lossy()
    )))
}

/// Returns whether there is such a program, as `exec` looks for it.
fn is_there(program: &Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).any(|directory| directory.join(program).is_file())
}

fn pin(cores: &[usize]) -> Result<(), Mistake> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        set.set(*core);
    }
    sched_setaffinity(None, &set)
        .map_err(|_| Mistake::Usage(format!("this process can't use any of the cores {cores:?}")))
}

fn status(arguments: &StatusArguments) -> Result<ExitCode, Mistake> {
    let mut labs = Lab::all()?;
    if let Some(name) = &arguments.name {
        labs.retain(|(lab, _)| lab.spec().name == *name);
        if labs.is_empty() {
            return Err(Mistake::Usage(format!("no lab `{name}` is up")));
        }
    }
    if arguments.json {
        let described: Vec<_> =
            labs.iter().map(|(lab, kept)| show::Described::of(lab, *kept)).collect();
        json(&described)?;
    } else if labs.is_empty() {
        out("no lab is up; `bolide net up` makes one\n")?;
    } else {
        let texts: Vec<String> = labs.iter().map(|(lab, kept)| show::lab(lab, *kept)).collect();
        out(&texts.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn down(arguments: &DownArguments) -> Result<ExitCode, Mistake> {
    if !arguments.all {
        Lab::remove(&arguments.name)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (lab, _) in Lab::all()? {
        lab.down()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn iperf(arguments: &IperfArguments) -> Result<ExitCode, Mistake> {
    let lab = Lab::find(&arguments.name)?;
    if lab.is_apart() {
        return again_inside(&lab);
    }
    if let Some(name) = &arguments.congestion {
        check_congestion(name)?;
    }
    let options = Options {
        download: arguments.reverse,
        time: arguments.time,
        congestion: arguments.congestion.clone(),
    };
    let outcome = iperf::run(&lab, &options)?;
    if arguments.json {
        json(&outcome)?;
    } else {
        out(&show::iperf(&lab, &outcome))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs this command again where the lab's namespaces can be seen.
fn again_inside(lab: &Lab) -> Result<ExitCode, Mistake> {
    let mut command: Command = lab.enter(program()?);
    let error = command.args(std::env::args_os().skip(1)).exec();
    Err(Mistake::Usage(format!(
        "a lab without root needs the program `nsenter` (Debian: apt-get install util-linux): {error}"
    )))
}

fn listen(arguments: &ListenArguments) -> Result<ExitCode, Mistake> {
    let address = arguments.address;
    let listener = raw::listen(address, arguments.congestion.as_deref())
        .map_err(|error| Mistake::Usage(format!("can't listen on {address}: {error}")))?;
    let address = listener.address().map_err(Mistake::io("no address"))?;
    out(&format!("raw://{address}   GET <bytes> or PUT <bytes>; stop with Ctrl-C\n"))?;
    let error = listener.serve(|finished| match finished {
        Ok((request, transfer)) => eprintln!(
            "{} {} bytes, {}, {}, {:.3} CPU-s/GiB",
            request.line().split(' ').next().unwrap_or_default(),
            transfer.bytes,
            crate::quantity::shown_rate(transfer.bits_per_second()),
            transfer.congestion.as_deref().unwrap_or("unknown congestion control"),
            transfer.cpu_seconds_per_gib()
        ),
        Err(error) => eprintln!("{error}"),
    });
    Err(Mistake::Failed(format!("no more connections can be accepted: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_as_exec_does() {
        assert!(is_there(Path::new("sh")) && is_there(Path::new("/bin/sh")));
        assert!(
            !is_there(Path::new("no-such-program")) && !is_there(Path::new("/bin/no-such-program"))
        );
        assert!(!is_there(Path::new("/bin")));
    }
}

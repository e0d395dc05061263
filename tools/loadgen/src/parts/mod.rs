//! One run by several processes, on as many hosts: `bolide load` as parts of one load.
//!
//! A scheduler (mpirun, srun, Kubernetes, or ssh for people without one) starts the same command everywhere. Each part
//! finds its number and meets the others at part 1, under a shared secret. Part 1 compares the clocks, begins each phase
//! in all parts at one instant, and adds up what they counted: counters and histograms, never percentiles. What is
//! reported, and what thresholds and searches look at, is the sum.

mod agreement;
mod clock;
mod first;
mod gathering;
mod handshake;
mod identity;
mod job;
mod other;
mod others;
mod protocol;
mod secret;
mod ssh;
mod wire;

use std::env;
use std::io::{IsTerminal as _, Write as _};

use bolide_probe::accounting::ProcessAccounting;
use bolide_probe::cost::Accounting;
use bolide_probe::engine::{Engine, Mistake};
use bolide_probe::progress::Runner;
use bolide_probe::stop::Stop;

use crate::options::{Arguments, Job};
use agreement::Agreement;
use clock::Clock;
use first::Parts;
use handshake::Introduction;
pub(crate) use identity::Identity;
pub(crate) use job::printed as printed_job;
use other::Other;
use others::Others;
use secret::Secret;
use ssh::Started;

/// The variable with the secret that all parts have.
const SECRET: &str = "BOLIDE_SECRET";

/// Which part this process is. `None`: it is alone.
pub(crate) fn identity(arguments: &Arguments) -> Result<Option<Identity>, String> {
    identity::find(&arguments.parts, &|name| env::var(name).ok())
}

/// Returns what this process says of itself to the others.
fn introduction(job: &Job, identity: &Identity, secret: Secret) -> Introduction {
    let (agreement, clock) = (Agreement::of(job), Clock::begin());
    Introduction { secret, agreement, share: identity.share, clock }
}

/// The name of this host.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn allowed_missing(arguments: &Arguments) -> usize {
    usize::try_from(arguments.parts.missing_ok.unwrap_or(0)).unwrap_or(usize::MAX)
}

/// Waits for the other parts, and makes what carries out phases with them.
pub(crate) fn lead(
    arguments: &Arguments,
    job: &Job,
    identity: &Identity,
    accounting: Box<dyn Accounting>,
    stop: &Stop,
) -> Result<Box<dyn Runner>, Mistake> {
    let asked = &arguments.parts;
    let mut secret = Secret::new(env::var(SECRET).ok());
    if secret.is_empty() && !asked.on.is_empty() {
        secret = Secret::random().map_err(Mistake::Plan)?;
    }
    let us = introduction(job, identity, secret);
    let rendezvous = &identity.rendezvous;
    let listener = gathering::listen(rendezvous, !us.secret.is_empty()).map_err(Mistake::Plan)?;
    let mut ssh = (!asked.on.is_empty())
        .then(|| Started::start(asked, rendezvous, us.secret.text()))
        .transpose()
        .map_err(Mistake::Plan)?;
    let count = us.share.count();
    if !job.outputs.quiet && std::io::stderr().is_terminal() {
        eprintln!("part 1/{count} waits for the others at {rendezvous}");
    }
    let missing_ok = allowed_missing(arguments);
    let mut trouble = || ssh.as_mut().and_then(Started::ended);
    let limits = (asked.join_timeout, missing_ok);
    let joined = gathering::gather(&listener, &us, limits, stop, &mut trouble);
    let joined = joined.map_err(|mistake| match mistake {
        Mistake::Parts(what) => {
            let source = identity.source;
            Mistake::Parts(format!("{what} (by {source}, this is part 1 of {count})"))
        }
        other => other,
    })?;
    let others = Others::new(joined, us.clock, missing_ok).map_err(Mistake::Parts)?;
    let engine = || Engine::prepare_share(&job.plan, us.share, accounting);
    let about = (host(), job.plan.timeouts.connect_timeout, missing_ok);
    let parts = Parts::prepare(others, engine, about, stop.clone(), ssh)?;
    Ok(Box::new(parts))
}

/// Takes part in the run that part 1 leads. Returns the exit code.
pub(crate) fn take_part(
    arguments: &Arguments,
    job: &Job,
    identity: &Identity,
    stop: &Stop,
) -> Result<u8, Mistake> {
    let secret = Secret::new(env::var(SECRET).ok());
    let rendezvous = &identity.rendezvous;
    if secret.is_empty() && !rendezvous.is_loopback() {
        return Err(Mistake::Plan(format!(
            "part 1 is at {rendezvous}, which is another host: set {SECRET} to the same text for all parts"
        )));
    }
    let us = introduction(job, identity, secret);
    let timeout = arguments.parts.join_timeout;
    let stream = gathering::reach(rendezvous, &us, &host(), timeout, stop)?;
    let other = Other::new(stream, us.clock, stop)?;
    let accounting = ProcessAccounting::new(job.plan.server.clone(), &job.plan.origin);
    let done = other.run(|| Engine::prepare_share(&job.plan, us.share, Box::new(accounting)))?;
    if !job.outputs.quiet {
        let part = first::shown(us.share);
        let (completed, failed) = (done.completed, done.failed);
        let line =
            format!("{part}: {completed} responses, {failed} failed; part 1 has the report\n");
        // The standard error may be closed.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    Ok(0)
}

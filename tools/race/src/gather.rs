//! The contenders that are on this machine: found, or built if they are ours to build.

use std::time::Duration;

use bolide_semantics::in_lines;

use crate::builder;
use crate::contender::{Contender, Sources};
use crate::entrant::{Present, detect};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::workplace;

/// Finds each contender, in the order given: it is here, or the reason why it isn't. Says which are built, and how long that
/// takes about.
///
/// # Errors
///
/// The interruption.
pub(crate) fn gather<'c>(
    contenders: &[&'c Contender],
    sources: &Sources,
    interrupt: &Interrupt,
) -> Result<Vec<Result<Present, String>>, String> {
    let cache = workplace::cache();
    let builds: Vec<Option<Duration>> =
        contenders.iter().map(|one| builder::estimate(one, sources, &cache)).collect();
    let count = builds.iter().flatten().count();
    let mut progress = Progress::new(builds.iter().flatten().sum());
    let mut number = 0;
    let mut found = Vec::with_capacity(contenders.len());
    let package = |(contender, estimate): (&&'c Contender, &Option<Duration>)| {
        let package = contender.build.as_ref()?.package.as_deref()?;
        estimate.map(|_| package)
    };
    let mut packages: Vec<&str> = contenders.iter().zip(&builds).filter_map(package).collect();
    for (contender, build) in contenders.iter().zip(builds) {
        if build.is_some() {
            number += 1;
            let is_package = contender.build.as_ref().is_some_and(|build| build.package.is_some());
            let together = if is_package { std::mem::take(&mut packages) } else { Vec::new() };
            let others = match together.len() {
                0 | 1 => String::new(),
                several => format!(", together with {} others", several - 1),
            };
            progress.begin(number, count, &format!("building {}{others}", contender.name));
            progress.say("once, the result is kept");
            builder::build_packages(&together, sources, &cache, interrupt)?;
        }
        let one = detect(contender, sources, interrupt);
        if let Some(estimate) = build {
            progress.end(estimate);
        }
        interrupt.check()?;
        found.push(one);
    }
    Ok(found)
}

/// Says that a race goes on without `name`.
pub(crate) fn say_skipped(name: &str, why: &str) {
    eprintln!("skipped {name}: {}", in_lines(why));
}

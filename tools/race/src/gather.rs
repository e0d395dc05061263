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
    let mut builds: Vec<Option<Duration>> =
        contenders.iter().map(|one| builder::estimate(one, sources, &cache)).collect();
    let mut progress = Progress::new(builds.iter().flatten().sum());
    let package = |(one, estimate): (&&'c Contender, &mut Option<Duration>)| {
        let package = one.build.as_ref()?.package.as_deref()?;
        Some((one.name.as_str(), package, estimate.take()?))
    };
    let packages: Vec<_> = contenders.iter().zip(&mut builds).filter_map(package).collect();
    let count = builds.iter().flatten().count() + usize::from(!packages.is_empty());
    let mut number = 0;
    if !packages.is_empty() {
        let names: Vec<&str> = packages.iter().map(|(name, ..)| *name).collect();
        number += 1;
        progress.begin(number, count, &format!("building {}", names.join(", ")));
        let packages_alone: Vec<&str> = packages.iter().map(|(_, package, _)| *package).collect();
        builder::build_packages(&packages_alone, sources, &cache, interrupt)?;
        progress.end(packages.iter().map(|(.., estimate)| *estimate).sum());
    }
    let mut found = Vec::with_capacity(contenders.len());
    for (contender, build) in contenders.iter().zip(builds) {
        if build.is_some() {
            number += 1;
            progress.begin(number, count, &format!("building {}", contender.name));
            progress.say("once, the result is kept");
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

//! Tools with which labs are made, and the contenders that are here.

use std::fs;
use std::path::{Path, PathBuf};

use bolide_probe::nearest::suggestion;

use super::stack::{BROWSER, BROWSERS_SERVER, Stack};
use super::{Setting, browser};
use crate::contender::{Contender, Sources};
use crate::entrant::{Ground, Present};
use crate::gather;
use crate::interrupt::Interrupt;
use crate::manifest::Machine;
use crate::process;
use crate::workplace::Workplace;

/// Everything that labs are made with.
pub(super) struct Prepared {
    pub(super) interrupt: Interrupt,
    sources: Sources,
    program: PathBuf,
    /// The client's.
    pub(super) client: PathBuf,
    /// Of the server, and of the client.
    pub(super) cores: [usize; 2],
    pub(super) place: Workplace,
}

impl Prepared {
    pub(super) fn new(setting: &Setting) -> Result<Self, String> {
        let interrupt = Interrupt::install()?;
        let [server, client, ..] = process::available()[..] else {
            return Err("server and client need a core each, and this machine has one".to_owned());
        };
        Ok(Self {
            interrupt,
            sources: Sources::find(setting.contenders.as_deref())?,
            program: program("--program", setting.program.as_deref())?,
            client: program("--client", setting.client.as_deref())?,
            cores: [server, client],
            place: Workplace::new(setting.seed)?,
        })
    }

    pub(super) fn machine(&self) -> Machine {
        let [server, client] = self.cores;
        Machine::here(&process::available(), &[server], &[client])
    }

    /// Returns what servers are started with.
    pub(super) fn ground(&self, setting: &Setting) -> Ground<'_> {
        let (sources, interrupt) = (&self.sources, &self.interrupt);
        Ground { sources, interrupt, program: self.program.clone(), seed: setting.seed }
    }
}

/// The program that an option names, or this one.
fn program(option: &str, given: Option<&Path>) -> Result<PathBuf, String> {
    match given {
        Some(program) => fs::canonicalize(program)
            .map_err(|error| format!("{option} {}: {error}", program.display())),
        None => std::env::current_exe().map_err(|error| error.to_string()),
    }
}

/// Contenders that are here, their rows, and those that are not, with the reasons.
pub(super) struct Gathered {
    pub(super) present: Vec<Present>,
    pub(super) stacks: Vec<Stack>,
    pub(super) skipped: Vec<(String, String)>,
}

/// Looks who of `only`, or of all, is here.
pub(super) fn gather(only: &[String], prepared: &Prepared) -> Result<Gathered, String> {
    let Prepared { sources, interrupt, .. } = prepared;
    let mut contenders = sources.contenders()?;
    contenders.retain(|contender| !Stack::of(contender).is_empty());
    let names: Vec<&str> =
        ["raw", BROWSER].into_iter().chain(contenders.iter().map(|c| c.name.as_str())).collect();
    for name in only {
        if !names.contains(&name.as_str()) {
            return Err(format!("--only {name}: no such stack; {}", suggestion(name, &names)));
        }
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|n| n == name);
    // A browser needs a server.
    let needed = |name: &str| wanted(name) || (name == BROWSERS_SERVER && wanted(BROWSER));
    contenders.retain(|contender: &Contender| needed(&contender.name));
    let (mut present, mut skipped) = (Vec::new(), Vec::new());
    let mut stacks: Vec<Stack> = wanted("raw").then(Stack::raw).into_iter().collect();
    let contenders: Vec<&Contender> = contenders.iter().collect();
    for (contender, found) in
        contenders.iter().zip(gather::gather(&contenders, sources, interrupt)?)
    {
        match found {
            Ok(there) => {
                if wanted(&contender.name) {
                    stacks.extend(Stack::of(contender));
                }
                present.push(there);
            }
            Err(why) => {
                gather::say_skipped(&contender.name, &why);
                skipped.push((contender.name.clone(), why));
            }
        }
    }
    if wanted(BROWSER) {
        match browser::program() {
            Ok(_) if present.iter().any(|there| there.contender.name == BROWSERS_SERVER) => {
                stacks.extend(Stack::browser());
            }
            Ok(_) => skipped.push((BROWSER.to_owned(), "its server is not here".to_owned())),
            Err(why) => {
                gather::say_skipped(BROWSER, &why);
                skipped.push((BROWSER.to_owned(), why));
            }
        }
    }
    Ok(Gathered { present, stacks, skipped })
}

/// The versions of those that say one.
pub(super) fn versions(present: &[Present], stacks: &[Stack]) -> Vec<(String, String)> {
    let of = |there: &Present| (there.contender.name.clone(), there.version.clone());
    let browser = stacks.iter().any(|stack| stack.name == BROWSER).then(browser::version).flatten();
    let browser = browser.map(|version| (BROWSER.to_owned(), version));
    let all = present.iter().map(of).chain(browser);
    all.filter(|(_, version)| !version.is_empty()).collect()
}

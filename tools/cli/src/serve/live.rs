//! A server that runs: what SIGHUP and new certificates change.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use bolide::{Running, Tls};

use super::Arguments;
use super::plan::{Group, Plan};
use crate::certificate::Material;
use crate::observe::Observation;

/// A running server and what it runs with.
#[derive(Debug)]
pub(super) struct Live<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) running: Running,
    pub(super) observation: Observation,
    /// What can't change, as it was at the start.
    pub(super) fixed: Vec<(&'static str, String)>,
    /// The addresses as they were given, and which of the groups each has.
    pub(super) addresses: Vec<(String, Option<usize>)>,
    pub(super) groups: Vec<Secured>,
    pub(super) https_addresses: Vec<SocketAddr>,
    pub(super) stamps: Stamps,
}

/// Listeners with the same TLS.
#[derive(Debug)]
pub(super) struct Secured {
    pub(super) group: Group,
    pub(super) material: Material,
    pub(super) tls: Tls,
}

impl Live<'_> {
    /// Reads everything again, and says what came of it.
    pub(super) fn reload(&mut self) {
        match self.try_reload() {
            Ok(left) if left.is_empty() => eprintln!("bolide: reloaded"),
            Ok(left) => {
                eprintln!("bolide: reloaded, but for {}: that needs a restart", left.join(", "));
            }
            Err(what) => {
                eprintln!("bolide: not reloaded, the old configuration stays in force: {what}");
            }
        }
    }

    /// Everything that can be wrong is found before the first change. Returns what has not been changed.
    fn try_reload(&mut self) -> Result<Vec<&'static str>, String> {
        let plan = Plan::make(self.arguments)?;
        let (groups, of) = plan.groups();
        let mut news: Vec<Option<(Group, Material)>> = Vec::new();
        for (number, secured) in self.groups.iter().enumerate() {
            // A listener that stays where it is gets what is now said of it.
            let own = self.addresses.iter().filter(|(_, group)| *group == Some(number));
            let listed = own.filter_map(|(address, _)| {
                let at = plan.listen.iter().position(|listen| listen.address == *address)?;
                of[at]
            });
            let Some(group) = listed.map(|at| groups[at].clone()).next() else {
                news.push(None);
                continue;
            };
            let before = Some(&secured.material);
            let (files, place) = (&group.files, group.place.as_ref());
            let material = Material::load(files, place, &self.https_addresses, before)?;
            news.push(Some((group, material)));
        }
        let left_alone = self.observation.change(&plan.observe, &self.running)?;
        let routes = plan.routes.after(&self.observation.proxies());
        let made = routes.clone();
        self.running.reload(move || made.router()).map_err(|error| error.to_string())?;
        self.observation.replace_proxies(routes.proxies());
        self.running.set_limits(plan.limits.clone());
        self.running.set_drain(plan.drain);
        for (secured, new) in self.groups.iter_mut().zip(news) {
            if let Some((group, material)) = new {
                material.replace(&secured.tls).map_err(|error| error.to_string())?;
                (secured.group, secured.material) = (group, material);
            }
        }
        self.stamps = Stamps::of(&self.groups);
        let fixed = plan.fixed();
        let changed = self.fixed.iter().zip(&fixed).filter(|(old, new)| old != new);
        Ok(changed.map(|((name, _), _)| *name).chain(left_alone).collect())
    }

    /// Looks whether files of certificates have changed, and reads them again once they rest.
    pub(super) fn look_at_files(&mut self) {
        if !self.stamps.have_changed(&self.groups) {
            return;
        }
        match self.read_certificates() {
            Ok(()) => eprintln!("bolide: certificates have changed, and were read again"),
            Err(what) => eprintln!("bolide: certificates have changed, the old ones stay: {what}"),
        }
    }

    fn read_certificates(&mut self) -> Result<(), String> {
        let mut news = Vec::new();
        for Secured { group, material, .. } in &self.groups {
            let (files, place) = (&group.files, group.place.as_ref());
            news.push(Material::load(files, place, &self.https_addresses, Some(material))?);
        }
        for (secured, material) in self.groups.iter_mut().zip(news) {
            material.replace(&secured.tls).map_err(|error| error.to_string())?;
            secured.material = material;
        }
        Ok(())
    }
}

/// What tells that a file has changed.
type Stamp = Option<(SystemTime, u64)>;

/// The files of the certificates as they were.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// When they were read.
    read: Vec<Stamp>,
    /// When they were looked at last.
    seen: Vec<Stamp>,
}

impl Stamps {
    /// As the files are now.
    pub(super) fn of(groups: &[Secured]) -> Self {
        let now = stamps(groups);
        Self { read: now.clone(), seen: now }
    }

    /// Whether there is anything to look at.
    pub(super) fn is_empty(&self) -> bool {
        self.read.is_empty()
    }

    /// Whether the files are others than those that were read, and rest: a certificate and its key are
    /// written one after the other.
    fn have_changed(&mut self, groups: &[Secured]) -> bool {
        let now = stamps(groups);
        let rests = now == self.seen;
        self.seen.clone_from(&now);
        if rests && now != self.read {
            self.read = now;
            return true;
        }
        false
    }
}

fn stamps(groups: &[Secured]) -> Vec<Stamp> {
    let files = groups.iter().flat_map(|secured| secured.group.files.files());
    let stamp = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.map(stamp).collect()
}

//! A server that runs: what SIGHUP and new certificates change.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use bolide::server::Running;
use bolide::tls::Tls;

use super::Arguments;
use super::issuance::{self, Issuance};
use super::plan::{Group, Plan};
use crate::certificate::Material;
use crate::configuration::Listen;
use crate::observe::Observation;

/// A running server and what it runs with.
#[derive(Debug)]
pub(super) struct Live<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) running: Running,
    pub(super) observation: Observation,
    pub(super) issuance: Issuance,
    /// Settings that can't change, as they were at the start.
    pub(super) fixed: Vec<(String, String)>,
    /// In the order in which they were given.
    pub(super) listeners: Vec<Opened>,
    pub(super) https: Vec<SocketAddr>,
    pub(super) stamps: Stamps,
}

/// A listener: its address as it was given, and its TLS.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) address: String,
    /// None: cleartext.
    pub(super) secured: Option<Secured>,
}

/// The TLS of a listener. No two share it, for a reload may tell them apart.
#[derive(Debug)]
pub(super) struct Secured {
    pub(super) group: Group,
    pub(super) material: Material,
    pub(super) tls: Tls,
}

impl Opened {
    /// The place of this listener in another plan. `nth`: it is the one after so many of the same address and kind,
    /// which is how those are told apart that take any port.
    fn find(&self, plan: &Plan, nth: usize) -> Option<usize> {
        let is_own = |listen: &Listen| self.is_of(&listen.address, listen.tls.is_some());
        let mut own = plan.listen.iter().enumerate().filter(|(_, listen)| is_own(listen));
        own.nth(nth).map(|(at, _)| at)
    }

    fn is_of(&self, address: &str, is_tls: bool) -> bool {
        self.address == address && self.secured.is_some() == is_tls
    }
}

/// Those of the listeners that have TLS.
pub(super) fn secured(listeners: &[Opened]) -> impl Iterator<Item = &Secured> {
    listeners.iter().filter_map(|listener| listener.secured.as_ref())
}

impl Live<'_> {
    /// Reads everything again, and says what came of it.
    pub(super) fn reload(&mut self) {
        match self.try_reload() {
            Ok(left) if left.is_empty() => eprintln!("bolide: reloaded"),
            Ok(left) => {
                eprintln!("bolide: reloaded; changes to {} need a restart", left.join(", "));
            }
            Err(what) => {
                eprintln!("bolide: not reloaded, the old configuration stays in force: {what}");
            }
        }
    }

    /// Everything that can be wrong is found before the first change. Returns what has not been changed.
    fn try_reload(&mut self) -> Result<Vec<String>, String> {
        let plan = Plan::make(self.arguments)?;
        let news = self.materials(&plan)?;
        issuance::check(plan.acme.as_ref())?;
        // The one change that may fail, with a log that can't be opened, and that is nothing without the others.
        let left_alone = self.observation.change(&plan.observe, &self.running)?;
        self.issuance.change(plan.acme.as_ref())?;
        let responses = self.issuance.responses(plan.acme.as_ref());
        let routes = plan.routes.after(&self.observation.proxies()).with_responses(responses);
        let made = routes.clone();
        self.running.reload(move || made.router()).map_err(|error| error.to_string())?;
        self.observation.replace_proxies(routes.proxies());
        self.running.set_limits(plan.limits.clone());
        self.running.set_ingress(plan.ingress.clone());
        self.running.set_drain(plan.drain);
        for (listener, new) in self.listeners.iter_mut().zip(news) {
            if let (Some(secured), Some((group, material))) = (&mut listener.secured, new) {
                let issued = &self.issuance.results().issued;
                material.replace(&secured.tls, issued).map_err(|error| error.to_string())?;
                (secured.group, secured.material) = (group, material);
            }
        }
        self.stamps = Stamps::of(&self.listeners);
        let fixed = plan.fixed();
        let changed = self.fixed.iter().zip(&fixed).filter(|(old, new)| old != new);
        let changed = changed.map(|((name, _), _)| name.clone());
        Ok(changed.chain(left_alone.into_iter().map(str::to_owned)).collect())
    }

    /// For each listener, the TLS that it is to have now, unless it has none or is to be no more. Every file is
    /// read once.
    fn materials(&self, plan: &Plan) -> Result<Vec<Option<(Group, Material)>>, String> {
        let (groups, of) = plan.groups();
        let mut read: Vec<Option<Material>> = vec![None; groups.len()];
        let mut news = Vec::new();
        for (at, listener) in self.listeners.iter().enumerate() {
            let (address, secured) = (&listener.address, listener.secured.as_ref());
            let before = &self.listeners[..at];
            let nth = before.iter().filter(|one| one.is_of(address, secured.is_some())).count();
            let found = listener.find(plan, nth).and_then(|at| of[at]);
            let (Some(secured), Some(number)) = (secured, found) else {
                news.push(None);
                continue;
            };
            let group = &groups[number];
            if read[number].is_none() {
                let (files, place) = (&group.files, group.place.as_ref());
                let before = Some(&secured.material);
                read[number] = Some(Material::load(files, place, &self.https, before, false)?);
            }
            news.push(read[number].clone().map(|material| (group.clone(), material)));
        }
        Ok(news)
    }

    /// Looks whether files of certificates have changed, and reads them again once they rest.
    pub(super) fn look_at_files(&mut self) {
        if !self.stamps.have_changed(&self.listeners) {
            return;
        }
        match self.read_certificates() {
            Ok(()) => eprintln!("bolide: certificates have changed and were reloaded"),
            Err(what) => eprintln!(
                "bolide: certificates have changed but can't be used, keeping the old ones: {what}"
            ),
        }
    }

    fn read_certificates(&mut self) -> Result<(), String> {
        let mut news = Vec::new();
        for Secured { group, material, .. } in secured(&self.listeners) {
            let (files, place) = (&group.files, group.place.as_ref());
            news.push(Material::load(files, place, &self.https, Some(material), false)?);
        }
        let issued = &self.issuance.results().issued;
        let secured = self.listeners.iter_mut().filter_map(|one| one.secured.as_mut());
        for (secured, material) in secured.zip(news) {
            material.replace(&secured.tls, issued).map_err(|error| error.to_string())?;
            secured.material = material;
        }
        Ok(())
    }
}

/// Mark by which a change of a file is seen.
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
    pub(super) fn of(listeners: &[Opened]) -> Self {
        let now = stamps(listeners);
        Self { read: now.clone(), seen: now }
    }

    /// Returns whether there is anything to look at.
    pub(super) fn is_empty(&self) -> bool {
        self.read.is_empty()
    }

    /// Returns whether the files are others than those that were read, and rest: a certificate and its key are
    /// written one after the other.
    fn have_changed(&mut self, listeners: &[Opened]) -> bool {
        let now = stamps(listeners);
        let rests = now == self.seen;
        self.seen.clone_from(&now);
        if rests && now != self.read {
            self.read = now;
            return true;
        }
        false
    }
}

fn stamps(listeners: &[Opened]) -> Vec<Stamp> {
    let files = secured(listeners).flat_map(|secured| secured.group.files.files());
    let stamp = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.map(stamp).collect()
}

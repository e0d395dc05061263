//! `bolide serve --config FILE`: a TOML file with the names of the flags and builders.
//!
//! Each section has a module that takes its keys from a [`Section`](document::Section) and says what is wrong
//! with them. A further section is one more `root.table("name")?` or `root.sections("name", None)?` in
//! [`Configuration::read`], and its text in `print`.

mod access;
mod acme;
mod balance;
mod document;
mod effective;
mod environment;
mod findings;
mod handshake;
mod include;
mod ingress;
mod limit_tables;
mod listen;
mod observation;
mod print;
mod redirects;
mod route;
mod rules;
mod upstream;
mod value;

use std::path::Path;
use std::time::Duration;

use bolide::server::{Congestion, CongestionControl, Ingress, Limits, RouteError};
use bolide_measurement::Ndt7Settings;
use bolide_site::Rules;

use crate::observe;
use crate::routes::{Route, RouteAction, Routes};
use choice::choice;
use document::{Document, Section};
use limit_tables::WebSocketLimits;
use upstream::Upstreams;
use value::Setting;

use crate::place::Place;
pub(crate) use effective::effective;
pub(crate) use listen::{ClientCertificate, Listen, TlsFiles, check_address};
pub(crate) use print::print;

/// How long open exchanges may go on after a shutdown was asked for, where nothing else is said.
pub(crate) const DRAIN: Duration = Duration::from_secs(30);

/// Contents of a file.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// True if HTTPS listeners serve HTTP/3, too.
    pub(crate) http3: bool,
    /// That of HTTP/3.
    pub(crate) congestion: Congestion,
    /// None: one per core.
    pub(crate) workers: Option<u16>,
    pub(crate) drain: Duration,
    /// Whom to become once all listen.
    pub(crate) user: Option<String>,
    pub(crate) limits: Limits,
    /// Information that is taken from peers.
    pub(crate) ingress: Ingress,
    /// Of the built-in routes.
    pub(crate) websocket: WebSocketLimits,
    /// The CA that certificates come from; its names are those of the listeners.
    pub(crate) acme: Option<bolide_acme::Settings>,
    pub(crate) listen: Vec<Listen>,
    pub(crate) routes: Routes,
    pub(crate) observe: observe::Settings,
}

impl Configuration {
    /// Reads a file, and opens and looks up what it names. `with_routes`: its routes count; otherwise they are
    /// passed over, for the command line has others.
    pub(crate) fn read(path: &Path, with_routes: bool) -> Result<Self, String> {
        Self::of(&Document::read(path)?, with_routes)
    }

    fn of(document: &Document, with_routes: bool) -> Result<Self, String> {
        let mut root = document.section()?;
        let http3 = root.value::<bool>("http3")?.unwrap_or(true);
        let congestion = congestion(&mut root)?;
        let workers = workers(&mut root)?;
        let drain = root.value::<Duration>("drain")?.unwrap_or(DRAIN);
        let user = root.value::<String>("user")?;
        let (limits, websocket) = limits(&mut root)?;
        let ingress = ingress::read(&mut root)?;
        let observe = observation::read(&mut root)?;
        let acme = acme::read(&mut root)?;
        let defaults = rules::defaults(root.table("defaults")?)?;
        let included = include::read(&mut root)?;
        let mut listeners = root.sections("listen", None)?;
        let mut upstreams = root.sections("upstream", None)?;
        let mut routes = root.sections("route", None)?;
        root.finish()?;
        for document in &included {
            include::sections(document, [&mut listeners, &mut upstreams, &mut routes])?;
        }
        let listen = listeners.into_iter().map(listen::read).collect::<Result<Vec<_>, _>>()?;
        let routes = if with_routes {
            read_routes(routes, upstreams, &listen, &defaults, &ingress)?
        } else {
            Routes::default()
        };
        check_listeners(&listen)?;
        ingress::check(&ingress, &listen)?;
        acme::check(acme.as_ref(), &listen)?;
        Ok(Self {
            http3,
            congestion,
            workers,
            drain,
            user,
            limits,
            ingress,
            websocket,
            acme: acme.map(|(settings, _)| settings),
            listen,
            routes,
            observe,
        })
    }
}

fn congestion(root: &mut Section<'_>) -> Result<Congestion, String> {
    let words = [("cubic", CongestionControl::Cubic), ("bbr", CongestionControl::Bbr)];
    let control = choice(root, "http3-congestion", &words)?.unwrap_or_default();
    match root.placed::<u16>("http3-initial-packets")? {
        None => Ok(Congestion { control, ..Congestion::default() }),
        Some((initial_packets @ 2..=200, _)) => Ok(Congestion { control, initial_packets }),
        Some((packets, at)) => Err(at
            .mistake(format!("`http3-initial-packets` is {packets}: give a number from 2 to 200"))),
    }
}

fn workers(root: &mut Section<'_>) -> Result<Option<u16>, String> {
    match root.placed::<u16>("workers")? {
        None => Ok(None),
        Some((workers @ 1..=1024, _)) => Ok(Some(workers)),
        Some((workers, at)) => {
            Err(at.mistake(format!("`workers` is {workers}: give a number from 1 to 1024")))
        }
    }
}

/// `[limits]` and its tables.
fn limits(root: &mut Section<'_>) -> Result<(Limits, WebSocketLimits), String> {
    let (mut limits, mut websocket) = (Limits::default(), WebSocketLimits::default());
    let mut section = root.table("limits")?;
    let mut tables = LimitTables { own: &mut section, inner: None };
    limit_tables::visit(&mut limits, &mut websocket, &mut tables)?;
    tables.finish()?;
    section.finish()?;
    Ok((limits, websocket))
}

/// `[limits]`, and the table in it that is being read.
struct LimitTables<'a, 'b> {
    own: &'a mut Section<'b>,
    inner: Option<Section<'b>>,
}

impl LimitTables<'_, '_> {
    fn finish(&mut self) -> Result<(), String> {
        self.inner.take().map_or(Ok(()), Section::finish)
    }
}

impl limit_tables::Visit for LimitTables<'_, '_> {
    fn table(&mut self, name: &'static str) -> Result<(), String> {
        self.finish()?;
        if !name.is_empty() {
            self.inner = Some(self.own.table(name)?);
        }
        Ok(())
    }

    fn limits<L: bolide_limits::Limits>(&mut self, limits: &mut L) -> Result<(), String> {
        limit_tables::read(self.inner.as_mut().unwrap_or(self.own), limits)
    }
}

/// The limits that can't change while a server runs, in words that can be compared.
pub(crate) fn fixed_limits(limits: &Limits) -> Vec<(String, String)> {
    fn each<L: bolide_limits::Limits>(fixed: &mut Vec<(String, String)>, limits: &mut L) {
        fixed.extend(L::ALL.iter().map(|limit| {
            let written = limit_tables::setting((limit.of)(limits)).written();
            (format!("[limits] {}", limit_tables::key(limit)), written)
        }));
    }
    let mut limits = limits.clone();
    let mut fixed = vec![("[limits] long-turn".to_owned(), limits.long_turn.written())];
    each(&mut fixed, &mut limits.event_loop);
    each(&mut fixed, &mut limits.event_loop.closing);
    fixed
}

fn read_routes(
    routes: Vec<Section<'_>>,
    upstreams: Vec<Section<'_>>,
    listen: &[Listen],
    defaults: &Rules,
    ingress: &Ingress,
) -> Result<Routes, String> {
    let mut known = Upstreams::default();
    for section in upstreams {
        known.add(upstream::read(section)?)?;
    }
    let mut placed = Vec::new();
    let mut ndt7 = Ndt7Settings::default();
    for section in routes {
        placed.push(route::read(section, &mut known, &mut ndt7, defaults)?);
    }
    route::check(&placed)?;
    let proxies = known.finish()?;
    findings::check(&placed, &proxies, listen, ingress)?;
    let places: Vec<Places> = placed.iter().map(Places::of).collect();
    let routes: Vec<Route> = placed.into_iter().map(|one| one.route).collect();
    let routes = if routes.is_empty() { Routes::builtin() } else { Routes::new(routes, proxies) };
    let routes = routes.with_ndt7(ndt7).with_defaults(defaults);
    // What only the router can tell: patterns that overlap, hosts that can't be asked for.
    routes.router().check().map_err(|error| {
        let said = places.iter().rev().find_map(|places| places.mistake(&error));
        said.unwrap_or_else(|| error.to_string())
    })?;
    Ok(routes)
}

/// Place of a route, with the names by which a router may speak of it.
struct Places {
    route: Place,
    paths: Vec<String>,
    hosts: Vec<(String, Place)>,
}

impl Places {
    fn of(placed: &route::Placed) -> Self {
        let Route { hosts, path, action, .. } = &placed.route;
        let mut bare = vec![path.as_str()];
        if let RouteAction::Files { .. } = action {
            bare.push(path.trim_end_matches('/'));
        }
        let with_host = |host: &str| -> Vec<String> {
            bare.iter().map(|path| format!("{host}{path}")).collect()
        };
        let mut paths = with_host("");
        paths.extend(hosts.iter().flat_map(|host| with_host(host)));
        let hosts = hosts.iter().cloned().zip(placed.hosts.iter().cloned()).collect();
        Self { route: placed.place.clone(), paths, hosts }
    }

    /// Returns what a router found, if it is about this route.
    fn mistake(&self, error: &RouteError) -> Option<String> {
        if let Some((host, at)) = self.hosts.iter().find(|(host, _)| *host == error.path) {
            return Some(at.mistake(format!("`host` is `{host}`: {}", error.what)));
        }
        self.paths.contains(&error.path).then(|| self.route.mistake(error))
    }
}

fn check_listeners(listen: &[Listen]) -> Result<(), String> {
    for (at, one) in listen.iter().enumerate() {
        let is_free = one.address.ends_with(":0");
        if !is_free && listen[..at].iter().any(|other| other.address == one.address) {
            let what = format!("another [[listen]] already has the address {}", one.address);
            return Err(one.place.as_ref().map_or_else(|| what.clone(), |at| at.mistake(&what)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod builders;
mod choice;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod site_tests;
#[cfg(test)]
mod tests;

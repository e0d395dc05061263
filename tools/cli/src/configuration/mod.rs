//! `bolide serve --config FILE`: a TOML file with the names of the flags and builders.
//!
//! Each section has a module that takes its keys from a [`Section`](document::Section) and says what is wrong
//! with them. A further section is one more `root.table("name")?` or `root.sections("name", None)?` in
//! [`Configuration::read`], and its text in `print`.

mod document;
mod limit_tables;
mod listen;
mod nearest;
mod observation;
mod print;
mod route;
mod upstream;
mod value;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bolide::Limits;
use bolide_measurement::Ndt7Settings;

use crate::observe;
use crate::routes::{Answer, Route, Routes};
use document::{Document, Section};
use limit_tables::{CONNECTION, HTTP1, HTTP2, SERVER};
use upstream::Upstreams;

pub(crate) use document::Place;
pub(crate) use listen::{ClientCertificate, Listen, TlsFiles, check_address};
pub(crate) use print::print;
pub(crate) use value::duration;

/// How long open exchanges may go on after a shutdown was asked for, where nothing else is said.
pub(crate) const DRAIN: Duration = Duration::from_secs(30);

/// What a file says.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// None: one per core.
    pub(crate) workers: Option<u16>,
    pub(crate) drain: Duration,
    /// Whom to become once all listen.
    pub(crate) user: Option<String>,
    pub(crate) limits: Limits,
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
        let workers = workers(&mut root)?;
        let drain = root.value::<Duration>("drain")?.unwrap_or(DRAIN);
        let user = root.value::<String>("user")?;
        let limits = limits(&mut root)?;
        let observe = observation::read(&mut root)?;
        let listeners = root.sections("listen", None)?;
        let listen = listeners.into_iter().map(listen::read).collect::<Result<Vec<_>, _>>()?;
        let upstreams = root.sections("upstream", None)?;
        let routes = root.sections("route", None)?;
        root.finish()?;
        let routes = if with_routes { read_routes(routes, upstreams)? } else { Routes::default() };
        check_listeners(&listen)?;
        Ok(Self { workers, drain, user, limits, listen, routes, observe })
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

/// `[limits]`, `[limits.http1]`, `[limits.http2]`.
fn limits(root: &mut Section<'_>) -> Result<Limits, String> {
    let mut limits = Limits::default();
    let mut section = root.table("limits")?;
    SERVER.read(&mut section, &mut limits)?;
    CONNECTION.read(&mut section, &mut limits.connection)?;
    let mut http1 = section.table("http1")?;
    HTTP1.read(&mut http1, Arc::make_mut(&mut limits.connection.h1))?;
    http1.finish()?;
    let mut http2 = section.table("http2")?;
    HTTP2.read(&mut http2, Arc::make_mut(&mut limits.connection.h2))?;
    http2.finish()?;
    section.finish()?;
    Ok(limits)
}

fn read_routes(routes: Vec<Section<'_>>, upstreams: Vec<Section<'_>>) -> Result<Routes, String> {
    let mut known = Upstreams::default();
    for section in upstreams {
        known.add(upstream::read(section)?)?;
    }
    let mut placed = Vec::new();
    let mut ndt7 = Ndt7Settings::default();
    for section in routes {
        placed.push(route::read(section, &mut known, &mut ndt7)?);
    }
    route::check(&placed)?;
    let proxies = known.finish()?;
    let places: Vec<(Vec<String>, Place)> =
        placed.iter().map(|one| (names(&one.route), one.place.clone())).collect();
    let routes: Vec<Route> = placed.into_iter().map(|one| one.route).collect();
    let routes = if routes.is_empty() { Routes::builtin() } else { Routes::new(routes, proxies) };
    let routes = routes.with_ndt7(ndt7);
    // What only the router can tell: patterns that overlap, hosts that nobody can ask for.
    routes.router().check().map_err(|error| {
        let place = places.iter().rev().find(|(names, _)| names.contains(&error.path));
        place.map_or_else(|| error.to_string(), |(_, place)| place.mistake(&error))
    })?;
    Ok(routes)
}

/// By what a router may name a route.
fn names(route: &Route) -> Vec<String> {
    let mut names = vec![route.path.clone()];
    for host in &route.hosts {
        names.push(host.clone());
        names.push(format!("{host}{}", route.path));
    }
    if let Answer::Files { .. } = route.answer {
        let bare = route.path.trim_end_matches('/');
        names.push(bare.to_owned());
        names.extend(route.hosts.iter().map(|host| format!("{host}{bare}")));
    }
    names
}

fn check_listeners(listen: &[Listen]) -> Result<(), String> {
    for (at, one) in listen.iter().enumerate() {
        let is_free = one.address.ends_with(":0");
        if !is_free && listen[..at].iter().any(|other| other.address == one.address) {
            let what = format!("another [[listen]] has the address {} already", one.address);
            return Err(one.place.as_ref().map_or_else(|| what.clone(), |at| at.mistake(&what)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod builders;
#[cfg(test)]
mod tests;

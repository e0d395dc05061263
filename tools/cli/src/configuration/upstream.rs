//! `[[upstream]]`: servers that a route can ask.

use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use bolide::proxy::{
    DotSegments, HealthCheck, HealthKind, Origin, ProxyLimits, ProxySettings, Trust, Upstream,
};
use bolide::server::ProxyVersion;
use bolide::tls::Identity;
use bolide_probe::nearest::nearest;
use bolide_reverse_proxy::limits::HealthLimits;

use super::balance::{balance, sticky};
use super::choice::{choice, one_of};
use super::document::Section;
use super::handshake::identity;
use super::limit_tables;
use crate::place::Place;

/// A group of servers with a name.
#[derive(Debug)]
pub(super) struct Named {
    name: String,
    place: Place,
    settings: ProxySettings,
}

/// The upstreams of a file.
#[derive(Debug, Default)]
pub(super) struct Upstreams {
    /// The name of each that has one, its place in the file and among the settings, and whether a route has
    /// asked for it.
    named: Vec<(String, Place, usize, bool)>,
    all: Vec<ProxySettings>,
}

impl Upstreams {
    /// Adds one; its name must be new.
    pub(super) fn add(&mut self, Named { name, place, settings }: Named) -> Result<(), String> {
        if let Some((_, other, ..)) = self.named.iter().find(|(other, ..)| *other == name) {
            let what = format!("upstream `{name}` is already defined in line {}", other.line);
            return Err(place.mistake(what));
        }
        self.named.push((name, place, self.all.len(), false));
        self.all.push(settings);
        Ok(())
    }

    /// The number of what a route names: an upstream by its name, or servers by URL.
    pub(super) fn find(&mut self, given: &[(String, Place)]) -> Result<usize, String> {
        match given {
            [(name, place)] if !name.contains([':', '/']) => self.by_name(name, place),
            _ => self.by_urls(given),
        }
    }

    fn by_name(&mut self, name: &str, place: &Place) -> Result<usize, String> {
        if let Some((_, _, number, is_used)) = self.named.iter_mut().find(|one| one.0 == name) {
            *is_used = true;
            return Ok(*number);
        }
        let advice = match nearest(name, self.named.iter().map(|(known, ..)| known.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write an [[upstream]] with this name, or a URL".to_owned(),
        };
        Err(place.mistake(format!("there is no upstream `{name}`: {advice}")))
    }

    fn by_urls(&mut self, urls: &[(String, Place)]) -> Result<usize, String> {
        let mut servers = Vec::new();
        for (url, place) in urls {
            servers.push(Upstream::parse(url).map_err(|error| place.mistake(error))?);
        }
        let settings = ProxySettings::new(servers).map_err(|error| match urls.first() {
            Some((_, place)) => place.mistake(error),
            None => error.to_string(),
        })?;
        self.all.push(settings);
        Ok(self.all.len() - 1)
    }

    /// The settings by number, once each upstream with a name was asked for.
    pub(super) fn finish(self) -> Result<Vec<ProxySettings>, String> {
        match self.named.iter().find(|(.., is_used)| !is_used) {
            None => Ok(self.all),
            Some((name, place, ..)) => Err(place.mistake(format!(
                "upstream `{name}` is used by no route: write `proxy = \"{name}\"` in one, or remove it"
            ))),
        }
    }
}

/// Reads an `[[upstream]]`.
pub(super) fn read(mut section: Section<'_>) -> Result<Named, String> {
    let place = section.place();
    let name = section.placed::<String>("name")?;
    let servers = servers(&mut section)?;
    let (balance, sticky) = (balance(&mut section)?, sticky(&mut section)?);
    let origin = choice(
        &mut section,
        "origin",
        &[("replace", Origin::Replace), ("append", Origin::Append), ("hide", Origin::Hide)],
    )?;
    let dot_segments = choice(
        &mut section,
        "dot-segments",
        &[("refuse", DotSegments::Refuse), ("pass", DotSegments::Pass)],
    )?;
    let versions = [("off", None), ("v1", Some(ProxyVersion::V1)), ("v2", Some(ProxyVersion::V2))];
    let proxy_protocol = match section.placed::<String>("proxy-protocol")? {
        None => None,
        Some((given, at)) => {
            one_of(&given, &at, "proxy-protocol", &versions)?.map(|version| (version, at))
        }
    };
    let rewrites_host = section.value::<bool>("rewrite-host")?.unwrap_or(false);
    let secured = Secured::read(&mut section)?;
    let mut limits = ProxyLimits::default();
    limit_tables::read(&mut section, &mut limits)?;
    limit_tables::read(&mut section, &mut limits.times)?;
    limit_tables::read(&mut section, &mut limits.choice)?;
    let health = health(&mut section)?;
    section.finish()?;
    let Some((name, at)) = name else {
        return Err(place.mistake("an upstream needs a name: write `name`"));
    };
    if name.is_empty() || name.contains([':', '/']) {
        return Err(at.mistake(format!("`{name}` is not a valid upstream name: no colon or slash")));
    }
    if servers.is_empty() {
        return Err(place.mistake(format!("upstream `{name}` has no server: write `servers`")));
    }
    let mut settings = secured
        .settings(servers, &place)?
        .balance(balance)
        .origin(origin.unwrap_or_default())
        .rewrites_host(rewrites_host)
        .dot_segments(dot_segments.unwrap_or_default())
        .limits(limits);
    if let Some(cookie) = sticky {
        settings = settings.sticky(&cookie);
    }
    if let Some((version, at)) = proxy_protocol {
        settings = settings.proxy_protocol(version).map_err(|error| at.mistake(error))?;
    }
    if let Some((check, at)) = health {
        settings = settings.health_check(check).map_err(|error| at.mistake(error))?;
    }
    Ok(Named { name, place, settings })
}

/// TLS settings of an upstream.
struct Secured {
    ca: Option<(PathBuf, Place)>,
    is_insecure: bool,
    identity: Option<(Identity, Place)>,
    server_name: Option<(String, Place)>,
}

impl Secured {
    fn read(section: &mut Section<'_>) -> Result<Self, String> {
        let ca = section.placed::<String>("ca")?.map(|(path, at)| (section.path(&path), at));
        let is_insecure = section.value::<bool>("insecure")?.unwrap_or(false);
        let (identity, server_name) = (identity(section)?, section.placed("server-name")?);
        Ok(Self { ca, is_insecure, identity, server_name })
    }

    /// Settings for these servers.
    fn settings(self, servers: Vec<Upstream>, place: &Place) -> Result<ProxySettings, String> {
        let settings = match (&self.ca, self.is_insecure) {
            (Some((_, at)), true) => {
                return Err(at.mistake("`ca` and `insecure` exclude each other"));
            }
            (None, true) => ProxySettings::trusting(servers, &Trust::Any),
            (Some((path, at)), false) => {
                let pem = fs::read(path).map_err(|error| {
                    at.mistake(format!("`ca` {} can't be read: {error}", path.display()))
                })?;
                ProxySettings::trusting(servers, &Trust::Pem(pem))
            }
            (None, false) => ProxySettings::new(servers),
        };
        let mut settings = settings.map_err(|error| match &self.ca {
            Some((path, at)) => at.mistake(format!("`ca` {}: {error}", path.display())),
            None => place.mistake(error),
        })?;
        let speaks_tls = settings.speaks_tls();
        let needs = |key: &str, at: &Place| match speaks_tls {
            true => Ok(()),
            false => Err(at.mistake(format!("`{key}` needs a server with https://"))),
        };
        if let Some((identity, at)) = self.identity {
            needs("cert", &at)?;
            settings = settings.identity(identity).map_err(|error| at.mistake(error))?;
        }
        if let Some((name, at)) = self.server_name {
            needs("server-name", &at)?;
            settings = settings.server_name(&name).map_err(|error| at.mistake(error))?;
        }
        Ok(settings)
    }
}

/// `health` and what goes with it.
fn health(section: &mut Section<'_>) -> Result<Option<(HealthCheck, Place)>, String> {
    const WITH: [&str; 5] = [
        "health-statuses",
        "health-interval",
        "health-timeout",
        "health-rise-count",
        "health-fall-count",
    ];
    let without = WITH.into_iter().find(|key| section.has(key));
    let path = section.placed::<String>("health")?;
    let statuses = match section.placed::<String>("health-statuses")? {
        None => None,
        Some((given, at)) => Some(statuses(&given).ok_or_else(|| {
            at.mistake(format!(
                "`health-statuses` is `{given}`: give one status, or the first and the last of several, such \
                 as \"200-299\""
            ))
        })?),
    };
    let mut limits = HealthLimits::default();
    limit_tables::read(section, &mut limits)?;
    let Some((path, at)) = path else {
        return match without {
            None => Ok(None),
            Some(key) => {
                Err(section.place().mistake(format!("`{key}` needs `health` (the path to check)")))
            }
        };
    };
    let kind = match path.split_once(':').unwrap_or((&path, "")) {
        ("grpc", service) => HealthKind::Grpc(service.to_owned()),
        ("websocket", path) => HealthKind::WebSocket(path.to_owned()),
        _ => HealthKind::Get(path.clone()),
    };
    if statuses.is_some() && !matches!(kind, HealthKind::Get(_)) {
        return Err(
            at.mistake("`health-statuses` goes with a path: other checks have one right result")
        );
    }
    let mut check = HealthCheck::of(kind)
        .interval(limits.health_interval)
        .timeout(limits.health_timeout)
        .rise(limits.health_rise_count)
        .fall(limits.health_fall_count);
    if let Some(statuses) = statuses {
        check = check.statuses(statuses);
    }
    Ok(Some((check, at)))
}

/// `204`, or `200-399`.
fn statuses(given: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = given.split_once('-').unwrap_or((given, given));
    let status = |text: &str| {
        let number: u16 = text.trim().parse().ok()?;
        (100..=599).contains(&number).then_some(number)
    };
    let (first, last) = (status(first)?, status(last)?);
    (first <= last).then_some(first..=last)
}

/// `servers = ["http://a", { url = "http://b", weight = 2 }]`.
fn servers(section: &mut Section<'_>) -> Result<Vec<Upstream>, String> {
    let mut servers = Vec::new();
    for mut server in section.sections("servers", Some("url"))? {
        let place = server.place();
        let url = server.placed::<String>("url")?;
        let weight = server.placed::<u32>("weight")?;
        let http1_tunnels = server.value::<bool>("http1-tunnels")?;
        server.finish()?;
        let Some((url, at)) = url else {
            return Err(place.mistake("a server needs an address: write `url`"));
        };
        let upstream = Upstream::parse(&url).map_err(|error| at.mistake(error))?;
        let upstream = match weight {
            None => upstream,
            Some((weight @ 1..=1000, _)) => upstream.weight(weight),
            Some((_, at)) => {
                return Err(at.mistake("`weight` is out of range: give a number from 1 to 1000"));
            }
        };
        servers.push(match http1_tunnels {
            None => upstream,
            Some(allowed) => upstream.http1_tunnels(allowed),
        });
    }
    Ok(servers)
}

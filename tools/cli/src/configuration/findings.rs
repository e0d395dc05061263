//! What a configuration says that can't work: redirects onto themselves, upstreams that are the server itself, routes for
//! listeners that are not there.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use bolide::http::Method;
use bolide::proxy::ProxySettings;
use bolide::server::{Head, Ingress};
use bolide_site::{Conditions, Facts, Scheme};

use super::listen::Listen;
use super::route::Placed;
use crate::routes::Answer;

/// A host that no route names.
const SOME_HOST: &str = "host.invalid";

/// Finds the first mistake of routes among themselves and with their listeners.
pub(super) fn check(
    placed: &[Placed],
    proxies: &[ProxySettings],
    listen: &[Listen],
    ingress: &Ingress,
) -> Result<(), String> {
    // A trusted peer may say that a client has spoken TLS with it.
    let says_scheme = !ingress.trusted.is_empty();
    for one in placed {
        check_listeners(&one.route.site.conditions, listen, says_scheme)
            .map_err(|what| one.place.mistake(what))?;
        if let Some(other) = hiding(one, placed, &schemes(one, listen, says_scheme)) {
            let at = &other.place.at;
            let what = format!("this route is never reached: the route at {at} takes its requests");
            return Err(one.place.mistake(what));
        }
        match &one.route.answer {
            Answer::Redirect(redirect) => {
                for head in samples(one, placed) {
                    let loops = schemes(one, listen, says_scheme).into_iter().find(|is_secure| {
                        let facts = Facts {
                            head: &head,
                            client: None,
                            accepted: None,
                            is_secure: *is_secure,
                            user: None,
                        };
                        let pattern = one.route.site.conditions.pattern.as_ref();
                        let only =
                            Conditions { pattern: pattern.cloned(), ..Conditions::default() };
                        only.hold(&facts) && redirect.leads_to_itself(&facts)
                    });
                    if let Some(is_secure) = loops {
                        return Err(one.place.mistake(onto_itself(one, &head, is_secure)));
                    }
                }
            }
            Answer::Proxy(number) | Answer::Files { other: Some(number), .. } => {
                for upstream in proxies[*number].stats() {
                    if let Some(own) = listen.iter().find(|own| is_own(&upstream.name, own)) {
                        let what = format!(
                            "the upstream `{}` is this server's listener {}",
                            upstream.name, own.address
                        );
                        return Err(one
                            .place
                            .mistake(format!("{what}: its requests would go in circles")));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The route that takes the requests of another one because it comes before those of every host, by whichever of these
/// schemes they come.
fn hiding<'p>(one: &Placed, placed: &'p [Placed], schemes: &[bool]) -> Option<&'p Placed> {
    if one.route.comes_first() || matches!(one.route.answer, Answer::Builtin(_)) {
        return None;
    }
    let before: Vec<&Placed> =
        placed.iter().filter(|other| other.route.comes_first() && covers(other, one)).collect();
    // A narrower one is asked first.
    let narrowest = before.iter().map(|other| other.route.path.len()).max()?;
    let mut hiding = None;
    for is_secure in schemes {
        let scheme = Some(if *is_secure { Scheme::Https } else { Scheme::Http });
        let conditions = Conditions { scheme, ..one.route.site.conditions.clone() };
        let takes = |other: &&&Placed| {
            other.route.path.len() == narrowest && conditions.imply(&other.route.site.conditions)
        };
        hiding = Some(*before.iter().find(takes)?);
    }
    hiding
}

/// Whether a route is for every host and path of another one.
fn covers(wide: &Placed, narrow: &Placed) -> bool {
    let (wide, narrow) = (&wide.route, &narrow.route);
    let has_hosts = wide.hosts.is_empty()
        || (!narrow.hosts.is_empty() && narrow.hosts.iter().all(|host| wide.hosts.contains(host)));
    let is_below = wide.path.ends_with('/') && narrow.path.starts_with(wide.path.as_str());
    has_hosts && (is_below || wide.path == narrow.path)
}

fn onto_itself(one: &Placed, head: &Head, is_secure: bool) -> String {
    let scheme = if is_secure { "https" } else { "http" };
    let other = if is_secure { "http" } else { "https" };
    let host = head.authority().filter(|host| *host != SOME_HOST).unwrap_or("any host");
    let advice = match one.route.site.conditions.scheme {
        None => format!("add `scheme = \"{other}\"` if it is for {other} alone"),
        Some(_) => "name another host or path".to_owned(),
    };
    format!("this route redirects {scheme} requests for {host} to themselves: {advice}")
}

/// Requests that the redirect of a route would get.
fn samples(one: &Placed, placed: &[Placed]) -> Vec<Head> {
    let Answer::Redirect(redirect) = &one.route.answer else { return Vec::new() };
    let mut hosts: Vec<String> =
        one.route.hosts.iter().map(|host| host.replacen('*', "sample", 1)).collect();
    let fixed = redirect.fixed_target();
    if hosts.is_empty() {
        hosts.push(SOME_HOST.to_owned());
        // A host with routes of its own gets here only for what these leave.
        let has_routes = |host: &str| {
            let names = |other: &Placed| other.route.hosts.iter().any(|own| own == host);
            placed.iter().any(names)
        };
        hosts.extend(fixed.iter().map(|(host, _)| host.clone()).filter(|host| !has_routes(host)));
    }
    let path = &filled_in(&one.route.path);
    let mut paths = vec![path.clone()];
    if let Some(pattern) = &one.route.site.conditions.pattern {
        paths.push(some_match(pattern.as_str()));
    }
    if path.ends_with('/') {
        paths.push(format!("{path}sample"));
        paths.extend(
            fixed.into_iter().map(|(_, path)| path).filter(|own| own.starts_with(path.as_str())),
        );
    }
    let mut heads = Vec::new();
    for (host, path) in hosts.iter().flat_map(|host| paths.iter().map(move |path| (host, path))) {
        let mut head = Head::default();
        head.set_method(Method::GET);
        let path = head.push_text(path.as_bytes());
        head.set_path(path);
        let host = head.push_text(host.as_bytes());
        head.set_authority(host);
        heads.push(head);
    }
    heads
}

/// A path that a route with parameters takes.
fn filled_in(path: &str) -> String {
    let mut rest = path;
    let mut filled = String::new();
    while let Some((before, parameter)) = rest.split_once('{') {
        filled += before;
        filled += "sample";
        rest = parameter.split_once('}').map_or("", |(_, after)| after);
    }
    filled + rest
}

/// What a pattern of the usual kind matches; whether it does has to be seen.
fn some_match(pattern: &str) -> String {
    let mut text = pattern.trim_start_matches('^').trim_end_matches('$').replace(['(', ')'], "");
    for any in ["[^/]*", "[^/]+", ".*", ".+"] {
        text = text.replace(any, "sample");
    }
    text.replace("[0-9]+", "1").replace("\\d+", "1").replace('\\', "")
}

/// The schemes by which a route's requests may come: whether they are TLS.
fn schemes(one: &Placed, listen: &[Listen], says_scheme: bool) -> Vec<bool> {
    let is_there = |is_secure: bool| {
        says_scheme || listen.is_empty() || listen.iter().any(|own| own.tls.is_some() == is_secure)
    };
    let wanted = match one.route.site.conditions.scheme {
        None => vec![false, true],
        Some(scheme) => vec![scheme == Scheme::Https],
    };
    wanted.into_iter().filter(|is_secure| is_there(*is_secure)).collect()
}

/// Whether the listeners that a route names are there. A file without listeners leaves them to the flags.
fn check_listeners(
    conditions: &Conditions,
    listen: &[Listen],
    says_scheme: bool,
) -> Result<(), String> {
    let scheme = conditions.scheme.filter(|_| !says_scheme);
    if listen.is_empty() {
        return Ok(());
    }
    for wanted in &conditions.listeners {
        let named = listen.iter().find(|own| own.address.parse() == Ok(*wanted));
        if let (Some(own), Some(scheme)) = (named, scheme)
            && own.tls.is_some() != (scheme == Scheme::Https)
        {
            let scheme = if own.tls.is_some() { "https" } else { "http" };
            return Err(format!(
                "this route is never reached: the [[listen]] {wanted} is `{scheme}`"
            ));
        }
        if named.is_none() {
            let all: Vec<&str> = listen.iter().map(|own| own.address.as_str()).collect();
            let what = format!("there is no [[listen]] with the address {wanted}");
            return Err(format!("{what}: known are {}", all.join(", ")));
        }
    }
    let is_secure = scheme.map(|scheme| scheme == Scheme::Https);
    if let Some(is_secure) = is_secure
        && !listen.iter().any(|own| own.tls.is_some() == is_secure)
    {
        let scheme = if is_secure { "https" } else { "http" };
        return Err(format!("this route is never reached: no [[listen]] has `{scheme}`"));
    }
    Ok(())
}

/// Whether an upstream is a listener of this server.
fn is_own(upstream: &str, listen: &Listen) -> bool {
    if upstream.starts_with("unix:") {
        return upstream == listen.address;
    }
    let (scheme, authority) = upstream.split_once("://").unwrap_or(("http", upstream));
    let authority = authority.trim_end_matches('/');
    let default = if scheme == "https" { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        // The colons of an IPv6 address stand in brackets.
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(default)),
        _ => (authority, default),
    };
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let (Ok(ip), Ok(own)) = (ip, listen.address.parse::<SocketAddr>()) else { return false };
    own.port() != 0
        && port == own.port()
        && (own.ip() == ip || (own.ip().is_unspecified() && is_of_this_machine(ip)))
}

/// Whether it is an address of this machine: only these can be bound.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

//! Findings in a configuration that can't work: redirects in circles, upstreams that are the server itself, routes for listeners
//! that are not there.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use bolide::proxy::ProxySettings;
use bolide::server::Ingress;
use bolide_site::{Conditions, Scheme};

use super::listen::Listen;
use super::redirects;
use super::route::Placed;
use crate::routes::RouteAction;

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
        match &one.route.action {
            RouteAction::Redirect(redirect) => {
                let schemes = schemes(one, listen, says_scheme);
                if let Some(what) = redirects::circle(one, redirect, placed, &schemes) {
                    return Err(one.place.mistake(what));
                }
            }
            RouteAction::Proxy(number) | RouteAction::Files { other: Some(number), .. } => {
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
    if one.route.comes_first() || matches!(one.route.action, RouteAction::Builtin(_)) {
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

/// Returns whether a route is for every host and path of another one.
fn covers(wide: &Placed, narrow: &Placed) -> bool {
    let (wide, narrow) = (&wide.route, &narrow.route);
    let has_hosts = wide.hosts.is_empty()
        || (!narrow.hosts.is_empty() && narrow.hosts.iter().all(|host| wide.hosts.contains(host)));
    let is_below = wide.path.ends_with('/') && narrow.path.starts_with(wide.path.as_str());
    has_hosts && (is_below || wide.path == narrow.path)
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

/// Checks whether the listeners that a route names are there. A file without listeners leaves them to the flags.
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

/// Returns whether an upstream is a listener of this server.
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

/// Returns whether it is an address of this machine: only these can be bound.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

//! RFC 9110 §7.4: routes by the host that a request asks for.

use std::fmt;

use hashbrown::HashMap;

use super::Router;

/// The longest name that DNS knows (RFC 1035 §2.3.4), in bytes.
const NAME_BYTES_MAX: usize = 253;

/// Routers by host.
#[derive(Default)]
pub(super) struct Hosts {
    exact: HashMap<Box<str>, Router, foldhash::fast::FixedState>,
    /// By what stands behind `*.`.
    wildcard: HashMap<Box<str>, Router, foldhash::fast::FixedState>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.exact.keys().map(ToString::to_string).collect();
        names.extend(self.wildcard.keys().map(|name| format!("*.{name}")));
        names.sort_unstable();
        formatter.debug_list().entries(names).finish()
    }
}

impl Hosts {
    /// Adds the routes of a host.
    pub(super) fn add(&mut self, host: &str, router: Router) -> Result<(), String> {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let (routers, name) = match host.strip_prefix("*.") {
            Some(rest) => (&mut self.wildcard, rest),
            None => (&mut self.exact, host.as_str()),
        };
        check(name)?;
        if routers.insert(name.into(), router).is_some() {
            return Err("the host is routed twice".to_owned());
        }
        Ok(())
    }

    /// All routers with their hosts, in an order that does not change while none is added.
    pub(super) fn routers(&self) -> impl Iterator<Item = (String, &Router)> {
        let exact = self.exact.iter().map(|(host, router)| (host.to_string(), router));
        let wildcard = self.wildcard.iter();
        exact.chain(wildcard.map(|(host, router)| (format!("*.{host}"), router)))
    }

    /// The same routers in the same order.
    pub(super) fn routers_mut(&mut self) -> impl Iterator<Item = &mut Router> {
        self.exact.values_mut().chain(self.wildcard.values_mut())
    }

    /// The routes of the host of `authority`: those of its own name, else those of the longest wildcard.
    pub(super) fn of(&self, authority: &str) -> Option<&Router> {
        let host = host_of(authority);
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..host.len())?;
        lower.copy_from_slice(host.as_bytes());
        lower.make_ascii_lowercase();
        let host = std::str::from_utf8(lower).ok()?;
        if let Some(router) = self.exact.get(host) {
            return Some(router);
        }
        let mut rest = host;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(router) = self.wildcard.get(parent) {
                return Some(router);
            }
            rest = parent;
        }
        None
    }
}

/// The host of an authority, without its port and the dot of the root.
fn host_of(authority: &str) -> &str {
    let host = match authority.rsplit_once(':') {
        // The colons of an IPv6 address stand in brackets.
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    };
    host.strip_suffix('.').unwrap_or(host)
}

/// Checks whether a request can ask for this host.
fn check(name: &str) -> Result<(), String> {
    if name.starts_with('[') && name.ends_with(']') {
        return match name[1..name.len() - 1].parse::<std::net::Ipv6Addr>() {
            Ok(_) => Ok(()),
            Err(_) => Err("invalid IPv6 address in brackets".to_owned()),
        };
    }
    if name.contains(':') {
        return Err("a host must not have a scheme or a port".to_owned());
    }
    if name.contains('*') {
        return Err("a wildcard must be the whole first label, as in *.example.org".to_owned());
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(label) {
        return Err("invalid host name (letters, digits, hyphens and dots)".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Hosts {
        let mut hosts = Hosts::default();
        for name in names {
            let router = Router::new().get(&format!("/{}", name.replace('*', "star")), |_| "");
            hosts.add(name, router).unwrap();
        }
        hosts
    }

    #[test]
    fn the_port_the_case_and_the_last_dot_do_not_matter() {
        let hosts = hosts(&["Example.org", "[::1]", "127.0.0.1"]);
        for authority in [
            "example.org",
            "EXAMPLE.org:8080",
            "example.org.",
            "example.org.:443",
            "[::1]",
            "[::1]:80",
            "127.0.0.1:80",
        ] {
            assert!(hosts.of(authority).is_some(), "{authority}");
        }
        for authority in ["", "org", "www.example.org", "example.org.evil", "[::2]:80", ":80"] {
            assert!(hosts.of(authority).is_none(), "{authority}");
        }
        assert!(hosts.of(&"a".repeat(300)).is_none());
    }

    #[test]
    fn the_own_name_wins_over_wildcards_and_the_longest_of_these_over_the_others() {
        let hosts = hosts(&["a.example.org", "*.example.org", "*.b.example.org"]);
        let found = |host: &str| format!("{:?}", hosts.of(host).unwrap());
        assert!(found("a.example.org").contains("/a.example.org"));
        assert!(found("x.example.org").contains("/star.example.org"));
        assert!(found("x.y.example.org").contains("/star.example.org"));
        assert!(found("x.b.example.org").contains("/star.b.example.org"));
        assert!(hosts.of("example.org").is_none(), "a wildcard stands for at least one label");
    }

    #[test]
    fn looking_a_host_up_allocates_nothing() {
        let hosts = hosts(&["example.org", "*.example.org"]);
        let info = allocation_counter::measure(|| {
            for authority in ["Example.org:80", "a.B.example.ORG", "other.org"] {
                std::hint::black_box(hosts.of(authority));
            }
        });
        assert_eq!(info.count_total, 0);
    }

    #[test]
    fn hosts_that_no_request_can_ask_for_are_named() {
        for (host, why) in [
            ("", "invalid host name"),
            ("*", "a wildcard must be the whole first label"),
            ("a*.example.org", "a wildcard must be the whole first label"),
            ("*.*.org", "a wildcard must be the whole first label"),
            ("http://a", "not have a scheme or a port"),
            ("a:80", "not have a scheme or a port"),
            ("a..b", "invalid host name"),
            ("a b", "invalid host name"),
            ("[::g]", "invalid IPv6 address"),
        ] {
            let error = Hosts::default().add(host, Router::new()).unwrap_err();
            assert!(error.contains(why), "{host}: {error}");
        }
        let mut hosts = hosts(&["a"]);
        assert!(hosts.add("A.", Router::new()).unwrap_err().contains("twice"));
    }
}

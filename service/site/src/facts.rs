//! Facts that conditions and templates look at.

use std::net::{IpAddr, SocketAddr};

use bolide_server::{Head, Method, Request, UserOf};

/// Facts about a request before its handler is called.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Its head, as the client sent it.
    pub head: &'a Head,
    /// The client's address, which a trusted peer may name; none on a Unix socket. IPv4 addresses are never written as IPv6.
    pub client: Option<IpAddr>,
    /// The address of the listener that took the connection.
    pub accepted: Option<SocketAddr>,
    /// It came over TLS, also to a trusted peer that says so.
    pub is_secure: bool,
    /// User of the request, once it was let through.
    pub user: Option<UserOf<'a>>,
}

impl<'a> Facts<'a> {
    /// Those of a request.
    #[must_use]
    pub fn of(request: &Request<'a>) -> Self {
        Self {
            head: request.head(),
            client: request.client(),
            accepted: request.accepted(),
            is_secure: request.scheme() == "https",
            user: Some(request.user()),
        }
    }

    /// `https` or `http`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }

    /// The host that the client asked for, without the port; empty without one.
    #[must_use]
    pub fn host(&self) -> &'a str {
        let authority = self.head.authority().unwrap_or_default();
        match authority.rsplit_once(':') {
            // The colons of an IPv6 address stand in brackets.
            Some((host, port)) if !port.contains(']') => host,
            _ => authority,
        }
    }

    /// The method; that which it asks about for a preflight (Fetch standard §3.3.2).
    #[must_use]
    pub fn method(&self) -> &'a str {
        let head = self.head;
        if *head.method() == Method::OPTIONS
            && head.get_named("origin").is_some()
            && let Some(asked) = head.get_named("access-control-request-method")
        {
            return std::str::from_utf8(asked).unwrap_or_default();
        }
        head.method().as_str()
    }

    /// The path, undecoded.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.target().0
    }

    /// The query with its `?`; empty without one.
    #[must_use]
    pub fn query(&self) -> &'a str {
        self.target().1
    }

    fn target(&self) -> (&'a str, &'a str) {
        let target = self.head.path_and_query();
        target.split_at(target.find('?').unwrap_or(target.len()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bolide_server::Version;

    /// A request's head.
    pub(crate) fn head(method: &str, host: &str, target: &str, fields: &[(&str, &str)]) -> Head {
        let mut head = Head::default();
        head.clear(bolide_semantics::HeadKind::Request, Version::HTTP_11);
        head.set_method(Method::from_bytes(method.as_bytes()).unwrap());
        let target = head.push_text(target.as_bytes());
        head.set_path(target);
        let host = head.push_text(host.as_bytes());
        head.set_authority(host);
        for (name, value) in fields {
            head.append(name, value.as_bytes());
        }
        head
    }

    /// Returns what is known of a request from 192.0.2.1 over TLS.
    pub(crate) fn facts(head: &Head) -> Facts<'_> {
        let client = Some("192.0.2.1".parse().unwrap());
        let accepted = Some("192.0.2.9:443".parse().unwrap());
        Facts { head, client, accepted, is_secure: true, user: None }
    }

    #[test]
    fn the_parts_of_a_target() {
        for (host, target, parts) in [
            ("a:80", "/b?c=d?e", ("a", "/b", "?c=d?e")),
            ("[::1]:80", "/", ("[::1]", "/", "")),
            ("[::1]", "/?", ("[::1]", "/", "?")),
            ("", "*", ("", "*", "")),
        ] {
            let head = head("GET", host, target, &[]);
            let facts = facts(&head);
            assert_eq!((facts.host(), facts.path(), facts.query()), parts, "{host} {target}");
        }
    }
}

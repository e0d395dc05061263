//! Conditions on a request for a route to be there, beyond its host and path.

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use bolide_server::{
    Alternatives, Handler, Method, Networks, Reply, Request, Response, StatusCode, query_pairs,
};

use crate::facts::Facts;
use crate::rewrite::Pattern;
use crate::switch::{Seen, Switch};

/// Cleartext or TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Cleartext.
    Http,
    /// TLS.
    Https,
}

/// Condition on a field or a query parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// There, with any value.
    Present,
    /// Not there.
    Absent,
    /// This.
    Exact(String),
    /// It begins so.
    Prefix(String),
}

impl Test {
    /// Reads a value: `text`, or `text*` for its beginning.
    #[must_use]
    pub fn of(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(beginning) => Self::Prefix(beginning.to_owned()),
            None => Self::Exact(text.to_owned()),
        }
    }

    /// Returns whether the other one holds whenever this does.
    fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(_) | Self::Prefix(_), Self::Present) => true,
            (Self::Exact(text) | Self::Prefix(text), Self::Prefix(beginning)) => {
                text.starts_with(beginning.as_str())
            }
            _ => self == other,
        }
    }

    /// Returns whether it holds for these values.
    fn holds<T: AsRef<[u8]>>(&self, mut values: impl Iterator<Item = T>) -> bool {
        match self {
            Self::Present => values.next().is_some(),
            Self::Absent => values.next().is_none(),
            Self::Exact(text) => values.any(|value| value.as_ref() == text.as_bytes()),
            Self::Prefix(text) => values.any(|value| value.as_ref().starts_with(text.as_bytes())),
        }
    }
}

/// Returns whether one of `own` is always one of `other`; an empty list stands for anything.
fn is_part<T: PartialEq>(own: &[T], other: &[T]) -> bool {
    other.is_empty() || (!own.is_empty() && own.iter().all(|one| other.contains(one)))
}

/// Returns whether all of `other` hold whenever all of `own` do.
fn all_implied(own: &[(String, Test)], other: &[(String, Test)]) -> bool {
    other
        .iter()
        .all(|(name, test)| own.iter().any(|(named, one)| named == name && one.implies(test)))
}

/// Conditions of a route; all of those that are given must hold.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// One of these; GET stands for HEAD, too, and a preflight for the method that it asks about.
    pub methods: Vec<Method>,
    /// Fields by their names in lower case.
    pub fields: Vec<(String, Test)>,
    /// Query parameters by their names, decoded.
    pub query: Vec<(String, Test)>,
    /// The client's address is in one of these.
    pub networks: Networks,
    /// The connection is of this kind.
    pub scheme: Option<Scheme>,
    /// A listener with one of these addresses took the connection; an unspecified address stands for all.
    pub listeners: Vec<SocketAddr>,
    /// The path is such.
    pub pattern: Option<Pattern>,
    /// The file is there.
    pub switch: Option<Switch>,
}

impl Conditions {
    /// Returns whether they always hold.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { methods, fields, query, networks, scheme, listeners, pattern, switch } = self;
        methods.is_empty()
            && fields.is_empty()
            && query.is_empty()
            && networks.is_empty()
            && scheme.is_none()
            && listeners.is_empty()
            && pattern.is_none()
            && switch.is_none()
    }

    /// Returns whether the `other` ones hold whenever these do, as far as that can be seen without a request.
    #[must_use]
    pub fn imply(&self, other: &Self) -> bool {
        let Self { methods, fields, query, networks, scheme, listeners, pattern, switch } = other;
        // What is shown of them says all of them.
        let is_same = |own: &dyn fmt::Debug, other: &dyn fmt::Debug| {
            format!("{own:?}") == format!("{other:?}")
        };
        is_part(&self.methods, methods)
            && is_part(&self.listeners, listeners)
            && all_implied(&self.fields, fields)
            && all_implied(&self.query, query)
            && (networks.is_empty() || is_same(&self.networks, networks))
            && (scheme.is_none() || self.scheme == *scheme)
            && (pattern.is_none() || is_same(&self.pattern, pattern))
            && (switch.is_none() || is_same(&self.switch, switch))
    }

    /// Returns whether they are about where and when a request comes, so that their routes come before all others.
    #[must_use]
    pub fn come_first(&self) -> bool {
        self.scheme.is_some() || !self.listeners.is_empty() || self.switch.is_some()
    }

    /// Returns whether all that the request itself decides holds.
    #[must_use]
    pub fn hold(&self, facts: &Facts<'_>) -> bool {
        let is_one = |own: &Method| {
            let method = facts.method();
            own.as_str() == method || (method == "HEAD" && *own == Method::GET)
        };
        let is_local = |own: &SocketAddr| {
            facts.accepted.is_some_and(|local| {
                let ip = local.ip().to_canonical();
                own.port() == local.port() && (own.ip().is_unspecified() || own.ip() == ip)
            })
        };
        let scheme = if facts.is_secure { Scheme::Https } else { Scheme::Http };
        let query = facts.query().strip_prefix('?').unwrap_or_default();
        (self.methods.is_empty() || self.methods.iter().any(is_one))
            && self.scheme.is_none_or(|own| own == scheme)
            && (self.listeners.is_empty() || self.listeners.iter().any(is_local))
            && (self.networks.is_empty() || self.networks.contains(facts.client))
            && self.fields.iter().all(|(name, test)| {
                let named = facts.head.fields().filter(|field| field.name == name);
                test.holds(named.map(|field| field.value))
            })
            && self.query.iter().all(|(name, test)| {
                let named = query_pairs(query).filter(|(key, _)| key == name);
                test.holds(named.map(|(_, value)| value.into_owned()))
            })
            && self.pattern.as_ref().is_none_or(|pattern| pattern.of(facts.path()).is_some())
    }
}

/// Routes with the same host and path: a request goes to the first whose conditions hold.
#[derive(Default)]
pub struct Tried(Vec<One>);

struct One {
    conditions: Conditions,
    seen: Seen,
    handler: Rc<dyn Handler>,
}

impl Tried {
    /// Adds a route after the others.
    pub fn add(&mut self, conditions: Conditions, handler: Rc<dyn Handler>) {
        self.0.push(One { conditions, seen: Seen::default(), handler });
    }

    fn find(&self, facts: &Facts<'_>, now: Instant) -> Option<&One> {
        self.0.iter().find(|one| {
            let is_on = |switch: &Switch| one.seen.is_on(switch, now);
            one.conditions.hold(facts) && one.conditions.switch.as_ref().is_none_or(is_on)
        })
    }
}

impl Alternatives for Tried {
    fn of(&self, request: &Request<'_>) -> Option<&dyn Handler> {
        self.find(&Facts::of(request), request.now()).map(|one| &*one.handler)
    }
}

impl Handler for Tried {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        match self.of(request) {
            Some(handler) => handler.handle(request),
            None => Response::error(StatusCode::NOT_FOUND).into(),
        }
    }

    fn alternatives(&self) -> Option<&dyn Alternatives> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::{facts, head};
    use bolide_server::Network;

    fn holds(conditions: &Conditions) -> bool {
        let fields = [("accept", "text/html"), ("accept", "image/png"), ("x-a", "")];
        let head = head("HEAD", "a", "/b/c?d=e%20f&g&d=h", &fields);
        conditions.hold(&facts(&head))
    }

    #[track_caller]
    fn networks(list: &[&str]) -> Networks {
        list.iter().map(|text| text.parse::<Network>().unwrap()).collect()
    }

    fn check(set: impl Fn(&mut Conditions), expected: bool) {
        let mut conditions = Conditions::default();
        assert!(conditions.is_empty() && holds(&conditions));
        set(&mut conditions);
        assert!(!conditions.is_empty());
        assert_eq!(holds(&conditions), expected, "{conditions:?}");
    }

    #[test]
    fn methods_and_places_are_one_of_several() {
        check(|own| own.methods = vec![Method::PUT, Method::GET], true);
        check(|own| own.methods = vec![Method::HEAD], true);
        check(|own| own.methods = vec![Method::PUT], false);
        let fields = [("origin", "https://a"), ("access-control-request-method", "PUT")];
        for (count, method, expected) in
            [(2, "PUT", true), (2, "OPTIONS", false), (1, "OPTIONS", true)]
        {
            let head = head("OPTIONS", "a", "/", &fields[..count]);
            let methods = vec![Method::from_bytes(method.as_bytes()).unwrap()];
            let conditions = Conditions { methods, ..Conditions::default() };
            assert_eq!(conditions.hold(&facts(&head)), expected, "{count} {method}");
        }
        check(|own| own.scheme = Some(Scheme::Https), true);
        check(|own| own.scheme = Some(Scheme::Http), false);
        check(|own| own.networks = networks(&["10.0.0.0/8", "192.0.2.1"]), true);
        check(|own| own.networks = networks(&["::/0"]), false);
        for (local, expected) in [
            ("0.0.0.0:443", true),
            ("[::]:443", true),
            ("192.0.2.9:443", true),
            ("192.0.2.8:443", false),
            ("0.0.0.0:80", false),
        ] {
            check(|own| own.listeners = vec![local.parse().unwrap()], expected);
        }
    }

    #[test]
    fn fields_and_parameters_must_all_be_so() {
        for (name, test, expected) in [
            ("accept", Test::of("image/png"), true),
            ("accept", Test::of("image/*"), true),
            ("accept", Test::of("image"), false),
            ("x-a", Test::Present, true),
            ("x-a", Test::of("*"), true),
            ("x-b", Test::Present, false),
            ("x-b", Test::Absent, true),
        ] {
            check(|own| own.fields = vec![(name.to_owned(), test.clone())], expected);
        }
        for (name, test, expected) in [
            ("d", Test::of("e f"), true),
            ("d", Test::of("h"), true),
            ("g", Test::of(""), true),
            ("g", Test::Absent, false),
            ("b", Test::Absent, true),
        ] {
            check(|own| own.query = vec![(name.to_owned(), test.clone())], expected);
        }
        check(|own| own.pattern = Some(Pattern::new("^/b/[a-z]$").unwrap()), true);
        check(|own| own.pattern = Some(Pattern::new("d=e").unwrap()), false);
        let two = |own: &mut Conditions| {
            own.methods = vec![Method::GET];
            own.scheme = Some(Scheme::Http);
        };
        check(two, false);
    }
}

//! Which handler takes which path and method.

mod alternatives;
mod below;
mod hosts;
mod methods;
mod rest;
mod spelling;

use std::rc::Rc;
use std::{fmt, mem};

use bolide_semantics::Head;
use hashbrown::HashMap;
use http::{HeaderValue, Method};

use crate::request::path_of;
use crate::{Handler, Reply, Request};
use below::Below;
use hosts::Hosts;
use methods::Methods;
use rest::{Claimed, claimant};

pub use rest::Rest;

/// Paths and methods with their handlers. Each worker has its own.
///
/// A path is matched as sent, undecoded, without its query: `/users/{id}` matches one segment,
/// `/files/{*path}` the rest, and an exact path wins over both. HEAD is answered by the GET handler
/// without its body; OPTIONS and the `Allow` field of a 405 are made from what is routed. What no path
/// takes goes to the handler of the longest path that it is [below](Self::below), then to who
/// [claims](Self::claim) it, then to the [fallback](Self::fallback). The routes of a [host](Self::host) come before those of all hosts.
///
/// ```
/// use bolide_server::Router;
///
/// let router = Router::new()
///     .get("/ping", |_| "pong")
///     .get("/users/{id}", |request| {
///         format!("user {}", request.param("id").unwrap_or_default())
///     });
/// assert!(router.check().is_ok());
/// ```
#[derive(Default)]
pub struct Router {
    /// By the bytes of the path.
    exact: HashMap<Box<[u8]>, usize, foldhash::fast::FixedState>,
    patterns: matchit::Router<usize>,
    /// Each pattern alone, for routes whose conditions do not hold.
    single_patterns: Vec<matchit::Router<usize>>,
    routes: Vec<Methods>,
    below: Below,
    claimed: Claimed,
    fallback: Option<Box<dyn Handler>>,
    refusals: Option<Box<dyn Handler>>,
    /// Routes that come before all others.
    first: Option<Box<Self>>,
    /// A handler here or in a router below stands for several.
    has_alternatives: bool,
    refuses_disguises: bool,
    hosts: Option<Box<Hosts>>,
    /// The number of its first name.
    first_number: u32,
    error: Option<RouteError>,
}

/// A handler of two methods.
struct Either<H>(Rc<H>);

impl<H: Handler> Handler for Either<H> {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        self.0.handle(request)
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.0.body_bytes_max()
    }
}

/// Why a route can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("route `{path}`: {what}")]
pub struct RouteError {
    /// The path as given.
    pub path: String,
    /// Description of the error.
    pub what: String,
}

/// Position of the names of a router, counted from its first.
const FALLBACK: u32 = 0;
const CLAIMED: u32 = 1;
const ROUTES: u32 = 2;

/// The number of a route, or of what stands for none. It is never given again while a worker lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteId(u32);

impl RouteId {
    /// The request could not be read.
    pub(crate) const REFUSED: Self = Self(0);
    /// No route has the path.
    pub(crate) const NONE: Self = Self(1);
    /// The names of the two before.
    pub(crate) const OTHERS: [&'static str; 2] = ["(refused)", "(none)"];

    /// Its number.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The parts of a path that stand for parameters of its route.
pub(crate) type Parameters<'r, 'p> = Option<matchit::Params<'r, 'p>>;

/// Result of routing a request.
pub(crate) enum Found<'r> {
    Handler(&'r dyn Handler),
    /// The path exists, but not for this method: these are allowed.
    MethodNotAllowed(&'r HeaderValue),
    /// OPTIONS of a path whose routes don't answer it themselves.
    Options(&'r HeaderValue),
    Nothing,
    /// The path would find another route if it were written in the usual way.
    Disguised,
}

impl fmt::Debug for Router {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = formatter.debug_list();
        list.entries(&self.routes).entry(&self.below);
        if let Some(hosts) = &self.hosts {
            list.entry(hosts);
        }
        list.finish()
    }
}

impl Router {
    /// A router without routes: everything is a 404.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers GET and HEAD.
    #[must_use]
    pub fn get<F, R>(self, path: &str, handler: F) -> Self
    where
        F: Fn(&mut Request<'_>) -> R + 'static,
        R: Into<Reply>,
    {
        self.handle(Method::GET, path, handler)
    }

    /// Answers POST.
    #[must_use]
    pub fn post<F, R>(self, path: &str, handler: F) -> Self
    where
        F: Fn(&mut Request<'_>) -> R + 'static,
        R: Into<Reply>,
    {
        self.handle(Method::POST, path, handler)
    }

    /// Answers PUT.
    #[must_use]
    pub fn put<F, R>(self, path: &str, handler: F) -> Self
    where
        F: Fn(&mut Request<'_>) -> R + 'static,
        R: Into<Reply>,
    {
        self.handle(Method::PUT, path, handler)
    }

    /// Answers DELETE.
    #[must_use]
    pub fn delete<F, R>(self, path: &str, handler: F) -> Self
    where
        F: Fn(&mut Request<'_>) -> R + 'static,
        R: Into<Reply>,
    {
        self.handle(Method::DELETE, path, handler)
    }

    /// Answers POST with a [`Handler`] that is no closure, such as [`collect`](crate::collect)'s.
    #[must_use]
    pub fn handle_post(self, path: &str, handler: impl Handler) -> Self {
        self.handle(Method::POST, path, handler)
    }

    /// Answers any method. CONNECT with a path is RFC 8441's extended CONNECT.
    #[must_use]
    pub fn handle(mut self, method: Method, path: &str, handler: impl Handler) -> Self {
        let route = match self.route_of(path) {
            Ok(route) => route,
            Err(what) => {
                let path = path.to_owned();
                self.error.get_or_insert(RouteError { path, what });
                return self;
            }
        };
        self.note(&handler);
        if !self.routes[route].add(method.clone(), Box::new(handler)) {
            let what = format!("{method} is routed twice");
            self.error.get_or_insert_with(|| RouteError { path: path.to_owned(), what });
        }
        self
    }

    /// Answers the methods of a path that no other route of it does.
    #[must_use]
    pub fn any(mut self, path: &str, handler: impl Handler) -> Self {
        self.note(&handler);
        let added = self.route_of(path).and_then(|route| {
            let is_new = self.routes[route].add_any(Box::new(handler));
            if is_new { Ok(()) } else { Err("any method is routed twice".to_owned()) }
        });
        if let Err(what) = added {
            self.error.get_or_insert_with(|| RouteError { path: path.to_owned(), what });
        }
        self
    }

    /// Answers any method of the paths of which `claims` says so, where no route matches or only a pattern
    /// that doesn't take the method; after what is [below](Self::below) a path, before the
    /// [fallback](Self::fallback).
    #[must_use]
    pub fn claim(mut self, claims: fn(&str) -> bool, handler: impl Handler) -> Self {
        self.claimed.push((claims, Box::new(handler)));
        self
    }

    /// Answers requests for WebSocket connections: GET over HTTP/1.1 and extended CONNECT over HTTP/2. The
    /// handler [accepts](crate::websocket::WebSocket::accept) them.
    #[must_use]
    pub fn websocket(self, path: &str, handler: impl Handler) -> Self {
        let handler = Rc::new(handler);
        self.handle(Method::GET, path, Either(Rc::clone(&handler))).handle(
            Method::CONNECT,
            path,
            Either(handler),
        )
    }

    /// Answers what no route matches, in place of the 404.
    #[must_use]
    pub fn fallback(mut self, handler: impl Handler) -> Self {
        self.note(&handler);
        self.fallback = Some(Box::new(handler));
        self
    }

    /// Has [`Handler::on_refusal`] of this handler say which policy a response has to a request that no route takes: a 404, a
    /// 405, a 501. The handler is not called otherwise.
    #[must_use]
    pub fn refusals(mut self, handler: impl Handler) -> Self {
        self.refusals = Some(Box::new(handler));
        self
    }

    /// The handler that says so.
    pub(crate) fn of_refusals(&self) -> Option<&dyn Handler> {
        self.refusals.as_deref()
    }

    /// The paths and patterns that are routed for any host, in no order; those that others are
    /// [below](Self::below) not among them.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().map(Methods::path)
    }

    /// Takes out what answers where no route matches, for a handler that comes before it and leaves it the
    /// rest; none if there is nothing.
    pub fn take_rest(&mut self) -> Option<Rest> {
        let (claimed, fallback) = (mem::take(&mut self.claimed), self.fallback.take());
        let is_there = fallback.is_some() || !claimed.is_empty();
        is_there.then_some(Rest { claimed, fallback })
    }

    /// Answers any method of `path`, which ends with a slash, and of everything below it that no other
    /// route takes. Of several, the longest counts.
    #[must_use]
    pub fn below(mut self, path: &str, handler: impl Handler) -> Self {
        self.note(&handler);
        if let Err(what) = self.below.add(path, Box::new(handler)) {
            self.error.get_or_insert_with(|| RouteError { path: path.to_owned(), what });
        }
        self
    }

    /// Answers requests for a host by routes of its own; what these don't take goes to the routes without
    /// a host. `example.org` is that name alone, `*.example.org` any name below it; the port that a request
    /// names does not matter. A name wins over wildcards, and the longest wildcard over others.
    ///
    /// ```
    /// use bolide_server::Router;
    ///
    /// let router = Router::new()
    ///     .get("/ping", |_| "pong")
    ///     .host("example.org", Router::new().get("/", |_| "Hello"));
    /// assert!(router.check().is_ok());
    /// ```
    #[must_use]
    pub fn host(mut self, host: &str, routes: Self) -> Self {
        let error = routes
            .error
            .clone()
            .map(|error| RouteError { path: format!("{host}{}", error.path), what: error.what });
        self.has_alternatives |= routes.has_alternatives();
        let added = self.hosts.get_or_insert_default().add(host, routes);
        let named = |what| RouteError { path: host.to_owned(), what };
        let error = error.or_else(|| added.err().map(named));
        if let Some(error) = error {
            self.error.get_or_insert(error);
        }
        self
    }

    /// Checks whether every route given so far can be.
    ///
    /// # Errors
    ///
    /// The first [`RouteError`]: a path without its leading slash, a pattern that can't be parsed or
    /// that clashes with another, a method or a host routed twice, a host that no request can ask for.
    pub fn check(&self) -> Result<(), RouteError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    fn route_of(&mut self, path: &str) -> Result<usize, String> {
        if !path.starts_with('/') {
            return Err("a path begins with a slash".to_owned());
        }
        if path.contains(['?', '#']) {
            return Err("a path has no query and no fragment".to_owned());
        }
        let known = match self.exact.get(path.as_bytes()) {
            Some(route) => Some(*route),
            None => self.routes.iter().position(|route| route.path() == path),
        };
        if let Some(route) = known {
            return Ok(route);
        }
        let route = self.routes.len();
        if path.contains(['{', '}']) {
            self.patterns.insert(path, route).map_err(|error| match error {
                matchit::InsertError::Conflict { with } => {
                    format!("it clashes with `{with}`: both match the same paths")
                }
                error => error.to_string(),
            })?;
            let mut single = matchit::Router::new();
            if single.insert(path, route).is_ok() {
                self.single_patterns.push(single);
            }
        } else {
            self.exact.insert(path.as_bytes().into(), route);
        }
        self.routes.push(Methods::new(path));
        Ok(route)
    }

    fn note(&mut self, handler: &dyn Handler) {
        self.has_alternatives |= handler.alternatives().is_some();
    }

    /// Returns who claims a path that no route takes.
    fn claimant(&self, path: &[u8]) -> Option<&dyn Handler> {
        if self.claimed.is_empty() {
            return None;
        }
        claimant(&self.claimed, std::str::from_utf8(path).unwrap_or_default())
    }

    /// Finds what answers the request with this head. The parameters of a route that has some are set, for they are
    /// large, and most have none.
    #[inline]
    pub(crate) fn find<'r, 'h>(
        &'r self,
        head: &'h Head,
        parameters: &mut Parameters<'r, 'h>,
    ) -> (RouteId, Found<'r>) {
        let (method, path) = (head.method(), path_of(head.path_and_query_bytes()));
        if let Some(hosts) = &self.hosts
            && let Some(routes) = head.authority().and_then(|authority| hosts.of(authority))
        {
            let found = routes.find_path(method, path, parameters);
            if !matches!(found.1, Found::Nothing) {
                return found;
            }
        }
        self.find_path(method, path, parameters)
    }

    /// Has paths refused with 400 that would find another route if they were written in the usual way: without escapes for
    /// letters, digits and slashes, without backslashes, and with single slashes. Handlers decode paths, and so do upstreams, so a route that is
    /// protected could be reached by another one: `/%61dmin/` by that of `/`. Default: off.
    #[must_use]
    pub fn refuse_disguised_paths(mut self) -> Self {
        self.refuses_disguises = true;
        self
    }

    /// Returns whether such a path is to be refused.
    #[inline]
    pub(crate) fn is_disguised(&self, head: &Head) -> bool {
        self.refuses_disguises && self.finds_another(head)
    }

    fn finds_another(&self, head: &Head) -> bool {
        let path = path_of(head.path_and_query_bytes());
        let Some(usual) = spelling::usual(path) else { return false };
        let route = |router: &Self, path: &[u8]| {
            let routes = router.hosts.as_ref().zip(head.authority());
            let own = routes.and_then(|(hosts, authority)| hosts.of(authority));
            let found = own.map(|own| own.find_path(head.method(), path, &mut None));
            let is_found = |found: &(RouteId, Found<'_>)| !matches!(found.1, Found::Nothing);
            let found = found.filter(is_found);
            found.unwrap_or_else(|| router.find_path(head.method(), path, &mut None)).0
        };
        let mut tiers = std::iter::once(self).chain(self.first.as_deref());
        tiers.any(|router| route(router, path) != route(router, &usual))
    }

    #[inline]
    fn find_path<'r, 'p>(
        &'r self,
        method: &Method,
        path: &'p [u8],
        parameters: &mut Parameters<'r, 'p>,
    ) -> (RouteId, Found<'r>) {
        if let Some(route) = self.exact.get(path) {
            return self.found(*route, method);
        }
        if self.exact.len() == self.routes.len() {
            // There is no pattern.
            return self.find_rest(path);
        }
        // Only now it must be text, which the target of a request is.
        match self.patterns.at(std::str::from_utf8(path).unwrap_or_default()) {
            Ok(found) => {
                let route = *found.value;
                if self.routes[route].find(method).is_none()
                    && let Some(handler) = self.claimant(path)
                {
                    return (RouteId(self.first_number + CLAIMED), Found::Handler(handler));
                }
                *parameters = Some(found.params);
                self.found(route, method)
            }
            Err(_) => self.find_rest(path),
        }
    }

    /// Returns what answers `method` on a route.
    #[inline]
    fn found(&self, route: usize, method: &Method) -> (RouteId, Found<'_>) {
        let methods = &self.routes[route];
        let found = match methods.find(method) {
            Some(handler) => Found::Handler(handler),
            None if method == Method::OPTIONS => Found::Options(methods.allow()),
            None => Found::MethodNotAllowed(methods.allow()),
        };
        (RouteId(self.first_number + ROUTES + route as u32), found)
    }

    /// Returns what answers a path that no route has.
    #[inline]
    fn find_rest(&self, path: &[u8]) -> (RouteId, Found<'_>) {
        let (name, handler) = if let Some((at, handler)) = self.below.find(path) {
            (ROUTES + (self.routes.len() + at) as u32, handler)
        } else if let Some(handler) = self.claimant(path) {
            (CLAIMED, handler)
        } else if let Some(handler) = self.fallback.as_deref() {
            (FALLBACK, handler)
        } else {
            return (RouteId::NONE, Found::Nothing);
        };
        (RouteId(self.first_number + name), Found::Handler(handler))
    }

    /// Numbers the routes from `first` on, and says which number comes next.
    pub(crate) fn number(&mut self, first: u32) -> u32 {
        self.first_number = first;
        let own = first + ROUTES + (self.routes.len() + self.below.paths().count()) as u32;
        let hosts = self.hosts.iter_mut().flat_map(|hosts| hosts.routers_mut());
        let next = hosts.fold(own, |next, router| router.number(next));
        self.first.as_mut().map_or(next, |first| first.number(next))
    }

    /// The names under which requests are counted, in the order of their numbers: a route's is its pattern as
    /// it was given.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = vec!["(fallback)".to_owned(), "(claimed)".to_owned()];
        names.extend(self.routes.iter().map(|route| route.path().to_owned()));
        names.extend(self.below.paths().map(|path| format!("{path}*")));
        for (host, router) in self.hosts.iter().flat_map(|hosts| hosts.routers()) {
            names.extend(router.names().into_iter().map(|name| format!("{host}{name}")));
        }
        let first = self.first.iter().flat_map(|first| first.names());
        names.extend(first.map(|name| format!("(first){name}")));
        names
    }

    /// The name of a route, if it is one of this router's.
    pub(crate) fn name(&self, route: RouteId) -> Option<String> {
        let at = route.0.checked_sub(self.first_number)?;
        self.names().into_iter().nth(at as usize)
    }
}

#[cfg(test)]
mod tests;

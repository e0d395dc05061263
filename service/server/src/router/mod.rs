//! Which handler answers which path and method.

mod below;
mod hosts;
mod methods;

use std::fmt;

use hashbrown::HashMap;
use http::{HeaderValue, Method};

use crate::{Handler, Reply, Request};
use below::Below;
use hosts::Hosts;
use methods::Methods;

/// Paths and methods with their handlers. Each worker has its own.
///
/// A path is matched as sent, undecoded, without its query: `/users/{id}` matches one segment,
/// `/files/{*path}` the rest, and an exact path wins over both. HEAD is answered by the GET handler
/// without its body; OPTIONS and the `Allow` field of a 405 are made from what is routed. What no path
/// takes goes to the handler of the longest path that it is [below](Self::below), then to the
/// [fallback](Self::fallback). The routes of a [host](Self::host) come before those of all hosts.
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
    exact: HashMap<Box<str>, usize, foldhash::fast::FixedState>,
    patterns: matchit::Router<usize>,
    routes: Vec<Methods>,
    below: Below,
    fallback: Option<Box<dyn Handler>>,
    hosts: Option<Box<Hosts>>,
    error: Option<RouteError>,
}

/// Why a route can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("route `{path}`: {what}")]
pub struct RouteError {
    /// The path as given.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
}

/// What a router says of a request.
pub(crate) enum Found<'r, 'p> {
    Handler(&'r dyn Handler, Option<matchit::Params<'r, 'p>>),
    /// The path exists, but not for this method: these are allowed.
    MethodNotAllowed(&'r HeaderValue),
    /// OPTIONS of a path whose routes don't answer it themselves.
    Options(&'r HeaderValue),
    Nothing,
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
        if !self.routes[route].add(method.clone(), Box::new(handler)) {
            let what = format!("{method} is routed twice");
            self.error.get_or_insert_with(|| RouteError { path: path.to_owned(), what });
        }
        self
    }

    /// Answers the methods of a path that no other route of it does.
    #[must_use]
    pub fn any(mut self, path: &str, handler: impl Handler) -> Self {
        let added = self.route_of(path).and_then(|route| {
            let is_new = self.routes[route].add_any(Box::new(handler));
            if is_new { Ok(()) } else { Err("any method is routed twice".to_owned()) }
        });
        if let Err(what) = added {
            self.error.get_or_insert_with(|| RouteError { path: path.to_owned(), what });
        }
        self
    }

    /// Answers what no route matches, in place of the 404.
    #[must_use]
    pub fn fallback(mut self, handler: impl Handler) -> Self {
        self.fallback = Some(Box::new(handler));
        self
    }

    /// Takes the fallback out, for one that comes before it and asks it for the rest.
    pub fn take_fallback(&mut self) -> Option<Box<dyn Handler>> {
        self.fallback.take()
    }

    /// Answers any method of `path`, which ends with a slash, and of everything below it that no other
    /// route takes. Of several, the longest counts.
    #[must_use]
    pub fn below(mut self, path: &str, handler: impl Handler) -> Self {
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
        let added = self.hosts.get_or_insert_default().add(host, routes);
        let named = |what| RouteError { path: host.to_owned(), what };
        let error = error.or_else(|| added.err().map(named));
        if let Some(error) = error {
            self.error.get_or_insert(error);
        }
        self
    }

    /// Whether every route given so far can be.
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
        let known = match self.exact.get(path) {
            Some(route) => Some(*route),
            None => self.routes.iter().position(|route| route.path() == path),
        };
        if let Some(route) = known {
            return Ok(route);
        }
        let route = self.routes.len();
        if path.contains(['{', '}']) {
            self.patterns.insert(path, route).map_err(|error| error.to_string())?;
        } else {
            self.exact.insert(path.into(), route);
        }
        self.routes.push(Methods::new(path));
        Ok(route)
    }

    /// Finds what answers `method` on `path`; `authority` is asked for when there are routes by host.
    #[inline]
    pub(crate) fn find<'r, 'p, 'a>(
        &'r self,
        method: &Method,
        path: &'p str,
        authority: impl FnOnce() -> Option<&'a str>,
    ) -> Found<'r, 'p> {
        if let Some(hosts) = &self.hosts
            && let Some(routes) = authority().and_then(|authority| hosts.of(authority))
        {
            let found = routes.find_path(method, path);
            if !matches!(found, Found::Nothing) {
                return found;
            }
        }
        self.find_path(method, path)
    }

    #[inline]
    fn find_path<'r, 'p>(&'r self, method: &Method, path: &'p str) -> Found<'r, 'p> {
        let (route, parameters) = if let Some(route) = self.exact.get(path) {
            (*route, None)
        } else if let Ok(found) = self.patterns.at(path) {
            (*found.value, Some(found.params))
        } else {
            let rest = self.below.find(path).or(self.fallback.as_deref());
            return rest.map_or(Found::Nothing, |handler| Found::Handler(handler, None));
        };
        let methods = &self.routes[route];
        match methods.find(method) {
            Some(handler) => Found::Handler(handler, parameters),
            None if method == Method::OPTIONS => Found::Options(methods.allow()),
            None => Found::MethodNotAllowed(methods.allow()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(router: &Router, method: Method, path: &str) -> String {
        found_at(router, method, "", path)
    }

    fn found_at(router: &Router, method: Method, host: &str, path: &str) -> String {
        match router.find(&method, path, || Some(host)) {
            Found::Handler(handler, parameters) => {
                let parameters: Vec<_> = parameters
                    .iter()
                    .flat_map(matchit::Params::iter)
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                format!("{:?} {}", handler.body_bytes_max(), parameters.join(","))
            }
            Found::MethodNotAllowed(allow) => format!("405 {}", allow.to_str().unwrap()),
            Found::Options(allow) => format!("204 {}", allow.to_str().unwrap()),
            Found::Nothing => "404".to_owned(),
        }
    }

    fn numbered(number: u64) -> impl Handler {
        crate::body_limit(number, |_: &mut Request<'_>| "")
    }

    #[test]
    fn exact_paths_win_over_parameters_and_these_over_the_rest() {
        let router = Router::new()
            .handle(Method::GET, "/users/me", numbered(1))
            .handle(Method::GET, "/users/{id}", numbered(2))
            .handle(Method::DELETE, "/users/{id}", numbered(3))
            .handle(Method::GET, "/files/{*path}", numbered(4));
        assert_eq!(router.check(), Ok(()));
        for (method, path, expected) in [
            (Method::GET, "/users/me", "Some(1) "),
            (Method::HEAD, "/users/7", "Some(2) id=7"),
            (Method::DELETE, "/users/7", "Some(3) id=7"),
            (Method::GET, "/files/a/b", "Some(4) path=a/b"),
            (Method::GET, "/users", "404"),
            (Method::GET, "/users/7/x", "404"),
            (Method::GET, "/Users/me", "404"),
            (Method::POST, "/users/7", "405 DELETE, GET, HEAD, OPTIONS"),
            (Method::OPTIONS, "/users/me", "204 GET, HEAD, OPTIONS"),
        ] {
            assert_eq!(found(&router, method, path), expected, "{path}");
        }
    }

    #[test]
    fn routes_that_cannot_be_are_named() {
        let error = |router: Router| router.check().unwrap_err().to_string();
        assert_eq!(
            error(Router::new().get("ping", |_| "")),
            "route `ping`: a path begins with a slash"
        );
        let twice = Router::new().get("/a", |_| "").get("/a", |_| "");
        assert_eq!(error(twice), "route `/a`: GET is routed twice");
        let clash = Router::new().get("/{a}", |_| "").get("/{b}", |_| "");
        assert!(error(clash).starts_with("route `/{b}`: "));
        assert!(error(Router::new().get("/{a", |_| "")).starts_with("route `/{a`: "));
    }

    #[test]
    fn any_method_is_what_no_other_route_of_the_path_answers() {
        let router = Router::new()
            .any("/a", numbered(1))
            .handle(Method::POST, "/a", numbered(2))
            .any("/b/{id}", numbered(3));
        assert_eq!(router.check(), Ok(()));
        for (method, path, expected) in [
            (Method::GET, "/a", "Some(1) "),
            (Method::OPTIONS, "/a", "Some(1) "),
            (Method::POST, "/a", "Some(2) "),
            (Method::PUT, "/b/7", "Some(3) id=7"),
        ] {
            assert_eq!(found(&router, method, path), expected, "{path}");
        }
        let twice = Router::new().any("/a", numbered(1)).any("/a", numbered(2));
        let error = twice.check().unwrap_err().to_string();
        assert_eq!(error, "route `/a`: any method is routed twice");
    }

    #[test]
    fn the_longest_path_above_takes_what_no_route_does() {
        let router = Router::new()
            .handle(Method::GET, "/api/ping", numbered(1))
            .handle(Method::GET, "/api/{name}/list", numbered(2))
            .below("/api/", numbered(3))
            .below("/api/v2/", numbered(4))
            .fallback(numbered(5));
        assert_eq!(router.check(), Ok(()));
        for (method, path, expected) in [
            (Method::GET, "/api/ping", "Some(1) "),
            (Method::GET, "/api/v2/list", "Some(2) name=v2"),
            (Method::PUT, "/api/v2/other", "Some(4) "),
            (Method::PUT, "/api/", "Some(3) "),
            (Method::GET, "/api/v2", "Some(3) "),
            (Method::GET, "/api", "Some(5) "),
        ] {
            assert_eq!(found(&router, method, path), expected, "{path}");
        }
        let error = |router: Router| router.check().unwrap_err().to_string();
        let twice = Router::new().below("/a/", numbered(1)).below("/a/", numbered(2));
        assert_eq!(error(twice), "route `/a/`: it is routed twice");
        for path in ["/a", "a/", "", "/{a}/", "/a?/"] {
            assert!(error(Router::new().below(path, numbered(1))).contains("has paths below"));
        }
    }

    #[test]
    fn a_hosts_routes_come_first_and_leave_the_rest_to_the_others() {
        let own = Router::new().handle(Method::GET, "/", numbered(1)).handle(
            Method::GET,
            "/own",
            numbered(2),
        );
        let router = Router::new()
            .handle(Method::GET, "/", numbered(3))
            .handle(Method::GET, "/shared", numbered(4))
            .host("example.org", own)
            .host("*.example.org", Router::new().fallback(numbered(5)));
        assert_eq!(router.check(), Ok(()));
        for (host, path, expected) in [
            ("example.org:8080", "/", "Some(1) "),
            ("example.org", "/own", "Some(2) "),
            ("example.org", "/shared", "Some(4) "),
            ("example.org", "/none", "404"),
            ("other.org", "/", "Some(3) "),
            ("other.org", "/own", "404"),
            ("www.example.org", "/shared", "Some(5) "),
        ] {
            assert_eq!(found_at(&router, Method::GET, host, path), expected, "{host}{path}");
        }
        assert_eq!(
            found_at(&router, Method::PUT, "example.org", "/"),
            "405 GET, HEAD, OPTIONS",
            "the host's route is the one that was asked for"
        );
    }

    #[test]
    fn hosts_that_cannot_be_are_named() {
        let error = |router: Router| router.check().unwrap_err().to_string();
        let wrong = Router::new().host("a:80", Router::new());
        assert_eq!(error(wrong), "route `a:80`: a host has no scheme and no port");
        let inner = Router::new().host("a", Router::new().get("b", |_| ""));
        assert_eq!(error(inner), "route `ab`: a path begins with a slash");
    }

    #[test]
    fn the_fallback_takes_what_is_left() {
        let router = Router::new().get("/a", |_| "").fallback(numbered(9));
        assert_eq!(found(&router, Method::PUT, "/b"), "Some(9) ");
    }
}

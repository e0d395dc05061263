//! Which handler answers which path and method.

mod methods;

use std::fmt;

use hashbrown::HashMap;
use http::{HeaderValue, Method};

use crate::{Handler, Reply, Request};
use methods::Methods;

/// Paths and methods with their handlers. Each worker has its own.
///
/// A path is matched as sent, undecoded, without its query: `/users/{id}` matches one segment,
/// `/files/{*path}` the rest, and an exact path wins over both. HEAD is answered by the GET handler
/// without its body; OPTIONS and the `Allow` field of a 405 are made from what is routed.
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
    claimed: Vec<Claim>,
    fallback: Option<Box<dyn Handler>>,
    error: Option<RouteError>,
}

/// Which paths a handler claims, and the handler.
type Claim = (fn(&str) -> bool, Box<dyn Handler>);

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
        formatter.debug_list().entries(&self.routes).finish()
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

    /// Answers any method of the paths of which `claims` says so, where no route matches or only a pattern
    /// that doesn't take the method; before the [fallback](Self::fallback).
    #[must_use]
    pub fn claim(mut self, claims: fn(&str) -> bool, handler: impl Handler) -> Self {
        self.claimed.push((claims, Box::new(handler)));
        self
    }

    /// Answers what no route matches, in place of the 404.
    #[must_use]
    pub fn fallback(mut self, handler: impl Handler) -> Self {
        self.fallback = Some(Box::new(handler));
        self
    }

    /// Whether every route given so far can be.
    ///
    /// # Errors
    ///
    /// The first [`RouteError`]: a path without its leading slash, a pattern that can't be parsed or
    /// that clashes with another, a method routed twice.
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

    /// Who claims a path that no route takes.
    fn claimant(&self, path: &str) -> Option<&dyn Handler> {
        let mut claimed = self.claimed.iter();
        claimed.find(|(claims, _)| claims(path)).map(|(_, handler)| &**handler)
    }

    /// Finds what answers `method` on `path`.
    #[inline]
    pub(crate) fn find<'r, 'p>(&'r self, method: &Method, path: &'p str) -> Found<'r, 'p> {
        let (route, parameters) = if let Some(route) = self.exact.get(path) {
            (*route, None)
        } else if let Ok(found) = self.patterns.at(path) {
            (*found.value, Some(found.params))
        } else {
            return self
                .claimant(path)
                .or(self.fallback.as_deref())
                .map_or(Found::Nothing, |handler| Found::Handler(handler, None));
        };
        let methods = &self.routes[route];
        match methods.find(method) {
            Some(handler) => Found::Handler(handler, parameters),
            None if parameters.is_some()
                && let Some(handler) = self.claimant(path) =>
            {
                Found::Handler(handler, None)
            }
            None if method == Method::OPTIONS => Found::Options(methods.allow()),
            None => Found::MethodNotAllowed(methods.allow()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(router: &Router, method: Method, path: &str) -> String {
        match router.find(&method, path) {
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
    fn the_fallback_takes_what_is_left() {
        let router = Router::new().get("/a", |_| "").fallback(numbered(9));
        assert_eq!(found(&router, Method::PUT, "/b"), "Some(9) ");
    }

    #[test]
    fn what_is_claimed_comes_after_routes_and_before_the_fallback() {
        let router = Router::new()
            .handle(Method::GET, "/1", numbered(1))
            .handle(Method::GET, "/{*path}", numbered(2))
            .claim(|path| path.starts_with("/1"), numbered(3))
            .fallback(numbered(4));
        for (method, path, expected) in [
            (Method::GET, "/1", "Some(1) "),
            (Method::PUT, "/1", "405 GET, HEAD, OPTIONS"),
            (Method::GET, "/12", "Some(2) path=12"),
            (Method::PUT, "/12", "Some(3) "),
            (Method::PUT, "/2", "405 GET, HEAD, OPTIONS"),
        ] {
            assert_eq!(found(&router, method, path), expected, "{path}");
        }
        let router = Router::new().claim(|path| path == "/1", numbered(3)).fallback(numbered(4));
        assert_eq!(found(&router, Method::GET, "/1"), "Some(3) ");
        assert_eq!(found(&router, Method::GET, "/2"), "Some(4) ");
    }
}

//! Routes with conditions: one that does not take a request is passed over, as if it were not there.

use bolide_semantics::Head;

use super::{CLAIMED, FALLBACK, Found, Parameters, ROUTES, RouteId, Router};
use crate::request::path_of;
use crate::{Handler, Request};

impl Router {
    /// Has these routes come before all others, also before those of [hosts](Self::host): what they don't take goes on to
    /// the others.
    #[must_use]
    pub fn first(mut self, routes: Self) -> Self {
        if let Some(error) = &routes.error {
            self.error.get_or_insert_with(|| error.clone());
        }
        self.has_alternatives = true;
        self.first = Some(Box::new(routes));
        self
    }

    /// Returns whether [`Self::find_alternative`] must find what answers a request, and [`Self::find`] is not enough.
    #[inline]
    pub(crate) fn has_alternatives(&self) -> bool {
        self.has_alternatives
    }

    /// As [`Self::find`], where handlers stand for several.
    pub(crate) fn find_alternative<'r, 'h>(
        &'r self,
        request: &Request<'_>,
        head: &'h Head,
        parameters: &mut Parameters<'r, 'h>,
    ) -> (RouteId, Found<'r>) {
        if let Some(first) = &self.first {
            let found = first.find_alternative(request, head, parameters);
            if !matches!(found.1, Found::Nothing) {
                return found;
            }
        }
        if let Some(hosts) = &self.hosts
            && let Some(routes) = head.authority().and_then(|authority| hosts.of(authority))
        {
            let found = routes.find_path_of(request, head, parameters);
            if !matches!(found.1, Found::Nothing) {
                return found;
            }
        }
        self.find_path_of(request, head, parameters)
    }

    fn find_path_of<'r, 'h>(
        &'r self,
        request: &Request<'_>,
        head: &'h Head,
        parameters: &mut Parameters<'r, 'h>,
    ) -> (RouteId, Found<'r>) {
        let path = path_of(head.path_and_query_bytes());
        let exact = self.exact.get(path).and_then(|route| self.found_of(*route, request));
        if let Some(found) = exact {
            return found;
        }
        if self.exact.len() < self.routes.len()
            && let Some(found) = self.find_pattern_of(request, path, parameters)
        {
            return found;
        }
        let below = self.below.matching(path).find_map(|(at, handler)| {
            Some((ROUTES + (self.routes.len() + at) as u32, chosen(handler, request)?))
        });
        let claimed = || Some((CLAIMED, self.claimant(path)?));
        let fallback = || Some((FALLBACK, chosen(self.fallback.as_deref()?, request)?));
        match below.or_else(claimed).or_else(fallback) {
            Some((name, handler)) => (RouteId(self.first_number + name), Found::Handler(handler)),
            None => (RouteId::NONE, Found::Nothing),
        }
    }

    /// Returns what answers by a pattern. Where the one that fits best does not take the request, the others are tried in the
    /// order in which they were given.
    fn find_pattern_of<'r, 'h>(
        &'r self,
        request: &Request<'_>,
        path: &'h [u8],
        parameters: &mut Parameters<'r, 'h>,
    ) -> Option<(RouteId, Found<'r>)> {
        let text = std::str::from_utf8(path).unwrap_or_default();
        let best = self.patterns.at(text).ok()?;
        let others = self.single_patterns.iter().filter_map(|pattern| pattern.at(text).ok());
        for matched in std::iter::once(best).chain(others) {
            let route = *matched.value;
            if self.routes[route].find(request.method()).is_none()
                && let Some(handler) = self.claimant(path)
            {
                return Some((RouteId(self.first_number + CLAIMED), Found::Handler(handler)));
            }
            if let Some(found) = self.found_of(route, request) {
                *parameters = Some(matched.params);
                return Some(found);
            }
        }
        None
    }

    /// Returns what answers a request on a route; `None`: the route is not there for it.
    fn found_of(&self, route: usize, request: &Request<'_>) -> Option<(RouteId, Found<'_>)> {
        let (number, found) = self.found(route, request.method());
        let Found::Handler(handler) = found else { return Some((number, found)) };
        match chosen(handler, request) {
            Some(handler) => Some((number, Found::Handler(handler))),
            None if self.routes[route].is_any() => None,
            None => Some((number, Found::MethodNotAllowed(self.routes[route].allow()))),
        }
    }
}

/// The handler that stands for this one.
fn chosen<'r>(handler: &'r dyn Handler, request: &Request<'_>) -> Option<&'r dyn Handler> {
    match handler.alternatives() {
        None => Some(handler),
        Some(alternatives) => alternatives.of(request),
    }
}

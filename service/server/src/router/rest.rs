//! Handlers for requests that no route matches.

use std::fmt;

use crate::{Handler, Reply, Request, Response, StatusCode};

/// Handlers of the paths that they claim.
pub(super) type Claimed = Vec<(fn(&str) -> bool, Box<dyn Handler>)>;

/// Returns who claims a path.
#[inline]
pub(super) fn claimant<'c>(claimed: &'c Claimed, path: &str) -> Option<&'c dyn Handler> {
    let found = claimed.iter().find(|(claims, _)| claims(path));
    found.map(|(_, handler)| &**handler)
}

/// Handlers that were taken out of a router: those that claim a path, then the fallback.
pub struct Rest {
    pub(super) claimed: Claimed,
    pub(super) fallback: Option<Box<dyn Handler>>,
}

impl fmt::Debug for Rest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (claimed, has_fallback) = (self.claimed.len(), self.fallback.is_some());
        let mut shown = formatter.debug_struct("Rest");
        shown.field("claimed", &claimed).field("has_fallback", &has_fallback).finish()
    }
}

impl Rest {
    fn find(&self, path: &str) -> Option<&dyn Handler> {
        claimant(&self.claimed, path).or(self.fallback.as_deref())
    }
}

impl Handler for Rest {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        match self.find(request.path()) {
            Some(handler) => handler.handle(request),
            None => Response::error(StatusCode::NOT_FOUND).into(),
        }
    }

    fn takes(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    fn body_bytes_max(&self) -> Option<u64> {
        let claimed = self.claimed.iter().map(|(_, handler)| &**handler);
        claimed.chain(self.fallback.as_deref()).filter_map(Handler::body_bytes_max).max()
    }
}

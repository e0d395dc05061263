//! Handlers of whole parts of the tree of paths.

use std::fmt;

use crate::Handler;

/// Handlers by the path that they are below of, the longest first.
#[derive(Default)]
pub(super) struct Below(Vec<(Box<str>, Box<dyn Handler>)>);

impl fmt::Debug for Below {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(path, _)| path)).finish()
    }
}

impl Below {
    /// Adds a handler for `path`, which ends with a slash, and everything below it.
    pub(super) fn add(&mut self, path: &str, handler: Box<dyn Handler>) -> Result<(), String> {
        if !path.starts_with('/') || !path.ends_with('/') {
            return Err("a path prefix begins and ends with a slash".to_owned());
        }
        if path.contains(['?', '#', '{', '}']) {
            return Err("a path prefix has no query, fragment or parameter".to_owned());
        }
        let at = self.0.partition_point(|(known, _)| known.len() > path.len());
        if self.0[at..].iter().any(|(known, _)| **known == *path) {
            return Err("it is routed twice".to_owned());
        }
        self.0.insert(at, (path.into(), handler));
        Ok(())
    }

    /// The handler of a path, with its place among the paths.
    #[inline]
    pub(super) fn find(&self, path: &[u8]) -> Option<(usize, &dyn Handler)> {
        let at = self.0.iter().position(|(below, _)| path.starts_with(below.as_bytes()))?;
        Some((at, &*self.0[at].1))
    }

    /// The handlers of a path with their places, that of the longest prefix first.
    pub(super) fn matching<'s, 'p>(
        &'s self,
        path: &'p [u8],
    ) -> impl Iterator<Item = (usize, &'s dyn Handler)> + use<'s, 'p> {
        let matches = self.0.iter().enumerate();
        let matches = matches.filter(|(_, (below, _))| path.starts_with(below.as_bytes()));
        matches.map(|(at, (_, handler))| (at, &**handler))
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, _)| &**path)
    }
}

//! The methods of one path (RFC 9110 §9, §10.2.1).

use std::fmt;

use http::{HeaderValue, Method};

use crate::Handler;

/// The handlers of one path.
pub(super) struct Methods {
    path: Box<str>,
    handlers: Vec<(Method, Box<dyn Handler>)>,
    /// Handler of the other methods.
    any: Option<Box<dyn Handler>>,
    /// The `Allow` field: what is routed, HEAD with GET, and OPTIONS always.
    allow: HeaderValue,
}

impl fmt::Debug for Methods {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.path, self.allow)
    }
}

impl Methods {
    pub(super) fn new(path: &str) -> Self {
        let allow = HeaderValue::from_static("OPTIONS");
        Self { path: path.into(), handlers: Vec::new(), any: None, allow }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn allow(&self) -> &HeaderValue {
        &self.allow
    }

    /// Returns whether the method was free.
    pub(super) fn add(&mut self, method: Method, handler: Box<dyn Handler>) -> bool {
        if self.handlers.iter().any(|(known, _)| *known == method) {
            return false;
        }
        self.handlers.push((method, handler));
        let mut names: Vec<&str> = self.handlers.iter().map(|(known, _)| known.as_str()).collect();
        if names.contains(&"GET") {
            names.push("HEAD");
        }
        names.push("OPTIONS");
        names.sort_unstable();
        names.dedup();
        self.allow = HeaderValue::try_from(names.join(", "))
            .expect("a list of methods, which are tokens, is a field value");
        true
    }

    /// Returns whether nothing answered any method yet.
    pub(super) fn add_any(&mut self, handler: Box<dyn Handler>) -> bool {
        let is_free = self.any.is_none();
        self.any = Some(handler);
        is_free
    }

    /// Returns whether all handlers take any method.
    pub(super) fn is_any(&self) -> bool {
        self.handlers.is_empty()
    }

    #[inline]
    pub(super) fn find(&self, method: &Method) -> Option<&dyn Handler> {
        let exact = self.handlers.iter().find(|(known, _)| known == method);
        let get = || {
            let head = *method == Method::HEAD;
            self.handlers.iter().find(|(known, _)| head && *known == Method::GET)
        };
        exact.or_else(get).map(|(_, handler)| &**handler).or(self.any.as_deref())
    }
}

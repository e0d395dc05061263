//! RFC 8555 §8.3: what a CA finds at `/.well-known/acme-challenge/`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The responses to `http-01` challenges, for all workers. Clones are the same table.
#[derive(Debug, Clone, Default)]
pub struct Responses(Arc<RwLock<BTreeMap<String, String>>>);

impl Responses {
    /// The path below which a CA looks for the token of a challenge.
    pub const PATH: &'static str = "/.well-known/acme-challenge/";

    /// The content for a token; `None`: no challenge has it.
    #[must_use]
    pub fn get(&self, token: &str) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    pub(crate) fn set(&self, token: &str, content: &str) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(token.to_owned(), content.to_owned());
    }

    pub(crate) fn remove(&self, token: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}

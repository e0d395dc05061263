//! What happened at each upstream, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What one worker counts of one upstream: written by it alone, read by anybody.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// What was counted of one upstream.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct UpstreamStats {
            /// The upstream, as it was named.
            pub name: String,
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(crate) fn add_to(&self, sum: &mut UpstreamStats) {
                $(sum.$name += self.$name.0.load(Ordering::Relaxed);)*
            }
        }
    };
}

counters! {
    /// Requests that were sent.
    requests,
    /// Answers whose head came.
    answers,
    /// Requests that failed: no answer, or a broken one.
    failures,
    /// Those of them that took too long.
    timeouts,
    /// Requests that were sent again, here or elsewhere, after they failed here.
    retries,
    /// Connections that became ready.
    connections,
    /// Connections that could not be made.
    connect_failures,
    /// Times that the upstream was left alone for a while.
    ejections,
}

impl UpstreamStats {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// A number that one thread writes.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds one, without the cost of a locked operation: there is one writer.
    #[inline]
    pub(crate) fn count(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

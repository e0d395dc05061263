//! How many requests of each client are open at a time, over the clients of all workers.

use std::sync::Arc;

use bolide_server::{OpenCounts, Policy, Request};
use foldhash::quality::RandomState;

use crate::rate::RateKey;

/// A limit of the requests that a client has open at a time. A request is open until the last byte of its response is given to
/// its connection, or it ends before.
///
/// All workers share it. Only clients with open requests take memory, so that what limits connections and streams limits
/// it, too.
#[derive(Debug)]
pub struct Concurrency {
    count: u32,
    key: RateKey,
    hasher: RandomState,
    open: OpenCounts,
}

impl Concurrency {
    /// So many requests for each client.
    #[must_use]
    pub fn new(count: u32, key: RateKey) -> Self {
        Self { count, key, hasher: RandomState::default(), open: OpenCounts::default() }
    }

    /// One more request of the client is open, as long as this lives. `None`: it is one too many.
    pub(crate) fn begin(self: &Arc<Self>, request: &Request<'_>) -> Option<Open> {
        self.begin_of(self.key.hash(&self.hasher, request))
    }

    fn begin_of(self: &Arc<Self>, client: u64) -> Option<Open> {
        let may_begin = self.open.begin(client, self.count);
        may_begin.then(|| Open { limit: Arc::clone(self), client })
    }
}

/// An open request. As its policy, it lives as long as the request.
#[derive(Debug)]
pub(crate) struct Open {
    limit: Arc<Concurrency>,
    client: u64,
}

impl Policy for Open {
    fn held_bytes(&self) -> usize {
        // With its place in the table.
        size_of::<Self>() + size_of::<(u64, u32)>()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.limit.open.end(self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_while_they_are_open_and_leave_nothing() {
        let limit = Arc::new(Concurrency::new(2, RateKey::default()));
        let first = limit.begin_of(7);
        let second = limit.begin_of(7);
        assert!(first.is_some() && second.is_some() && limit.begin_of(7).is_none());
        assert!(limit.begin_of(8).is_some(), "another client");
        drop(first);
        let third = limit.begin_of(7);
        assert!(third.is_some() && limit.begin_of(7).is_none());
        drop((second, third));
        assert_eq!(limit.open.clients_count(), 0);
    }

    #[test]
    fn open_request_flood_of_many_clients_is_exact_over_workers() {
        let limit = Arc::new(Concurrency::new(3, RateKey::default()));
        let counts = std::thread::scope(|scope| {
            let begin =
                || (0..3000).filter_map(|nth| limit.begin_of(nth % 1000)).collect::<Vec<_>>();
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(begin)).collect();
            let open: Vec<_> = workers.into_iter().flat_map(|one| one.join().unwrap()).collect();
            open.len()
        });
        assert_eq!(counts, 3000);
    }
}

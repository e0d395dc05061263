//! How many connections, or requests, each client has open, over all workers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Clients are in so many tables, each with its lock.
const TABLES_COUNT: usize = 64;

/// Counts by client, shared by all workers. Only clients with something open take memory: what limits that limits the
/// counts, too.
#[derive(Debug)]
pub struct OpenCounts(Box<[Mutex<HashMap<u64, u32>>]>);

impl Default for OpenCounts {
    fn default() -> Self {
        Self((0..TABLES_COUNT).map(|_| Mutex::default()).collect())
    }
}

impl OpenCounts {
    /// Counts one more of this client; false, and nothing is counted: it has `most` already.
    #[must_use]
    pub fn begin(&self, client: u64, most: u32) -> bool {
        let mut table = self.table(client).lock().unwrap_or_else(PoisonError::into_inner);
        if table.get(&client).copied().unwrap_or_default() >= most {
            return false;
        }
        *table.entry(client).or_default() += 1;
        true
    }

    /// One that was counted is over.
    pub fn end(&self, client: u64) {
        let mut table = self.table(client).lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut open) = table.entry(client) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
    }

    /// How many clients have something open.
    #[must_use]
    pub fn clients_count(&self) -> usize {
        let count = |table: &Mutex<HashMap<_, _>>| {
            table.lock().unwrap_or_else(PoisonError::into_inner).len()
        };
        self.0.iter().map(count).sum()
    }

    fn table(&self, client: u64) -> &Mutex<HashMap<u64, u32>> {
        &self.0[client as usize % self.0.len()]
    }
}

/// The connections of each client, by its address; 64 bits of IPv6. Two clients are taken for one with a probability of
/// 2⁻⁶⁴, under a key of each process.
#[derive(Debug, Default)]
pub(crate) struct ClientConnections {
    hasher: RandomState,
    open: OpenCounts,
}

impl ClientConnections {
    /// Counts one more; false: the client has `most` already.
    pub(crate) fn begin(&self, client: IpAddr, most: u32) -> bool {
        self.open.begin(self.hash(client), most)
    }

    /// One that was counted is closed.
    pub(crate) fn end(&self, client: IpAddr) {
        self.open.end(self.hash(client));
    }

    fn hash(&self, client: IpAddr) -> u64 {
        match client.to_canonical() {
            IpAddr::V4(v4) => self.hasher.hash_one((4_u8, u64::from(v4.to_bits()))),
            IpAddr::V6(v6) => self.hasher.hash_one((6_u8, (v6.to_bits() >> 64) as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_flood_is_counted_by_address_and_leaves_nothing() {
        let connections = ClientConnections::default();
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        for (one, same) in
            [("192.0.2.1", "::ffff:192.0.2.1"), ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff")]
        {
            assert!(connections.begin(at(one), 2) && connections.begin(at(same), 2));
            assert!(!connections.begin(at(one), 2) && !connections.begin(at(same), 2));
        }
        assert!(
            connections.begin(at("192.0.2.2"), 2) && connections.begin(at("2001:db8:0:1::"), 2)
        );
        connections.end(at("192.0.2.1"));
        assert!(connections.begin(at("192.0.2.1"), 2));
        let all =
            ["192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::"];
        for text in all {
            connections.end(at(text));
        }
        assert_eq!(connections.open.clients_count(), 0);
    }
}

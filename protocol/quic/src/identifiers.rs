//! RFC 9000 §5.1: identifiers of connections, which name the worker that has them.

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid, RandomConnectionIdGenerator};
use std::time::Duration;

/// How long an identifier is, in bytes.
const LENGTH: usize = 8;

/// Makes identifiers that are random but for the remainder of their first two bytes, which is the number of a worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identifiers {
    worker: u16,
    workers: u16,
}

impl Identifiers {
    pub(crate) fn new(worker: usize, workers: usize) -> Self {
        let workers = u16::try_from(workers.max(1)).unwrap_or(u16::MAX);
        Self { worker: u16::try_from(worker).unwrap_or(0) % workers, workers }
    }

    /// The worker of a datagram that another one has to have: one with a short header (RFC 9000 §17.3), for those before
    /// it carry identifiers that the client chose.
    pub(crate) fn other_worker(&self, datagram: &[u8]) -> Option<usize> {
        let &[first, high, low, ..] = datagram else { return None };
        let worker = u16::from_be_bytes([high, low]) % self.workers;
        (first & 0x80 == 0 && worker != self.worker).then_some(worker.into())
    }
}

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        let random = RandomConnectionIdGenerator::new(LENGTH).generate_cid();
        let mut bytes = [0; LENGTH];
        bytes.copy_from_slice(&random);
        let tag = u16::from_be_bytes([bytes[0], bytes[1]]);
        let base = tag - tag % self.workers;
        let tag =
            base.checked_add(self.worker).unwrap_or_else(|| base - self.workers + self.worker);
        bytes[..2].copy_from_slice(&tag.to_be_bytes());
        ConnectionId::new(&bytes)
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let &[high, low, ..] = &id[..] else { return Err(InvalidCid) };
        let is_own = u16::from_be_bytes([high, low]) % self.workers == self.worker;
        if is_own { Ok(()) } else { Err(InvalidCid) }
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_names_its_worker() {
        for workers in [1, 2, 3, 7, 64, 1000] {
            for worker in [0, workers / 2, workers - 1] {
                let mut own = Identifiers::new(worker, workers);
                for _ in 0..200 {
                    let id = own.generate_cid();
                    assert!(own.validate(&id).is_ok());
                    let datagram = [&[0x40], &id[..], &[0; 20]].concat();
                    assert_eq!(own.other_worker(&datagram), None);
                    let other = Identifiers::new(0, workers);
                    let expected = (worker != 0).then_some(worker);
                    assert_eq!(other.other_worker(&datagram), expected, "{workers} workers");
                    let long = [&[0xc0], &id[..], &[0; 20]].concat();
                    assert_eq!(other.other_worker(&long), None);
                }
            }
        }
    }

    #[test]
    fn datagrams_that_are_too_short_are_nobodys() {
        let own = Identifiers::new(1, 2);
        assert_eq!(own.other_worker(&[]), None);
        assert_eq!(own.other_worker(&[0x40, 0]), None);
    }
}

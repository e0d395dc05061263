//! RFC 9000 §5.1: identifiers of connections, which name the worker that has them.

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid, RandomConnectionIdGenerator};
use std::time::Duration;

/// How long an identifier is, in bytes.
pub(crate) const LENGTH: usize = 8;

/// The bit of the first byte that a long header has, its bits that say of what type the packet is (RFC 9000 §17.2), and two of the
/// types.
pub(crate) const LONG: u8 = 0x80;
pub(crate) const TYPE_BITS: u8 = 0x30;
const INITIAL: u8 = 0x00;
pub(crate) const HANDSHAKE: u8 = 0x20;

/// The version that is spoken.
const VERSION: [u8; 4] = 1_u32.to_be_bytes();

/// Makes identifiers that are random but for what names their owners: the remainder of their first two bytes is the number
/// of a worker, and the third byte that of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identifiers {
    worker: u16,
    workers: u16,
    process: u8,
}

/// Owner of a datagram, as far as its first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This worker's, or no worker's.
    Own,
    /// Another worker's.
    Worker(usize),
    /// Another process's, by its number, and what the number of its worker is the remainder of.
    Process(u8, u16),
    /// It begins a handshake, or belongs to one that has begun, by an identifier of the client's choice.
    Handshake,
}

impl Identifiers {
    pub(crate) fn new(worker: usize, workers: usize, process: u8) -> Self {
        let workers = u16::try_from(workers.max(1)).unwrap_or(u16::MAX);
        Self { worker: u16::try_from(worker).unwrap_or(0) % workers, workers, process }
    }

    /// Returns whose a datagram is. Clients choose the identifiers of their first ones (RFC 9000 §7.2): one that looks like ours is
    /// treated alike each time.
    pub(crate) fn owner(&self, datagram: &[u8]) -> Owner {
        match *datagram {
            [first, high, low, process, ..] if first & LONG == 0 => {
                self.owner_of([high, low], process)
            }
            [first, v0, v1, v2, v3, length, high, low, process, ..]
                if first & LONG != 0 && [v0, v1, v2, v3] == VERSION =>
            {
                let may_be_ours = usize::from(length) == LENGTH;
                match first & TYPE_BITS {
                    INITIAL if !may_be_ours || process != self.process => Owner::Handshake,
                    _ if may_be_ours => self.owner_of([high, low], process),
                    _ => Owner::Own,
                }
            }
            _ => Owner::Own,
        }
    }

    fn owner_of(&self, tag: [u8; 2], process: u8) -> Owner {
        let tag = u16::from_be_bytes(tag);
        let worker = tag % self.workers;
        if process != self.process {
            Owner::Process(process, tag)
        } else if worker == self.worker {
            Owner::Own
        } else {
            Owner::Worker(worker.into())
        }
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
        bytes[2] = self.process;
        ConnectionId::new(&bytes)
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let &[high, low, process, ..] = &id[..] else { return Err(InvalidCid) };
        let is_own = u16::from_be_bytes([high, low]) % self.workers == self.worker;
        if is_own && process == self.process { Ok(()) } else { Err(InvalidCid) }
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

    fn long(kind: u8, id: &[u8]) -> Vec<u8> {
        [&[0xc0 | kind], &VERSION[..], &[id.len() as u8], id, &[0; 20]].concat()
    }

    #[test]
    fn an_identifier_names_its_worker_and_its_process() {
        for workers in [1, 2, 3, 7, 64, 1000] {
            for worker in [0, workers / 2, workers - 1] {
                let mut own = Identifiers::new(worker, workers, 5);
                for _ in 0..200 {
                    let id = own.generate_cid();
                    assert!(own.validate(&id).is_ok());
                    let tag = u16::from_be_bytes([id[0], id[1]]);
                    let short = [&[0x40], &id[..], &[0; 20]].concat();
                    assert_eq!(own.owner(&short), Owner::Own);
                    assert_eq!(own.owner(&long(HANDSHAKE, &id)), Owner::Own);
                    assert_eq!(own.owner(&long(INITIAL, &id)), Owner::Own);
                    let other = Identifiers::new(0, workers, 5);
                    let expected = if worker == 0 { Owner::Own } else { Owner::Worker(worker) };
                    assert_eq!(other.owner(&short), expected, "{workers} workers");
                    assert_eq!(other.owner(&long(HANDSHAKE, &id)), expected);
                    assert_eq!(other.owner(&long(INITIAL, &id)), expected);
                    let later = Identifiers::new(worker, workers, 6);
                    assert!(later.validate(&id).is_err());
                    assert_eq!(later.owner(&short), Owner::Process(5, tag));
                    assert_eq!(later.owner(&long(HANDSHAKE, &id)), Owner::Process(5, tag));
                    assert_eq!(later.owner(&long(INITIAL, &id)), Owner::Handshake);
                }
            }
        }
    }

    #[test]
    fn a_first_datagram_is_of_whoever_has_begun_its_handshake() {
        let own = Identifiers::new(0, 1, 0);
        assert_eq!(own.owner(&long(INITIAL, &[7; 20])), Owner::Handshake);
        assert_eq!(own.owner(&long(HANDSHAKE, &[7; 20])), Owner::Own, "no server has made that");
        // Retry, which only clients get, and another version.
        assert_eq!(own.owner(&long(0x30, &[7; 20])), Owner::Own);
        let mut other = long(INITIAL, &[7; 20]);
        other[4] = 2;
        assert_eq!(own.owner(&other), Owner::Own);
    }

    #[test]
    fn datagrams_that_are_too_short_are_nobodys() {
        let own = Identifiers::new(1, 2, 3);
        for datagram in [&[][..], &[0x40, 0, 0], &[0xc0, 0, 0, 0, 1, 8, 0, 0]] {
            assert_eq!(own.owner(datagram), Owner::Own);
        }
    }
}

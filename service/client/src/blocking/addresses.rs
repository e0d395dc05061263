//! RFC 9110 §4.3.2: addresses that were found lately, so that not every request asks the resolver.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bolide_eventloop::Destination;
use bolide_semantics::Url;

use crate::limits::{ADDRESSES_TIME, NAMES_COUNT};

/// A host and a port.
type Name = (String, u16);

/// The addresses of servers, as they were found lately.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    known: Mutex<BTreeMap<Name, (Instant, Vec<Destination>)>>,
}

fn name(target: &Url) -> Name {
    (target.host.to_ascii_lowercase(), target.port())
}

impl Addresses {
    pub(crate) fn get(&self, target: &Url) -> Option<Vec<Destination>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, addresses) = known.get(&name(target))?;
        (found.elapsed() < ADDRESSES_TIME).then(|| addresses.clone())
    }

    pub(crate) fn keep(&self, target: &Url, addresses: &[Destination]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= NAMES_COUNT {
            known.clear();
        }
        known.insert(name(target), (Instant::now(), addresses.to_vec()));
    }

    /// There was no server: the name may have others by now.
    pub(crate) fn forget(&self, target: &Url) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&name(target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolide_semantics::Scheme;

    #[test]
    fn what_was_found_is_kept_for_a_bounded_number_of_names() {
        let addresses = Addresses::default();
        let found = [Destination::Inet("127.0.0.1:1".parse().unwrap())];
        let target =
            |number: usize| Url::parse(&format!("http://host-{number}/"), &Scheme::HTTP).unwrap();
        for number in 0..=NAMES_COUNT {
            addresses.keep(&target(number), &found);
        }
        assert_eq!(addresses.get(&target(NAMES_COUNT)), Some(found.to_vec()));
        assert_eq!(addresses.get(&target(0)), None, "the others made room");
        addresses.forget(&target(NAMES_COUNT));
        assert_eq!(addresses.get(&target(NAMES_COUNT)), None);
    }
}

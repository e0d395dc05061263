//! What one worker keeps of files: bounded, the least used make place.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bolide_server::{CommonLines, Prepared, StatusCode};
use hashbrown::HashMap;

use crate::entry::{Content, Entry, Variant};

/// One file in memory.
#[derive(Debug)]
pub(crate) struct Kept {
    name: Box<str>,
    pub(crate) entry: Arc<Entry>,
    /// The answer to a request that asks for nothing but the file, if its bytes are in memory and it has no other
    /// codings.
    pub(crate) plain: Option<Rc<Prepared>>,
    weight: usize,
    /// When the disk was looked at last.
    pub(crate) checked: Instant,
    /// Whether it was asked for since the hand passed.
    is_used: bool,
}

/// Files by their decoded paths.
#[derive(Debug)]
pub(crate) struct Cache {
    places: HashMap<Box<str>, usize, foldhash::fast::FixedState>,
    kept: Vec<Kept>,
    /// The next to be looked at when place is needed.
    hand: usize,
    bytes: usize,
    bytes_max: usize,
    files_max: usize,
    /// Counts what gives places to other files.
    changes: u64,
    common: CommonLines,
}

/// Where a file is, as long as no place is given to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    at: usize,
    changes: u64,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize, files_max: usize) -> Self {
        Self {
            places: HashMap::default(),
            kept: Vec::new(),
            hand: 0,
            bytes: 0,
            bytes_max,
            files_max,
            changes: 0,
            common: CommonLines::default(),
        }
    }

    /// The file of this name.
    #[inline]
    pub(crate) fn get(&mut self, name: &str) -> Option<&Kept> {
        let place = self.place(name)?;
        self.at(place)
    }

    /// Where the file of this name is.
    #[inline]
    pub(crate) fn place(&self, name: &str) -> Option<Place> {
        Some(Place { at: *self.places.get(name)?, changes: self.changes })
    }

    /// The file that is at a place, if it is the same still.
    #[inline]
    pub(crate) fn at(&mut self, place: Place) -> Option<&Kept> {
        if place.changes != self.changes {
            return None;
        }
        let kept = self.kept.get_mut(place.at)?;
        kept.is_used = true;
        Some(kept)
    }

    /// Keeps a file that the disk had at `checked`, if it is small enough; forgets what had its name.
    pub(crate) fn insert(&mut self, name: &str, entry: Arc<Entry>, checked: Instant) {
        if let Some(place) = self.places.get(name)
            && Arc::ptr_eq(&self.kept[*place].entry, &entry)
        {
            self.kept[*place].checked = checked;
            return;
        }
        self.remove(name);
        // Nothing may push out more than a quarter of the others.
        let weight = entry.weight().map(|weight| weight + 2 * name.len());
        let Some(weight) = weight.filter(|weight| *weight <= self.bytes_max / 4) else { return };
        while self.bytes + weight > self.bytes_max || self.kept.len() >= self.files_max {
            if !self.make_place() {
                return;
            }
        }
        self.bytes += weight;
        self.changes += 1;
        self.places.insert(name.into(), self.kept.len());
        let plain = plain(&entry, &mut self.common).map(Rc::new);
        self.kept.push(Kept { name: name.into(), entry, plain, weight, checked, is_used: false });
    }

    /// Forgets what has this name.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.remove(name) {
            self.take_out(place);
        }
    }

    /// Forgets one that was not asked for since the hand passed it last. Whether there was any.
    fn make_place(&mut self) -> bool {
        while !self.kept.is_empty() {
            self.hand %= self.kept.len();
            let kept = &mut self.kept[self.hand];
            if kept.is_used {
                kept.is_used = false;
                self.hand += 1;
                continue;
            }
            self.places.remove(&kept.name);
            self.take_out(self.hand);
            return true;
        }
        false
    }

    fn take_out(&mut self, place: usize) {
        self.changes += 1;
        let gone = self.kept.swap_remove(place);
        self.bytes -= gone.weight;
        if let Some(moved) = self.kept.get(place)
            && let Some(its) = self.places.get_mut(&moved.name)
        {
            *its = place;
        }
    }
}

/// The answer that an entry has for requests that ask for nothing in particular.
fn plain(entry: &Entry, others: &mut CommonLines) -> Option<Prepared> {
    match (&entry.variants[..], entry.offered.is_empty()) {
        ([Variant { content: Content::Memory(bytes), fields, .. }], true) => {
            Some(Prepared::among(others, StatusCode::OK, fields, bytes.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Stamp;
    use crate::entry::{Description, Source};
    use bolide_server::HeaderValue;

    fn entry(bytes: usize) -> Arc<Entry> {
        let media_type = HeaderValue::from_static("text/plain");
        let description =
            Description { media_type, cache_control: None, is_racy: false, is_settled: true };
        let source = Source {
            coding: "",
            content: Content::Memory(vec![b'a'; bytes].into()),
            length: bytes as u64,
            stamp: Stamp::default(),
            is_made: false,
        };
        Arc::new(Entry::new(&description, vec![source]))
    }

    #[test]
    fn a_cache_flood_stays_within_both_bounds() {
        let now = Instant::now();
        let mut cache = Cache::new(100_000, 1000);
        cache.insert("/hot", entry(1000), now);
        for number in 0..10_000 {
            cache.insert(&format!("/{number}"), entry(5000), now);
            assert!(cache.get("/hot").is_some(), "what is asked for stays");
            assert!(cache.bytes <= 100_000);
        }
        assert!(cache.kept.len() > 10 && cache.places.len() == cache.kept.len());
        cache.insert("/large", entry(50_000), now);
        assert!(cache.get("/large").is_none());
        let mut cache = Cache::new(usize::MAX, 10);
        for number in 0..1000 {
            cache.insert(&format!("/{number}"), entry(0), now);
            assert!(cache.kept.len() <= 10);
        }
        let sum: usize = cache.kept.iter().map(|kept| kept.weight).sum();
        assert_eq!(cache.bytes, sum);
    }

    #[test]
    fn the_same_name_is_kept_once() {
        let now = Instant::now();
        let later = now + std::time::Duration::from_secs(1);
        let mut cache = Cache::new(100_000, 10);
        let (old, new) = (entry(1), entry(2));
        cache.insert("/a", old.clone(), now);
        cache.insert("/b", entry(3), now);
        cache.insert("/a", old, later);
        assert_eq!(cache.get("/a").unwrap().checked, later);
        cache.insert("/a", new.clone(), later);
        assert!(Arc::ptr_eq(&cache.get("/a").unwrap().entry, &new));
        let place = cache.place("/b").unwrap();
        assert_eq!(cache.at(place).unwrap().checked, now);
        cache.remove("/a");
        assert!(cache.at(place).is_none(), "another file may be there");
        assert!(cache.get("/a").is_none());
        assert!(cache.get("/b").is_some());
        assert_eq!(cache.kept.len(), 1);
    }

    #[test]
    fn a_cache_of_nothing_keeps_nothing() {
        let mut cache = Cache::new(0, 0);
        cache.insert("/a", entry(1), Instant::now());
        assert!(cache.get("/a").is_none());
        let mut cache = Cache::new(usize::MAX, 0);
        cache.insert("/a", entry(1), Instant::now());
        assert!(cache.get("/a").is_none());
    }
}

//! Cache of files of one worker: bounded, the least used make place.

use std::sync::Arc;
use std::time::Instant;

use hashbrown::HashMap;

use crate::entry::Entry;

/// One file in memory.
#[derive(Debug)]
pub(crate) struct Kept {
    name: Box<str>,
    pub(crate) entry: Arc<Entry>,
    weight: usize,
    /// When the disk was looked at last.
    pub(crate) checked: Instant,
    /// True if it was asked for since the hand passed.
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
        }
    }

    /// The file of this name.
    #[inline]
    pub(crate) fn get(&mut self, name: &str) -> Option<&Kept> {
        let kept = self.kept.get_mut(*self.places.get(name)?)?;
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
        self.places.insert(name.into(), self.kept.len());
        self.kept.push(Kept { name: name.into(), entry, weight, checked, is_used: false });
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
        let gone = self.kept.swap_remove(place);
        self.bytes -= gone.weight;
        if let Some(moved) = self.kept.get(place)
            && let Some(its) = self.places.get_mut(&moved.name)
        {
            *its = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Stamp;
    use crate::entry::{Content, Description, Source};
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
        cache.remove("/a");
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

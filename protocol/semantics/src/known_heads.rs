//! RFC 9110 §6.2: the heads that came before, found again by the octets that they came in.
//!
//! Clients send the same few requests again and again, and all connections of one program encode them alike. As
//! long as what the octets refer to is the same, they mean the same, whichever connection they came by: nothing has
//! to be decoded, checked or written.

use std::fmt;

use crate::limits::{
    KNOWN_HEAD_BYTES, KNOWN_HEADS_COUNT, KNOWN_OCTETS_BYTES, KNOWN_STEP_BYTES, KNOWN_STEPS_COUNT,
};
use crate::{Head, HeadMark, HeadMarks};

/// Heads whose octets have the same hash, as far as it picks a place.
const WAYS: usize = 4;
const SETS: usize = KNOWN_HEADS_COUNT / WAYS;

/// Places for octets that came once, two in each: the second time they are kept.
const SEEN_COUNT: usize = 512;

/// No place.
const NOWHERE: usize = usize::MAX;

/// No octets are as long.
const FORGOTTEN: usize = usize::MAX;

/// Stands for everything that the meaning of octets depends on besides themselves, such as a compression table:
/// where that is equal, the same octets have the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodingState(u64);

impl CodingState {
    /// What every connection begins with.
    pub const START: Self = Self(0);
}

/// What a parser notes beside a head, for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadNote(pub [u64; 2]);

/// One head.
#[derive(Debug)]
struct Kept {
    state: CodingState,
    length: usize,
    octets: [u8; KNOWN_OCTETS_BYTES],
    mark: HeadMark,
    note: HeadNote,
    head: Head,
}

/// The change of a state.
#[derive(Debug)]
struct Step {
    from: CodingState,
    change: Box<[u8]>,
    to: CodingState,
}

#[derive(Debug)]
struct Known {
    /// A part of the hash for each place; zero where nothing is kept.
    tags: [[u32; WAYS]; SETS],
    kept: Vec<Kept>,
    seen: [[u32; 2]; SEEN_COUNT],
    /// The way that makes place next.
    hand: usize,
    /// The place whose head stands where it is used, and has that one's in its place meanwhile.
    shown: usize,
    steps: Vec<Step>,
    marks: HeadMarks,
}

/// What a worker's head remembers of the heads before it. A copy of the head begins without.
#[derive(Default)]
pub(crate) struct KnownHeads(Option<Box<Known>>);

impl Clone for KnownHeads {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl fmt::Debug for KnownHeads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("..")
    }
}

impl KnownHeads {
    /// Whether a kept head may stand where it is used.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.0.is_some()
    }
}

impl Head {
    /// For parsers: becomes the head that these octets came to before, in the same state, if that is known.
    #[inline]
    #[must_use]
    pub fn recall(&mut self, state: CodingState, octets: &[u8]) -> Option<HeadNote> {
        let known = self.known.0.as_deref()?;
        if let Some(kept) = known.kept.get(known.shown)
            && self.mark() == Some(kept.mark)
            && kept.is(state, octets)
        {
            return Some(kept.note);
        }
        self.recall_another(state, octets)
    }

    fn recall_another(&mut self, state: CodingState, octets: &[u8]) -> Option<HeadNote> {
        let known = self.known.0.as_deref()?;
        if octets.len() > KNOWN_OCTETS_BYTES {
            return None;
        }
        let hash = hash(state, octets);
        let (set, tag) = place_of(hash);
        let way = known.tags[set].iter().position(|known| *known == tag)?;
        let place = set * WAYS + way;
        if place == known.shown || !known.kept[place].is(state, octets) {
            return None;
        }
        let mut known = self.known.0.take()?;
        known.put_back(self);
        let kept = &mut known.kept[place];
        std::mem::swap(self, &mut kept.head);
        let (mark, note) = (kept.mark, kept.note);
        known.shown = place;
        self.known.0 = Some(known);
        // Whoever has changed a head has taken its mark away.
        (self.mark() == Some(mark)).then_some(note)
    }

    /// For parsers: these octets came to what the head holds now, and will always do so in this state. They may be
    /// kept, and the head be marked, when they come again and again.
    pub fn keep(&mut self, state: CodingState, octets: &[u8], note: HeadNote) {
        if octets.len() > KNOWN_OCTETS_BYTES || self.held_bytes() > KNOWN_HEAD_BYTES {
            return;
        }
        let known = self.known.0.get_or_insert_with(Box::default);
        let hash = hash(state, octets);
        let seen = &mut known.seen[(hash >> 40) as usize % SEEN_COUNT];
        let (set, tag) = place_of(hash);
        if known.shown != NOWHERE {
            return;
        }
        if !seen.contains(&tag) {
            *seen = [tag, seen[0]];
            return;
        }
        let (place, mark) = known.place(set, tag);
        let kept = &mut known.kept[place];
        (kept.state, kept.length, kept.mark, kept.note) = (state, octets.len(), mark, note);
        kept.octets[..octets.len()].copy_from_slice(octets);
        known.shown = place;
        self.set_mark(mark);
        self.shrink();
    }

    /// For parsers: the state that a change of another leads to; a change is described so that the same
    /// description means the same change.
    #[must_use]
    pub fn state_after(&mut self, state: CodingState, change: &[u8]) -> CodingState {
        let known = self.known.0.get_or_insert_with(Box::default);
        if change.len() > KNOWN_STEP_BYTES {
            return known.another_state();
        }
        let place = (hash(state, change) >> 40) as usize % KNOWN_STEPS_COUNT;
        if let Some(step) = known.steps.get(place)
            && step.from == state
            && *step.change == *change
        {
            return step.to;
        }
        let to = known.another_state();
        let nothing = || Step { from: to, change: Box::default(), to };
        if known.steps.is_empty() {
            known.steps.resize_with(KNOWN_STEPS_COUNT, nothing);
        }
        known.steps[place] = Step { from: state, change: change.into(), to };
        to
    }

    /// For parsers: a state that is like no other.
    #[must_use]
    pub fn another_state(&mut self) -> CodingState {
        self.known.0.get_or_insert_with(Box::default).another_state()
    }

    /// Sends the head that is shown back to its place.
    pub(crate) fn put_known_back(&mut self) {
        if let Some(mut known) = self.known.0.take() {
            known.put_back(self);
            self.known.0 = Some(known);
        }
    }
}

impl Default for Known {
    fn default() -> Self {
        Self {
            tags: [[0; WAYS]; SETS],
            kept: Vec::new(),
            seen: [[0; 2]; SEEN_COUNT],
            hand: 0,
            shown: NOWHERE,
            steps: Vec::new(),
            marks: HeadMarks::default(),
        }
    }
}

impl Known {
    /// `head` knows of no others meanwhile.
    #[inline]
    fn put_back(&mut self, head: &mut Head) {
        if let Some(kept) = self.kept.get_mut(self.shown) {
            std::mem::swap(head, &mut kept.head);
            self.shown = NOWHERE;
        }
    }

    /// A place for another head, and its mark.
    fn place(&mut self, set: usize, tag: u32) -> (usize, HeadMark) {
        if self.kept.is_empty() {
            let mark = self.marks.make();
            self.kept.resize_with(KNOWN_HEADS_COUNT, || Kept::nothing(mark));
        }
        let ways = &mut self.tags[set];
        let way = ways.iter().position(|known| *known == tag || *known == 0).unwrap_or_else(|| {
            self.hand = (self.hand + 1) % WAYS;
            self.hand
        });
        ways[way] = tag;
        (set * WAYS + way, self.marks.make())
    }

    fn another_state(&mut self) -> CodingState {
        CodingState(self.marks.make().number())
    }
}

impl Kept {
    fn nothing(mark: HeadMark) -> Self {
        Self {
            state: CodingState::START,
            length: FORGOTTEN,
            octets: [0; KNOWN_OCTETS_BYTES],
            mark,
            note: HeadNote([0; 2]),
            head: Head::default(),
        }
    }

    #[inline]
    fn is(&self, state: CodingState, octets: &[u8]) -> bool {
        self.state == state && self.length == octets.len() && self.octets[..octets.len()] == *octets
    }
}

/// A set, and a tag that is not zero.
#[inline]
fn place_of(hash: u64) -> (usize, u32) {
    ((hash >> 32) as usize % SETS, hash as u32 | 1)
}

/// Whoever makes octets that share a place gains no more than that they are read each time.
#[inline]
fn hash(state: CodingState, octets: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let wide = u128::from(hash ^ word) * u128::from(FACTOR);
        (wide >> 64) as u64 ^ wide as u64
    };
    let mut hash = mix(FACTOR, state.0 ^ (octets.len() as u64) << 48);
    let (words, rest) = octets.as_chunks::<8>();
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    if let Some(word) = octets.last_chunk::<8>() {
        last = *word;
    } else {
        last[..rest.len()].copy_from_slice(rest);
    }
    mix(hash, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests;

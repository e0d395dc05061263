//! One deadline for each slot, in a hierarchy of wheels.
//!
//! A deadline that moves to later is one store: the entry stays where it was filed, comes up early, and
//! is filed again. (Most do not even come here: see `Slot::deadline_to_file`.) Time here is a count of
//! ticks.

/// Stands for "none" in links.
const NONE: u32 = u32::MAX;

/// Marks a link back that leads to a bucket instead of a node.
const BUCKET: u32 = 1 << 31;

/// Stands for "never" as a deadline, and for "not filed".
pub(crate) const NEVER: u64 = u64::MAX;

/// The first level has 256 buckets of one tick.
const FIRST_BITS: u32 = 8;

/// Each of the other levels has 64 buckets, each as long as the whole level below.
const LEVEL_BITS: u32 = 6;

/// Levels above the first.
const LEVELS: u32 = 3;

/// Place of deadlines that are later than all levels.
const OVERFLOW: u32 = (1 << FIRST_BITS) + LEVELS * (1 << LEVEL_BITS);

/// The bits of a tick that all levels cover together: with ticks of a millisecond, 18 hours.
const ALL_BITS: u32 = FIRST_BITS + LEVELS * LEVEL_BITS;

#[derive(Debug, Clone, Copy)]
struct Node {
    /// When the slot is to be called.
    deadline: u64,
    /// When the entry comes up: never after the deadline. `NEVER` while it is in no bucket.
    filed: u64,
    next: u32,
    /// The node before, or with [`BUCKET`] the bucket that this node is the first of.
    before: u32,
}

const UNFILED: Node = Node { deadline: NEVER, filed: NEVER, next: NONE, before: NONE };

/// The deadlines of a worker's slots, by the slots' index.
#[derive(Debug)]
pub(crate) struct TimerWheel {
    now: u64,
    nodes: Vec<Node>,
    first: Box<[u32]>,
    /// Which buckets are not empty: four words for the first level, then one for each level.
    taken: [u64; 4 + LEVELS as usize],
}

impl TimerWheel {
    pub(crate) fn new() -> Self {
        let first = vec![NONE; OVERFLOW as usize + 1].into_boxed_slice();
        Self { now: 0, nodes: Vec::new(), first, taken: [0; 4 + LEVELS as usize] }
    }

    /// Calls for `index` at tick `deadline`, at the next tick if that has passed. It replaces the
    /// deadline before.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, deadline: u64) {
        let position = index as usize;
        if position >= self.nodes.len() {
            self.nodes.resize(position + 1, UNFILED);
        }
        let node = &mut self.nodes[position];
        node.deadline = deadline;
        if node.filed > deadline {
            self.file_again(index);
        }
    }

    /// No deadline and no entry for `index`: its slot is free.
    pub(crate) fn remove(&mut self, index: u32) {
        if (index as usize) < self.nodes.len() {
            self.unlink(index);
            self.nodes[index as usize].deadline = NEVER;
        }
    }

    /// The tick at which [`expire`](Self::expire) has something to do; not after any deadline.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        let position = self.now & 0xff;
        if let Some(bucket) = self.next_of_first_level(position as u32) {
            return Some((self.now & !0xff) | u64::from(bucket));
        }
        for level in 0..LEVELS {
            let shift = FIRST_BITS + level * LEVEL_BITS;
            let position = (self.now >> shift) & 0x3f;
            // Buckets after this one; the shift in two steps, for 63 + 1 would be too far.
            let later = self.taken[4 + level as usize] & ((!0 << position) << 1);
            if later != 0 {
                let block = (self.now >> (shift + LEVEL_BITS)) << (shift + LEVEL_BITS);
                return Some(block | (u64::from(later.trailing_zeros()) << shift));
            }
        }
        (self.first[OVERFLOW as usize] != NONE).then(|| ((self.now >> ALL_BITS) + 1) << ALL_BITS)
    }

    /// The first bucket with entries after `position` on the first level.
    #[inline]
    fn next_of_first_level(&self, position: u32) -> Option<u32> {
        let mut word = position / 64;
        let mut bits = self.taken[word as usize] & ((!0 << (position % 64)) << 1);
        loop {
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros());
            }
            word += 1;
            if word == 4 {
                return None;
            }
            bits = self.taken[word as usize];
        }
    }

    /// Moves to tick `now` and appends to `due` the slots whose deadline has come, in the order of
    /// the deadlines.
    pub(crate) fn expire(&mut self, now: u64, due: &mut Vec<u32>) {
        while let Some(tick) = self.next()
            && tick <= now
        {
            self.now = tick;
            self.cascade();
            let bucket = (tick & 0xff) as u32;
            let mut index = self.first[bucket as usize];
            while index != NONE {
                self.unlink(index);
                let node = &mut self.nodes[index as usize];
                if node.deadline <= tick {
                    node.deadline = NEVER;
                    due.push(index);
                } else {
                    self.file(index);
                }
                index = self.first[bucket as usize];
            }
        }
        self.now = self.now.max(now);
    }

    /// Spreads the buckets of the upper levels that begin at this tick.
    fn cascade(&mut self) {
        for level in (0..LEVELS).rev() {
            let shift = FIRST_BITS + level * LEVEL_BITS;
            if self.now & ((1 << shift) - 1) == 0 {
                let bucket = (1 << FIRST_BITS) + (level << LEVEL_BITS);
                self.spread(bucket + ((self.now >> shift) & 0x3f) as u32);
            }
        }
        if self.now & ((1 << ALL_BITS) - 1) == 0 {
            self.spread(OVERFLOW);
        }
    }

    /// Files each entry of `bucket` again.
    fn spread(&mut self, bucket: u32) {
        let mut index = std::mem::replace(&mut self.first[bucket as usize], NONE);
        self.mark(bucket, false);
        while index != NONE {
            let node = &mut self.nodes[index as usize];
            let next = node.next;
            node.filed = NEVER;
            self.file(index);
            index = next;
        }
    }

    #[cold]
    fn file_again(&mut self, index: u32) {
        self.unlink(index);
        if self.nodes[index as usize].deadline <= self.now {
            self.nodes[index as usize].deadline = self.now + 1;
        }
        self.file(index);
    }

    /// Puts the entry, which is in no bucket, where its deadline belongs. A deadline of this very
    /// tick is for a cascade, which comes before this tick's bucket is emptied.
    fn file(&mut self, index: u32) {
        let deadline = self.nodes[index as usize].deadline.max(self.now);
        let differing = deadline ^ self.now;
        let bucket = if differing >> FIRST_BITS == 0 {
            (deadline & 0xff) as u32
        } else if differing >> ALL_BITS != 0 {
            OVERFLOW
        } else {
            let level = (63 - differing.leading_zeros() - FIRST_BITS) / LEVEL_BITS;
            let shift = FIRST_BITS + level * LEVEL_BITS;
            (1 << FIRST_BITS) + (level << LEVEL_BITS) + ((deadline >> shift) & 0x3f) as u32
        };
        let next = std::mem::replace(&mut self.first[bucket as usize], index);
        if next == NONE {
            self.mark(bucket, true);
        } else {
            self.nodes[next as usize].before = index;
        }
        let node = &mut self.nodes[index as usize];
        (node.filed, node.next, node.before) = (deadline, next, BUCKET | bucket);
    }

    fn unlink(&mut self, index: u32) {
        let Node { filed, next, before, .. } = self.nodes[index as usize];
        if filed == NEVER {
            return;
        }
        self.nodes[index as usize].filed = NEVER;
        if next != NONE {
            self.nodes[next as usize].before = before;
        }
        if before & BUCKET == 0 {
            self.nodes[before as usize].next = next;
        } else {
            let bucket = before & !BUCKET;
            self.first[bucket as usize] = next;
            if next == NONE {
                self.mark(bucket, false);
            }
        }
    }

    #[inline]
    fn mark(&mut self, bucket: u32, taken: bool) {
        if bucket == OVERFLOW {
            return;
        }
        let (word, bit) = (bucket as usize / 64, 1 << (bucket % 64));
        if taken {
            self.taken[word] |= bit;
        } else {
            self.taken[word] &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::collections::BinaryHeap;

    #[derive(Debug, Clone)]
    enum Step {
        Set(u32, u64),
        Remove(u32),
        Expire(u64),
        ExpireNext,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let distance = prop_oneof![
            4 => 0_u64..300,
            3 => 0_u64..20_000,
            2 => 0_u64..3_000_000,
            1 => 0_u64..300_000_000,
        ];
        let step = prop_oneof![
            6 => (0_u32..20, distance.clone()).prop_map(|(index, after)| Step::Set(index, after)),
            1 => (0_u32..20).prop_map(Step::Remove),
            2 => distance.prop_map(Step::Expire),
            2 => Just(Step::ExpireNext),
        ];
        proptest::collection::vec(step, 0..200)
    }

    /// Model of the wheel: a heap of all deadlines ever set, of which only the latest of each
    /// index counts.
    #[derive(Default)]
    struct Model {
        heap: BinaryHeap<std::cmp::Reverse<(u64, u32)>>,
        latest: BTreeMap<u32, u64>,
    }

    impl Model {
        fn expire(&mut self, now: u64) -> Vec<(u64, u32)> {
            let mut due = Vec::new();
            while let Some(std::cmp::Reverse((deadline, index))) = self.heap.peek().copied()
                && deadline <= now
            {
                self.heap.pop();
                if self.latest.get(&index) == Some(&deadline) {
                    self.latest.remove(&index);
                    due.push((deadline, index));
                }
            }
            due
        }
    }

    fn check(wheel: &mut TimerWheel, model: &mut Model, now: u64) {
        let mut due = Vec::new();
        wheel.expire(now, &mut due);
        let expected = model.expire(now);
        // Within one tick the order is free.
        let deadline_of: BTreeMap<u32, u64> =
            expected.iter().map(|(deadline, index)| (*index, *deadline)).collect();
        let mut order: Vec<(u64, u32)> = due
            .iter()
            .map(|index| (deadline_of.get(index).copied().unwrap_or(NEVER), *index))
            .collect();
        assert!(order.is_sorted_by_key(|(deadline, _)| *deadline), "out of order: {order:?}");
        order.sort_unstable();
        assert_eq!(order, expected, "at {now}");
        if let Some(earliest) = model.latest.values().min() {
            let next = wheel.next().expect("a deadline is set");
            assert!(next > now && next <= *earliest, "{next} for {earliest} at {now}");
        }
    }

    proptest! {
        #[test]
        fn it_fires_like_a_heap(start in 0_u64..1_u64 << 40, steps in steps()) {
            let mut now = start;
            let mut wheel = TimerWheel::new();
            let mut model = Model::default();
            check(&mut wheel, &mut model, now);
            for step in steps {
                match step {
                    Step::Set(index, after) => {
                        wheel.set(index, now + after);
                        let deadline = (now + after).max(now + 1);
                        model.latest.insert(index, deadline);
                        model.heap.push(std::cmp::Reverse((deadline, index)));
                    }
                    Step::Remove(index) => {
                        wheel.remove(index);
                        model.latest.remove(&index);
                    }
                    Step::Expire(after) => now += after,
                    Step::ExpireNext => now = wheel.next().unwrap_or(now),
                }
                check(&mut wheel, &mut model, now);
            }
        }
    }

    #[test]
    fn a_later_deadline_moves_nothing() {
        let mut wheel = TimerWheel::new();
        wheel.set(3, 100);
        for deadline in 101..2000 {
            wheel.set(3, deadline);
            assert_eq!(wheel.next(), Some(100));
        }
        let mut due = Vec::new();
        wheel.expire(1998, &mut due);
        assert_eq!(due, []);
        wheel.expire(1999, &mut due);
        assert_eq!(due, [3]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn years_ahead_are_not_forgotten() {
        let mut wheel = TimerWheel::new();
        let deadline = 1 << 40;
        wheel.set(0, deadline);
        let mut due = Vec::new();
        while due.is_empty() {
            let next = wheel.next().expect("it is still set");
            wheel.expire(next, &mut due);
        }
        assert_eq!(wheel.now, deadline);
    }
}

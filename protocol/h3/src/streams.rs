//! RFC 9114 §6.1: the requests' streams that are open, found by their numbers.

use crate::stream::Stream;

/// Open streams in slots, and a sorted index from number to slot: numbers come in order, so that most join at its end.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    index: Vec<(u32, u32)>,
    /// The slot that was found last: most of what is done with a stream is done at once.
    last: u32,
    /// The highest number that was opened.
    pub(crate) highest: u32,
    /// Memory that the open streams make us hold besides themselves, in bytes.
    pub(crate) charged_bytes: usize,
}

impl Streams {
    /// How many streams are open.
    #[inline]
    pub(crate) fn open(&self) -> u32 {
        self.index.len() as u32
    }

    #[inline]
    fn slot(&self, number: u32) -> Option<u32> {
        match self.slots.get(self.last as usize) {
            Some(Some(stream)) if stream.number == number => Some(self.last),
            _ => {
                let at = self.index.binary_search_by_key(&number, |(number, _)| *number).ok()?;
                Some(self.index[at].1)
            }
        }
    }

    #[inline]
    pub(crate) fn find(&mut self, number: u32) -> Option<&mut Stream> {
        self.last = self.slot(number)?;
        self.slots[self.last as usize].as_mut()
    }

    #[inline]
    pub(crate) fn peek(&self, number: u32) -> Option<&Stream> {
        self.slots[self.slot(number)? as usize].as_ref()
    }

    /// Opens a stream whose number is not in use.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32, now_ms: u32) -> &mut Stream {
        self.highest = self.highest.max(number);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        let at = self.index.partition_point(|(before, _)| *before < number);
        self.index.insert(at, (number, slot));
        self.last = slot;
        self.slots[slot as usize].insert(Stream::new(number, now_ms))
    }

    /// Forgets a stream.
    pub(crate) fn remove(&mut self, number: u32) {
        if let Ok(at) = self.index.binary_search_by_key(&number, |(number, _)| *number) {
            let (_, slot) = self.index.remove(at);
            let stream = &mut self.slots[slot as usize];
            self.charged_bytes -= stream.as_ref().map_or(0, |stream| stream.charged_bytes);
            *stream = None;
            self.free.push(slot);
        }
    }

    /// The numbers of the open streams, in order.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.index.iter().map(|(number, _)| *number).collect()
    }

    /// Gives memory back. No stream is open.
    pub(crate) fn trim(&mut self) {
        debug_assert!(self.index.is_empty(), "streams would be lost");
        *self = Self { highest: self.highest, ..Self::default() };
    }

    /// The memory of the streams themselves, in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<Stream>>()
            + self.free.capacity() * size_of::<u32>()
            + self.index.capacity() * size_of::<(u32, u32)>()
    }

    /// Brings what a stream makes us hold into the sum. To be called after something has been done with it.
    pub(crate) fn charge(&mut self, number: u32) {
        let Some(stream) = self.find(number) else { return };
        let held = stream.held_bytes();
        let before = std::mem::replace(&mut stream.charged_bytes, held);
        self.charged_bytes = self.charged_bytes + held - before;
    }
}

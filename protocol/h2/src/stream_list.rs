//! RFC 9113 §5.1: a list of streams that is empty most of the time.

/// Streams by their numbers, in no order. An empty one is as large as a pointer.
#[derive(Debug, Default)]
pub(crate) struct StreamList(Option<Box<List>>);

#[derive(Debug, Default)]
struct List {
    streams: Vec<u32>,
}

impl StreamList {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.streams.len())
    }

    #[inline]
    pub(crate) fn push(&mut self, stream: u32) {
        self.0.get_or_insert_default().streams.push(stream);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.0.as_mut()?.streams.pop()
    }

    /// Removes a stream. Whether it was there.
    #[inline]
    pub(crate) fn remove(&mut self, stream: u32) -> bool {
        let Some(list) = &mut self.0 else { return false };
        let Some(index) = list.streams.iter().position(|listed| *listed == stream) else {
            return false;
        };
        list.streams.swap_remove(index);
        true
    }

    /// Gives the memory back, unless there are streams in it.
    pub(crate) fn trim(&mut self) {
        if self.len() == 0 {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_removed_once() {
        let mut list = StreamList::default();
        assert!(!list.remove(1));
        for stream in [1, 3, 5] {
            list.push(stream);
        }
        assert!(list.remove(1));
        assert!(!list.remove(1));
        assert_eq!(list.len(), 2);
        list.trim();
        assert_eq!(list.len(), 2, "what is listed stays");
        assert!(list.pop().is_some() && list.pop().is_some());
        assert_eq!(list.pop(), None);
        list.trim();
        assert!(list.0.is_none());
    }
}

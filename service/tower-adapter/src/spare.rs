//! One place on the heap for one pinned value after another.

use std::pin::Pin;

/// A place for a pinned value; it outlives the value, so that the next one needs no allocation.
pub(crate) struct Place<T>(Pin<Box<Option<T>>>);

impl<T> Place<T> {
    /// An empty place.
    pub(crate) fn new() -> Self {
        Self(Box::pin(None))
    }

    /// Puts a value there.
    #[inline]
    pub(crate) fn put(&mut self, value: T) -> Pin<&mut T> {
        self.0.set(Some(value));
        self.0.as_mut().as_pin_mut().expect("a value was put there")
    }

    /// Drops the value.
    pub(crate) fn clear(&mut self) {
        self.0.set(None);
    }

    /// The place without its value.
    #[inline]
    pub(crate) fn emptied(mut self) -> Self {
        self.clear();
        self
    }

    /// The value, if there is one.
    pub(crate) fn get(&mut self) -> Option<Pin<&mut T>> {
        self.0.as_mut().as_pin_mut()
    }
}

/// Value that an exchange left for the next one of the same worker.
pub(crate) struct Spare<T>(std::cell::Cell<Option<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(std::cell::Cell::new(None))
    }
}

impl<T> Spare<T> {
    pub(crate) fn take(&self) -> Option<T> {
        self.0.take()
    }

    pub(crate) fn give(&self, value: T) {
        self.0.set(Some(value));
    }
}

//! A piece of what is to be sent whose bytes are not in memory.

use std::any::Any;
use std::sync::Arc;

/// Bytes that stand somewhere else, in a file say. A queue knows how many they are and in which order they
/// leave; only the owner of the sink knows what `source` is, and sends them.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The place of the bytes.
    pub source: Arc<dyn Any + Send + Sync>,
    /// Offset of the first one there, in bytes.
    pub offset: u64,
    /// How many they are. At least 1.
    pub bytes: usize,
}

//! Parts of which a thread of the generator is made.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use bolide_connection::Limits;

use super::messages::{Command, ThreadNews};
use super::share::Share;
use super::thread_state::Task;

/// Parts of which a thread is made.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) number: usize,
    /// How many threads there are.
    pub(super) threads: usize,
    /// Which part of the load the threads have together.
    pub(super) share: Share,
    pub(super) task: Arc<Task>,
    pub(super) seats: usize,
    pub(super) limits: Limits,
    pub(super) seed: u64,
    pub(super) core: Option<usize>,
    pub(super) news: Sender<ThreadNews>,
    pub(super) commands: Receiver<Command>,
}

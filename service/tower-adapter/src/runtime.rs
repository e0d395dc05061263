//! The tokio runtime whose timers, sockets and tasks the futures use.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// How many threads a runtime of ours has: it drives timers and sockets, and what handlers spawn.
/// The handlers themselves run on the workers.
const THREADS_COUNT: usize = 2;

/// A runtime: the caller's, or one of our own.
pub(crate) enum Companion {
    Callers(Handle),
    Own(Option<Runtime>),
}

impl Companion {
    /// The runtime that this is called in; without one, a new one.
    pub(crate) fn find() -> io::Result<Self> {
        match Handle::try_current() {
            Ok(handle) => Ok(Self::Callers(handle)),
            Err(_) => Ok(Self::Own(Some(start()?))),
        }
    }

    pub(crate) fn handle(&self) -> Option<&Handle> {
        match self {
            Self::Callers(handle) => Some(handle),
            Self::Own(runtime) => runtime.as_ref().map(Runtime::handle),
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        if let Self::Own(runtime) = self
            && let Some(runtime) = runtime.take()
        {
            // A future may drop it, which must not wait.
            runtime.shutdown_background();
        }
    }
}

/// A new runtime.
pub(crate) fn start() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(THREADS_COUNT)
        .thread_name("tokio")
        .enable_all()
        .build()
}

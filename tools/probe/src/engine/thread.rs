//! One thread of the load: a worker of the event loop and what is around it.

use std::io;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use bolide_eventloop::{Limits as LoopLimits, MioKernel, Worker, pin_to_core};

use super::messages::News;
use super::recipe::Recipe;
use super::service::{LoadService, LoopHandle};

/// How long a thread without work waits before it looks for commands.
const COMMAND_WAIT: Duration = Duration::from_millis(5);

impl Recipe {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the system has no thread left.
    pub(super) fn start(self) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(format!("load-{}", self.number)).spawn(move || {
            let (news, number) = (self.news.clone(), self.number);
            if let Err(error) = self.run() {
                // Its reader may have gone.
                let _ = news.send((number, News::Broken(error.to_string())));
            }
        })
    }

    fn run(self) -> io::Result<()> {
        if let Some(core) = self.core {
            // A machine that can't pin runs all the same.
            let _ = pin_to_core(core);
        }
        let handle = Rc::new(LoopHandle::default());
        let shared = Rc::clone(&handle);
        let mut worker = Worker::new(MioKernel::new()?, LoopLimits::default(), move |_| {
            LoadService::new(self, shared)
        });
        while !handle.finished.get() {
            worker.step(Some(COMMAND_WAIT))?;
            handle.stats.set(worker.stats());
        }
        Ok(())
    }
}

//! A small thread pool for what may block: files, names, logs.
//!
//! A loop must never wait for a disk. It hands the work in here, and the job itself says when it is done:
//! by a mailbox, or by whatever its maker has for that. Threads start when there is work for them and
//! end when there is none.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::limits::OffloadLimits;

/// One piece of work.
pub type Job = Box<dyn FnOnce() + Send>;

/// The queue is full, or the pool has ended: the job was dropped without having run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("too many blocking operations wait already")
    }
}

impl std::error::Error for Full {}

/// A pool of threads. Clones share it; it ends with the last of them.
#[derive(Clone)]
pub struct Offload {
    handle: Arc<Handle>,
}

impl fmt::Debug for Offload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.handle.pool.lock();
        formatter
            .debug_struct("Offload")
            .field("threads", &state.threads)
            .field("waiting", &state.jobs.len())
            .finish()
    }
}

/// Ends the pool when no job can be handed in any more.
struct Handle {
    pool: Arc<Pool>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.pool.end();
    }
}

struct Pool {
    limits: OffloadLimits,
    state: Mutex<State>,
    /// A job was added, or the end was.
    changed: Condvar,
    /// A thread has ended.
    left: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    ended: bool,
}

impl Offload {
    /// A pool within these limits. No thread runs yet.
    #[must_use]
    pub fn new(limits: OffloadLimits) -> Self {
        let pool = Pool {
            limits,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            left: Condvar::new(),
        };
        Self { handle: Arc::new(Handle { pool: Arc::new(pool) }) }
    }

    /// Hands a job in. Jobs begin in the order in which they came. One that panics ends itself and
    /// nothing else.
    ///
    /// # Errors
    ///
    /// [`Full`] when too many wait already, or no thread can be had. The job was dropped.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Full> {
        self.add(Box::new(job), self.handle.pool.limits.offload_queue_count)
    }

    /// Hands in the next job of something that [`Self::submit`] has admitted, however many wait: what
    /// was begun is not broken off because others came. Each user has at most one such job out
    /// for each thing admitted.
    ///
    /// # Errors
    ///
    /// [`Full`] when the pool has ended or no thread can be had. The job was dropped.
    pub fn resume(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Full> {
        self.add(Box::new(job), usize::MAX)
    }

    /// Ends the pool: jobs that wait are dropped, those that run are waited for.
    pub fn shut_down(&self) {
        let pool = &self.handle.pool;
        pool.end();
        let mut state = pool.lock();
        while state.threads > 0 {
            state = pool.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, job: Job, offload_queue_count: usize) -> Result<(), Full> {
        let pool = &self.handle.pool;
        let mut state = pool.lock();
        if state.ended || state.jobs.len() >= offload_queue_count {
            return Err(Full);
        }
        state.jobs.push_back(job);
        // A thread that was told of an earlier job counts as idle until it has taken it.
        if state.jobs.len() <= state.idle {
            drop(state);
            pool.changed.notify_one();
            return Ok(());
        }
        if state.threads >= pool.limits.offload_threads_count.max(1) {
            return Ok(());
        }
        let worker = Arc::clone(pool);
        let name = format!("offload-{}", state.threads);
        match std::thread::Builder::new().name(name).spawn(move || worker.run()) {
            Ok(_) => {
                state.threads += 1;
                Ok(())
            }
            Err(_) if state.threads > 0 => Ok(()),
            Err(_) => {
                let unwanted = state.jobs.pop_back();
                drop(state);
                drop(unwanted);
                Err(Full)
            }
        }
    }
}

impl Default for Offload {
    fn default() -> Self {
        Self::new(OffloadLimits::default())
    }
}

impl Pool {
    /// Jobs run outside of the lock, so that nothing can poison it but a failed allocation.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let dropped = std::mem::take(&mut state.jobs);
        drop(state);
        self.changed.notify_all();
        drop(dropped);
    }

    fn run(&self) {
        while let Some(job) = self.next() {
            // What a job was to say, its maker learns from what it drops.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
        self.left.notify_all();
    }

    /// The next job, or `None` when this thread is to end; it is counted no more then.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.ended {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let waited =
                self.changed.wait_timeout_while(state, self.limits.offload_idle, |state| {
                    state.jobs.is_empty() && !state.ended
                });
            let (awake, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = awake;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use std::sync::mpsc::{self, Receiver, Sender};

    /// More than any of this takes: only a failure waits so long.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn pool(threads: usize, queue: usize, idle: Duration) -> Offload {
        Offload::new(OffloadLimits {
            offload_threads_count: threads,
            offload_queue_count: queue,
            offload_idle: idle,
        })
    }

    fn threads(pool: &Offload) -> usize {
        pool.handle.pool.lock().threads
    }

    /// A job that says that it runs, and then waits to be let go.
    fn held(pool: &Offload) -> Sender<()> {
        let (running, runs) = mpsc::channel();
        let (let_go, gate): (Sender<()>, Receiver<()>) = mpsc::channel();
        let job = move || {
            running.send(()).unwrap();
            let _ = gate.recv_timeout(PATIENCE);
        };
        pool.submit(job).unwrap();
        runs.recv_timeout(PATIENCE).expect("the job runs");
        let_go
    }

    #[test]
    fn jobs_run_and_threads_start_only_when_they_are_needed() {
        let pool = pool(4, 100, PATIENCE);
        assert_eq!(threads(&pool), 0);
        let (sender, receiver) = mpsc::channel();
        for number in 0..3 {
            let sender = sender.clone();
            pool.submit(move || sender.send(number).unwrap()).unwrap();
            assert_eq!(receiver.recv_timeout(PATIENCE), Ok(number));
        }
        assert!(threads(&pool) <= 3);
        let gates: Vec<_> = (0..4).map(|_| held(&pool)).collect();
        assert_eq!(threads(&pool), 4);
        let sender = sender.clone();
        pool.submit(move || sender.send(9).unwrap()).unwrap();
        assert_eq!(threads(&pool), 4, "no more than four");
        assert!(receiver.try_recv().is_err(), "all four are busy");
        drop(gates);
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok(9));
    }

    #[test]
    fn a_flood_of_blocking_work_fills_a_bounded_queue() {
        let pool = pool(1, 2, PATIENCE);
        let gate = held(&pool);
        let (sender, receiver) = mpsc::channel();
        let say = |number: u32| {
            let sender = sender.clone();
            move || sender.send(number).unwrap()
        };
        assert_eq!(pool.submit(say(1)), Ok(()));
        assert_eq!(pool.submit(say(2)), Ok(()));
        assert_eq!(pool.submit(say(3)), Err(Full));
        assert_eq!(pool.resume(say(4)), Ok(()), "what was begun goes on");
        drop(gate);
        let order: Vec<_> = (0..3).map(|_| receiver.recv_timeout(PATIENCE).unwrap()).collect();
        assert_eq!(order, [1, 2, 4]);
    }

    #[test]
    fn a_job_that_panics_ends_alone() {
        let pool = pool(1, 10, PATIENCE);
        let gate = held(&pool);
        pool.submit(|| panic!("this one fails")).unwrap();
        let (sender, receiver) = mpsc::channel();
        pool.submit(move || sender.send(std::thread::current().id()).unwrap()).unwrap();
        drop(gate);
        assert!(receiver.recv_timeout(PATIENCE).is_ok(), "the thread goes on");
        assert_eq!(threads(&pool), 1);
    }

    #[test]
    fn an_idle_thread_ends_and_another_takes_its_place() {
        let pool = pool(2, 10, Duration::from_millis(1));
        drop(held(&pool));
        let mut state = pool.handle.pool.lock();
        while state.threads > 0 {
            let (awake, timeout) = pool.handle.pool.left.wait_timeout(state, PATIENCE).unwrap();
            assert!(!timeout.timed_out(), "the idle thread stays");
            state = awake;
        }
        drop(state);
        drop(held(&pool));
    }

    #[test]
    fn a_shut_down_waits_for_what_runs_and_drops_what_waits() {
        let pool = pool(1, 10, PATIENCE);
        let gate = held(&pool);
        let (sender, receiver) = mpsc::channel::<()>();
        pool.submit(move || sender.send(()).unwrap()).unwrap();
        let other = pool.clone();
        let ending = std::thread::spawn(move || other.shut_down());
        // The job that waited is dropped, and with it its sender.
        assert_eq!(receiver.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
        assert_eq!(threads(&pool), 1, "the job that runs is waited for");
        assert_eq!(pool.submit(|| ()), Err(Full));
        drop(gate);
        ending.join().unwrap();
        assert_eq!(threads(&pool), 0);
    }

    #[test]
    fn the_last_handle_ends_the_pool() {
        let pool = pool(2, 10, PATIENCE);
        drop(held(&pool));
        let inner = Arc::downgrade(&pool.handle.pool);
        let shared = pool.handle.pool.clone();
        drop(pool);
        let mut state = shared.lock();
        while state.threads > 0 {
            let (awake, timeout) = shared.left.wait_timeout(state, PATIENCE).unwrap();
            assert!(!timeout.timed_out(), "a thread stays");
            state = awake;
        }
        drop(state);
        drop(shared);
        // The thread lets go of it after it has said that it ends.
        while inner.upgrade().is_some() {
            std::thread::yield_now();
        }
    }
}

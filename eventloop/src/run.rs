//! Several workers, each on a thread of its own.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::acceptor::{Acceptor, StopSwitch};
use crate::affinity::pin_to_core;
use crate::datagram_pipe::DatagramPipe;
use crate::kernel::{MioDatagrams, MioKernel, memory};
use crate::limits::Limits;
use crate::listener::{Listeners, Numbered};
use crate::mailbox::{Mail, Mailbox};
use crate::service::Service;
use crate::stats::Stats;
use crate::worker::Worker;

/// Datagrams of another process that a worker may be given before it has taken them, in number.
const UNTAKEN_COUNT: u32 = 64;

/// How the workers run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the threads, before their number. Default: `worker`.
    pub thread_name: String,
    /// True if each worker keeps to one core. Default: no.
    pub pin: bool,
    /// The bounds of each worker. A number of connections is for all workers together here.
    pub limits: Limits,
    /// Code around the life of each worker. Default: nothing.
    pub around: Option<Around>,
}

/// Something that surrounds the life of each worker, on its thread: a context that what runs there
/// finds without asking for it every time.
#[derive(Clone)]
pub struct Around(Arc<Surround>);

type Surround = dyn Fn(&mut dyn FnMut()) + Send + Sync;

impl Around {
    /// `surround` is called once on each worker's thread, and calls what it is given once: that returns
    /// when the worker has ended.
    pub fn new(surround: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Self(Arc::new(surround))
    }

    fn run<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut work = Some(work);
        let mut result = None;
        (self.0)(&mut || {
            if let Some(work) = work.take() {
                result = Some(work());
            }
        });
        result.unwrap_or_else(|| Err(io::Error::other("what surrounds the worker did not run it")))
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Around")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { thread_name: "worker".into(), pin: false, limits: Limits::default(), around: None }
    }
}

/// The workers that [`run`] has started.
pub struct Handle<M> {
    mailboxes: Vec<Mailbox<M>>,
    threads: Vec<JoinHandle<io::Result<Stats>>>,
    acceptor: Option<Acceptor>,
}

/// Ends the workers of a [`Handle`]; from any thread.
pub struct Stopper<M> {
    mailboxes: Vec<Mailbox<M>>,
    acceptor: Option<StopSwitch>,
}

impl<M: Send + 'static> Stopper<M> {
    /// As [`Handle::shut_down`].
    pub fn shut_down(&self, patience: Duration) {
        if let Some(acceptor) = &self.acceptor {
            acceptor.stop();
        }
        let deadline = Instant::now() + patience;
        for mailbox in &self.mailboxes {
            mailbox.shut_down(deadline);
        }
    }
}

impl<M: Send + 'static> Handle<M> {
    /// Sends to each worker.
    #[must_use]
    pub fn mailboxes(&self) -> &[Mailbox<M>] {
        &self.mailboxes
    }

    /// Ends the workers: no more connections are accepted, every session is told, and what is still
    /// open after `patience` is closed. A second call can only shorten the wait.
    pub fn shut_down(&self, patience: Duration) {
        self.stopper().shut_down(patience);
    }

    /// Something that ends the workers while another thread [joins](Self::join) them.
    #[must_use]
    pub fn stopper(&self) -> Stopper<M> {
        let acceptor = self.acceptor.as_ref().map(Acceptor::stop_switch);
        Stopper { mailboxes: self.mailboxes.clone(), acceptor }
    }

    /// Returns what each worker that still runs has counted.
    #[must_use]
    pub fn stats(&self) -> Vec<Stats> {
        self.mailboxes.iter().filter_map(Mailbox::stats).collect()
    }

    /// Workers receive nothing more at the sockets of datagrams of listeners, which another process has from here on; they send
    /// by them as before.
    pub fn leave_datagrams(&self) {
        for mailbox in &self.mailboxes {
            // A worker that has ended receives nothing.
            let _ = mailbox.post(Mail::LeaveDatagrams);
        }
    }

    /// Gives each worker the datagrams that another process passes on by the pipe in the same place, for as long as that has
    /// the other end. A worker does not end before it has taken all that was sent to it.
    ///
    /// # Errors
    ///
    /// When the system has no thread left.
    pub fn take_datagrams_of(&self, pipes: &[Arc<DatagramPipe>]) -> io::Result<()> {
        for (place, pipe) in pipes.iter().enumerate() {
            let mailbox = self.mailboxes[place % self.mailboxes.len()].clone();
            let pipe = Arc::clone(pipe);
            let thread = std::thread::Builder::new().name(format!("pipe-{place}"));
            // A worker that has ended takes nothing.
            let _ = mailbox.post(Mail::Pipe(Arc::clone(&pipe)));
            let (taken, by) = (Arc::clone(&pipe), mailbox.clone());
            if let Err(error) = thread.spawn(move || take_datagrams_of(taken, &by)) {
                let _ = mailbox.post(Mail::PipeEnded(pipe));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits until all workers have ended, and returns what each has counted.
    ///
    /// # Errors
    ///
    /// When a worker's poller failed, or a worker panicked outside of a session's call.
    pub fn join(self) -> io::Result<Vec<Stats>> {
        let mut stats = Vec::new();
        for thread in self.threads {
            let panicked = |_| Err(io::Error::other("a worker panicked"));
            stats.push(thread.join().unwrap_or_else(panicked)?);
        }
        if let Some(acceptor) = self.acceptor {
            acceptor.stop();
            acceptor.join()?;
        }
        Ok(stats)
    }
}

/// Gives a worker what comes by a pipe.
fn take_datagrams_of<M: Send + 'static>(pipe: Arc<DatagramPipe>, mailbox: &Mailbox<M>) {
    let (mut block, mut count) = (Vec::new(), 0_u32);
    while let Some((local, datagram)) = pipe.receive(&mut block) {
        if mailbox.post(Mail::Datagram { local, datagram }).is_err() {
            return;
        }
        count = count.wrapping_add(1);
        if count.is_multiple_of(UNTAKEN_COUNT) {
            // Its response says that those before are taken: what a worker has no time for waits in the kernel, or is lost.
            let _ = mailbox.stats();
        }
    }
    let _ = mailbox.post(Mail::PipeEnded(pipe));
}

/// Starts a worker for each that `listeners` was made for. `make` is called on each worker's thread
/// with the worker's number and mailbox.
///
/// # Errors
///
/// When the system has no file descriptors or threads left; nothing runs then.
pub fn run<S, F>(
    config: &Config,
    mut listeners: Listeners,
    make: F,
) -> io::Result<Handle<S::Message>>
where
    S: Service,
    F: Fn(usize, Mailbox<S::Message>) -> S + Send + Sync + 'static,
{
    let workers = listeners.workers();
    let mut limits = config.limits;
    limits.connections_max_count = room_of_one(limits.connections_max_count, workers);
    limits.held_bytes_max = memory_of_one(limits.held_bytes_max, workers);
    let datagram_sockets = listeners.take_datagrams();
    let has_datagrams = datagram_sockets.iter().any(|of_worker| !of_worker.is_empty());
    let (own, dealt) = listeners.deal();
    // Whatever can fail does so before the first thread runs.
    let kernels = (0..workers).map(|_| MioKernel::new()).collect::<io::Result<Vec<_>>>()?;
    let make = Arc::new(make);
    let mut handle = Handle { mailboxes: Vec::new(), threads: Vec::new(), acceptor: None };
    let parts = kernels.into_iter().zip(own).zip(datagram_sockets);
    for (index, ((kernel, listeners), datagram_sockets)) in parts.enumerate() {
        let start = Start { index, kernel, listeners, datagram_sockets, limits, pin: config.pin };
        let (make, around) = (Arc::clone(&make), config.around.clone());
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("{}-{index}", config.thread_name))
            .spawn(move || match around {
                None => start.run(&*make, &sender),
                Some(around) => around.run(|| start.run(&*make, &sender)),
            });
        let started = thread.and_then(|thread| {
            handle.threads.push(thread);
            let panicked = |_| io::Error::other("a worker did not start");
            handle.mailboxes.push(receiver.recv().map_err(panicked)?);
            Ok(())
        });
        if let Err(error) = started {
            handle.shut_down(Duration::ZERO);
            return Err(error);
        }
    }
    if has_datagrams {
        for mailbox in &handle.mailboxes {
            // A worker that has ended already passes nothing on.
            let _ = mailbox.post(Mail::Workers(handle.mailboxes.clone()));
        }
    }
    if !dealt.is_empty() {
        let unsent_bytes = config.limits.unsent.unsent_start_bytes;
        match Acceptor::start(dealt, handle.mailboxes.clone(), unsent_bytes) {
            Ok(acceptor) => handle.acceptor = Some(acceptor),
            Err(error) => {
                handle.shut_down(Duration::ZERO);
                return Err(error);
            }
        }
    }
    Ok(handle)
}

/// Returns what one worker of several may hold of `all`; 0 stands for what file descriptors allow.
fn room_of_one(all: usize, workers: usize) -> usize {
    let all = match all {
        0 => usize::try_from(crate::kernel::file_limit() / 10 * 9).unwrap_or(usize::MAX),
        all => all,
    };
    all.div_ceil(workers).max(1)
}

/// Returns what one worker of several may keep, of `all` bytes; 0 stands for half of the memory.
fn memory_of_one(all: usize, workers: usize) -> usize {
    let half = || usize::try_from(memory::usable_bytes() / 2).unwrap_or(usize::MAX);
    let all = if all == 0 { half() } else { all };
    (all / workers).max(1)
}

/// Values that a worker's thread starts with.
struct Start {
    index: usize,
    kernel: MioKernel,
    listeners: Vec<Numbered>,
    datagram_sockets: Vec<(usize, MioDatagrams)>,
    limits: Limits,
    pin: bool,
}

impl Start {
    fn run<S: Service>(
        self,
        make: &impl Fn(usize, Mailbox<S::Message>) -> S,
        started: &mpsc::Sender<Mailbox<S::Message>>,
    ) -> io::Result<Stats> {
        if self.pin {
            // A worker that may run anywhere is slower, not wrong.
            let _ = pin_to_core(self.index);
        }
        let index = self.index;
        let mut worker = Worker::new(self.kernel, self.limits, |mailbox| make(index, mailbox));
        for (index, listener) in self.listeners {
            worker.listen(listener, index)?;
        }
        for (index, datagram_socket) in self.datagram_sockets {
            let local = datagram_socket.local();
            worker.open_datagrams(datagram_socket, local, index)?;
        }
        // Nothing waits for it when another worker has failed to start.
        let _ = started.send(worker.mailbox());
        worker.run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_surrounds_a_worker_runs_it_once_or_says_that_it_did_not() {
        let twice = Around::new(|work| {
            work();
            work();
        });
        let mut runs = 0;
        let result = twice.run(|| {
            runs += 1;
            Ok(7)
        });
        assert_eq!((result.unwrap(), runs), (7, 1));
        let never = Around::new(|_| {});
        assert!(never.run(|| Ok(7)).unwrap_err().to_string().contains("did not run"));
    }
}

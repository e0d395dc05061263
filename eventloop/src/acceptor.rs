//! One thread that accepts from listeners that cannot be shared, and deals the sockets out.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::kernel::{Incoming, Kernel, MioKernel, MioListener, Wake};
use crate::limits::Limits;
use crate::listener::Numbered;
use crate::mailbox::{HandedIn, Mail, Mailbox};

/// The thread, seen from outside.
pub(crate) struct Acceptor {
    thread: JoinHandle<io::Result<()>>,
    switch: StopSwitch,
}

/// Ends the thread; from any thread.
#[derive(Clone)]
pub(crate) struct StopSwitch {
    stopped: Arc<AtomicBool>,
    waker: Arc<dyn Wake>,
    /// Nothing is ever sent: the sender is dropped at the thread's end.
    ended: Arc<Mutex<Receiver<()>>>,
}

impl StopSwitch {
    /// Closes its listeners, and returns when every socket that it has accepted was dealt out: a worker that is
    /// told to end afterwards knows of each.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.waker.wake();
        let _ = self.ended.lock().unwrap_or_else(PoisonError::into_inner).recv();
    }
}

impl Acceptor {
    /// Starts it.
    pub(crate) fn start<M: Send + 'static>(
        listeners: Vec<Numbered>,
        workers: Vec<Mailbox<M>>,
        unsent_bytes: usize,
    ) -> io::Result<Self> {
        let mut kernel = MioKernel::new()?;
        let waker = kernel.waker();
        let stopped = Arc::new(AtomicBool::new(false));
        let mut dealer = Dealer { listeners: Vec::new(), workers, next: 0 };
        for (position, (index, mut listener)) in listeners.into_iter().enumerate() {
            kernel.listen(&mut listener, position as u64, unsent_bytes)?;
            dealer.listeners.push(Open { index, listener, ready: false });
        }
        let flag = Arc::clone(&stopped);
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("acceptor".into()).spawn(move || {
            let result = dealer.run(kernel, &flag);
            drop(end);
            result
        })?;
        let ended = Arc::new(Mutex::new(ended));
        Ok(Self { thread, switch: StopSwitch { stopped, waker, ended } })
    }

    /// Closes its listeners.
    pub(crate) fn stop(&self) {
        self.switch.stop();
    }

    pub(crate) fn stop_switch(&self) -> StopSwitch {
        self.switch.clone()
    }

    pub(crate) fn join(self) -> io::Result<()> {
        let panicked = |_| Err(io::Error::other("the acceptor panicked"));
        self.thread.join().unwrap_or_else(panicked)
    }
}

struct Open {
    index: usize,
    listener: MioListener,
    ready: bool,
}

struct Dealer<M> {
    listeners: Vec<Open>,
    workers: Vec<Mailbox<M>>,
    next: usize,
}

impl<M: Send + 'static> Dealer<M> {
    fn run(mut self, mut kernel: MioKernel, stopped: &AtomicBool) -> io::Result<()> {
        let mut ready = Vec::new();
        while !stopped.load(Ordering::Acquire) {
            // A listener that is still ready could not be emptied: no descriptors.
            let paused = self.listeners.iter().any(|open| open.ready);
            kernel.wait(paused.then_some(Limits::default().accept_pause), None, &mut ready)?;
            for event in ready.drain(..) {
                if let Some(open) = self.listeners.get_mut(event.key as usize) {
                    open.ready = true;
                }
            }
            for position in 0..self.listeners.len() {
                if self.listeners[position].ready && !self.empty(position, &mut kernel, stopped) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Accepts what there is. Whether any worker is left.
    fn empty(&mut self, position: usize, kernel: &mut MioKernel, stopped: &AtomicBool) -> bool {
        let open = &mut self.listeners[position];
        while !stopped.load(Ordering::Acquire) {
            match kernel.accept(&mut open.listener) {
                Ok(incoming) => {
                    if !deal(&self.workers, &mut self.next, incoming.into(), open.index) {
                        return false;
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        open.ready = false;
                        return true;
                    }
                    // The peer gave up; the next one did not.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    _ => return true,
                },
            }
        }
        true
    }
}

impl From<Incoming<<MioKernel as Kernel>::Socket>> for Incoming<OwnedFd> {
    fn from(incoming: Incoming<<MioKernel as Kernel>::Socket>) -> Self {
        let Incoming { socket, peer, local } = incoming;
        Self { socket: socket.into(), peer, local }
    }
}

/// Gives a socket to the next worker that is there.
fn deal<M: Send + 'static>(
    workers: &[Mailbox<M>],
    next: &mut usize,
    incoming: Incoming<OwnedFd>,
    listener: usize,
) -> bool {
    let Incoming { socket, peer, local } = incoming;
    let mut mail = Mail::HandedIn(HandedIn { socket, peer, local, listener });
    for _ in 0..workers.len() {
        *next = (*next + 1) % workers.len();
        match workers[*next].post(mail) {
            Ok(()) => return true,
            Err(back) => mail = back,
        }
    }
    false
}

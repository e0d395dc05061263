//! Workers as threads.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::acceptor::Acceptor;
use crate::kernel::limits::file_limit;
use crate::kernel::{MioKernel, MioListener};
use crate::listener::{Listener, Opened};
use crate::mailbox::{Mail, Mailbox};
use crate::service::Service;
use crate::worker::Worker;
use crate::{Error, Stats};

/// How many workers, and how much each may take on.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Threads, each with a loop of its own. Default: 1.
    pub workers: usize,
    /// Sockets per worker. Default: nine tenths of the process's limit on open files, divided by
    /// the workers.
    pub connections_max: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self { workers: 1, connections_max: None }
    }
}

impl Config {
    fn connections_max(&self) -> usize {
        self.connections_max.unwrap_or_else(|| {
            let files = file_limit().unwrap_or(1 << 20);
            let files = usize::try_from(files).unwrap_or(usize::MAX);
            (files / 10 * 9 / self.workers).max(1)
        })
    }
}

/// Workers that run.
pub struct Handle<M> {
    mailboxes: Vec<Mailbox<M>>,
    threads: Vec<JoinHandle<io::Result<Stats>>>,
    acceptors: Vec<Acceptor>,
    addresses: Vec<Option<SocketAddr>>,
    paths: Vec<PathBuf>,
}

impl<M> fmt::Debug for Handle<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Handle").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Opens every listener and starts the workers; `make` makes the service of each, on its thread.
///
/// # Errors
///
/// When a listener can't be opened or a thread can't be started; nothing is left running.
pub fn run<S, F>(
    config: Config,
    listeners: Vec<Listener>,
    make: F,
) -> Result<Handle<S::Message>, Error>
where
    S: Service,
    F: Fn(usize, &Mailbox<S::Message>) -> S + Send + Sync + 'static,
{
    let config = Config { workers: config.workers.max(1), ..config };
    let opened: Vec<Opened> = listeners
        .into_iter()
        .map(|listener| listener.open(config.workers))
        .collect::<Result<_, _>>()?;
    let addresses = opened.iter().map(|opened| opened.address).collect();
    let paths = opened.iter().filter_map(|opened| opened.path.clone()).collect();
    let (own, shared) = deal_out(opened, config.workers);

    let mut handle = Handle {
        mailboxes: Vec::new(),
        threads: Vec::new(),
        acceptors: Vec::new(),
        addresses,
        paths,
    };
    let make = Arc::new(make);
    for (number, listeners) in own.into_iter().enumerate() {
        if let Err(error) = handle.start(config, number, listeners, &make) {
            handle.shut_down(Duration::ZERO);
            handle.join();
            return Err(error);
        }
    }
    for (index, socket) in shared {
        match Acceptor::start(socket, index, handle.mailboxes.clone()) {
            Ok(acceptor) => handle.acceptors.push(acceptor),
            Err(error) => {
                handle.shut_down(Duration::ZERO);
                handle.join();
                return Err(error);
            }
        }
    }
    Ok(handle)
}

type Own = Vec<Vec<(usize, MioListener)>>;

/// Which worker gets which listening socket, and which sockets an acceptor has to share out.
fn deal_out(opened: Vec<Opened>, workers: usize) -> (Own, Vec<(usize, OwnedFd)>) {
    let mut own: Own = (0..workers).map(|_| Vec::new()).collect();
    let mut shared = Vec::new();
    for (index, opened) in opened.into_iter().enumerate() {
        if opened.sockets.len() == workers {
            for (worker, socket) in own.iter_mut().zip(opened.sockets) {
                worker.push((index, MioListener { socket }));
            }
        } else {
            shared.extend(opened.sockets.into_iter().map(|socket| (index, socket)));
        }
    }
    (own, shared)
}

impl<M: Send + 'static> Handle<M> {
    fn start<S, F>(
        &mut self,
        config: Config,
        number: usize,
        listeners: Vec<(usize, MioListener)>,
        make: &Arc<F>,
    ) -> Result<(), Error>
    where
        S: Service<Message = M>,
        F: Fn(usize, &Mailbox<M>) -> S + Send + Sync + 'static,
    {
        let failed = |source| Error::System { what: "a worker", source };
        let kernel = MioKernel::new().map_err(failed)?;
        let make = Arc::clone(make);
        let connections_max = config.connections_max();
        // The worker is made on its own thread, for nothing of it may be shared.
        let (tell, told) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("worker-{number}"))
            .spawn(move || {
                let worker = Worker::new(kernel, listeners, connections_max, |mailbox| {
                    make(number, mailbox)
                });
                match worker {
                    Ok(worker) => {
                        let _ = tell.send(Ok(worker.mailbox().clone()));
                        worker.run()
                    }
                    Err(error) => {
                        let _ = tell.send(Err(error));
                        Ok(Stats::default())
                    }
                }
            })
            .map_err(failed)?;
        self.threads.push(thread);
        let mailbox = told
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("it panicked while it was made")))
            .map_err(failed)?;
        self.mailboxes.push(mailbox);
        Ok(())
    }
}

impl<M> Handle<M> {
    /// The addresses of the listeners, in the order given, with real ports. None for a Unix socket.
    #[must_use]
    pub fn addresses(&self) -> Vec<Option<SocketAddr>> {
        self.addresses.clone()
    }

    /// The ways into the workers.
    #[must_use]
    pub fn mailboxes(&self) -> &[Mailbox<M>] {
        &self.mailboxes
    }

    /// Stops accepting, ends every session as soon as it decently can, and gives up on the rest
    /// after `drain`.
    pub fn shut_down(&self, drain: Duration) {
        for acceptor in &self.acceptors {
            acceptor.stop();
        }
        for mailbox in &self.mailboxes {
            mailbox.post(Mail::ShutDown(drain));
        }
    }

    /// Waits until every worker has ended, and sums up what they counted.
    pub fn join(self) -> Stats {
        for acceptor in self.acceptors {
            acceptor.join();
        }
        let mut stats = Stats::default();
        for thread in self.threads {
            // A panic or an error of a worker's own leaves no counts behind.
            if let Ok(Ok(counted)) = thread.join() {
                stats += counted;
            }
        }
        for path in self.paths {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
        stats
    }
}

//! One thread that deals out connections, for listeners that can't be had once per worker.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Waker};

use crate::Error;
use crate::kernel::{Handed, accept};
use crate::mailbox::{Mail, Mailbox};

const LISTENER: mio::Token = mio::Token(0);
const STOP: mio::Token = mio::Token(1);

/// How long it pauses when the system has no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// A running acceptor.
#[derive(Debug)]
pub(crate) struct Acceptor {
    stop: Arc<Waker>,
    thread: JoinHandle<()>,
}

impl Acceptor {
    /// Starts to deal out the connections of `listener` to `mailboxes`, in turn.
    pub(crate) fn start<M: Send + 'static>(
        listener: OwnedFd,
        index: usize,
        mailboxes: Vec<Mailbox<M>>,
    ) -> Result<Self, Error> {
        let failed = |source| Error::System { what: "the acceptor", source };
        let poll = Poll::new().map_err(failed)?;
        let stop = Arc::new(Waker::new(poll.registry(), STOP).map_err(failed)?);
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&listener);
        poll.registry()
            .register(&mut SourceFd(&descriptor), LISTENER, Interest::READABLE)
            .map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name(format!("accept-{index}"))
            .spawn(move || deal(poll, &listener, index, &mailboxes))
            .map_err(failed)?;
        Ok(Self { stop, thread })
    }

    /// Stops accepting.
    pub(crate) fn stop(&self) {
        // The only error is a full counter, which wakes as well.
        let _ = self.stop.wake();
    }

    pub(crate) fn join(self) {
        // A panic of the acceptor has been reported by its thread.
        let _ = self.thread.join();
    }
}

fn deal<M>(mut poll: Poll, listener: &OwnedFd, index: usize, mailboxes: &[Mailbox<M>]) {
    let mut events = Events::with_capacity(8);
    let mut next = 0;
    let mut pause = None;
    loop {
        if let Err(error) = poll.poll(&mut events, pause.take())
            && error.kind() != io::ErrorKind::Interrupted
        {
            return;
        }
        if events.iter().any(|event| event.token() == STOP) {
            return;
        }
        loop {
            match accept(listener) {
                Ok((socket, peer)) => {
                    let handed = Handed { socket, listener: index, peer };
                    mailboxes[next % mailboxes.len()].post(Mail::Accepted(handed));
                    next += 1;
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    io::ErrorKind::WouldBlock => break,
                    // No descriptors left: it gets better when something is closed.
                    _ => {
                        pause = Some(PAUSE);
                        break;
                    }
                },
            }
        }
    }
}

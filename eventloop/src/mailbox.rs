//! Mail for a worker, from any thread: the only way in.
//!
//! The state of a mailbox is one atomic: awake (the worker will look by itself), mail (there is some),
//! asleep (the worker waits for the kernel). Only the first mail to a sleeping worker costs a system
//! call. Each side moves from state to state by one exchange, so that of a mail and a wait that
//! begins, one always sees the other.

mod state;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;

use bolide_buffers::Datagram;

use self::state::State;
use crate::address::Address;
use crate::datagram_pipe::DatagramPipe;
use crate::kernel::Wake;
use crate::slots::Token;
use crate::stats::Stats;

struct Bell {
    state: State,
    waker: Arc<dyn Wake>,
}

/// A socket that another process accepted.
#[derive(Debug)]
pub(crate) struct HandedIn {
    pub(crate) socket: OwnedFd,
    pub(crate) peer: Address,
    pub(crate) local: Address,
    pub(crate) listener: usize,
}

/// Contents of a mail.
pub(crate) enum Mail<M> {
    Session(Token, M),
    HandedIn(HandedIn),
    /// It came at the socket with this address of another worker, or of another process.
    Datagram {
        local: SocketAddr,
        datagram: Datagram,
    },
    /// Another process receives what comes at the sockets of datagrams.
    LeaveDatagrams,
    /// Announcement: what comes by this pipe will be mailed.
    Pipe(Arc<DatagramPipe>),
    /// Nothing more comes by it.
    PipeEnded(Arc<DatagramPipe>),
    /// The mailboxes of all workers.
    Workers(Vec<Mailbox<M>>),
    ShutDown {
        deadline: Instant,
    },
    Count(Sender<Stats>),
}

/// Sends to the sessions of one worker. Clones are cheap; any thread may hold one.
pub struct Mailbox<M> {
    sender: Sender<Mail<M>>,
    bell: Arc<Bell>,
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<M> std::fmt::Debug for Mailbox<M> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Mailbox")
    }
}

impl<M: Send + 'static> Mailbox<M> {
    /// Sends `message` to the session of `token`. When that is gone,
    /// [`Service::undelivered`](crate::Service::undelivered) gets it.
    ///
    /// # Errors
    ///
    /// The message comes back when the worker has ended.
    pub fn send(&self, token: Token, message: M) -> Result<(), M> {
        self.post(Mail::Session(token, message)).map_err(|mail| match mail {
            Mail::Session(_, message) => message,
            _ => unreachable!("what comes back is what was sent"),
        })
    }

    /// Asks the worker to end: it accepts no more, tells each session, and closes what is open at
    /// `deadline`.
    pub fn shut_down(&self, deadline: Instant) {
        // A worker that has ended has nothing left to shut down.
        let _ = self.post(Mail::ShutDown { deadline });
    }

    /// Asks the worker for its counters. `None` when it has ended.
    #[must_use]
    pub fn stats(&self) -> Option<Stats> {
        let (sender, receiver) = mpsc::channel();
        self.post(Mail::Count(sender)).ok()?;
        receiver.recv().ok()
    }

    pub(crate) fn post(&self, mail: Mail<M>) -> Result<(), Mail<M>> {
        self.sender.send(mail).map_err(|error| error.0)?;
        if self.bell.state.post() {
            self.bell.waker.wake();
        }
        Ok(())
    }
}

/// The worker's end.
pub(crate) struct Inbox<M> {
    receiver: Receiver<Mail<M>>,
    bell: Arc<Bell>,
    unread: bool,
}

impl<M> Inbox<M> {
    /// Before a wait: whether the worker may sleep. Otherwise there is mail.
    pub(crate) fn lie_down(&self) -> bool {
        !self.unread && self.bell.state.lie_down()
    }

    /// After a wait: notes whether mail came.
    pub(crate) fn get_up(&mut self) {
        self.unread |= self.bell.state.get_up();
    }

    /// The next mail.
    pub(crate) fn next(&mut self) -> Option<Mail<M>> {
        if !self.unread {
            return None;
        }
        let mail = self.receiver.try_recv().ok();
        self.unread = mail.is_some();
        mail
    }
}

/// A mailbox and the end that a worker keeps.
pub(crate) fn mailbox<M>(waker: Arc<dyn Wake>) -> (Mailbox<M>, Inbox<M>) {
    let (sender, receiver) = mpsc::channel();
    let bell = Arc::new(Bell { state: State::awake(), waker });
    (Mailbox { sender, bell: Arc::clone(&bell) }, Inbox { receiver, bell, unread: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    /// A wait that only a wake ends, as the kernel's.
    #[derive(Default)]
    struct Sleeper {
        woken: Mutex<(bool, u64)>,
        changed: Condvar,
    }

    impl Wake for Sleeper {
        fn wake(&self) {
            let mut woken = self.woken.lock().unwrap();
            *woken = (true, woken.1 + 1);
            self.changed.notify_one();
        }
    }

    impl Sleeper {
        /// Returns whether a wake came within ten seconds: if none does, one was lost.
        fn sleep(&self) -> bool {
            let woken = self.woken.lock().unwrap();
            let limit = Duration::from_secs(10);
            let (mut woken, timeout) =
                self.changed.wait_timeout_while(woken, limit, |woken| !woken.0).unwrap();
            woken.0 = false;
            !timeout.timed_out()
        }
    }

    #[test]
    fn no_wake_up_is_lost() {
        const SENDERS: u64 = 3;
        const MAILS: u64 = 30_000;
        let sleeper = Arc::new(Sleeper::default());
        let (mailbox, mut inbox) = mailbox::<u64>(sleeper.clone());
        let token = Token::new(1, 0);
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let mailbox = mailbox.clone();
                std::thread::spawn(move || {
                    for number in 0..MAILS {
                        mailbox.send(token, number).unwrap();
                        if number % 7 == 0 {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut received = 0;
        while received < SENDERS * MAILS {
            if inbox.lie_down() {
                assert!(sleeper.sleep(), "lost a wake-up after {received} mails");
            }
            inbox.get_up();
            while inbox.next().is_some() {
                received += 1;
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(received, SENDERS * MAILS);
    }

    #[test]
    fn an_awake_worker_is_not_woken() {
        let sleeper = Arc::new(Sleeper::default());
        let (mailbox, mut inbox) = mailbox::<u64>(sleeper.clone());
        let token = Token::new(1, 0);
        (0..5).for_each(|number| mailbox.send(token, number).unwrap());
        assert_eq!(sleeper.woken.lock().unwrap().1, 0);
        assert!(!inbox.lie_down(), "there is mail");
        inbox.get_up();
        (0..5).for_each(|_| assert!(inbox.next().is_some()));
        assert!(inbox.next().is_none());
        assert!(inbox.lie_down());
        (0..5).for_each(|number| mailbox.send(token, number).unwrap());
        assert_eq!(sleeper.woken.lock().unwrap().1, 1, "one wake for five mails");
    }

    #[test]
    fn mail_that_was_left_for_later_keeps_the_worker_awake() {
        let (mailbox, mut inbox) = mailbox::<u64>(Arc::new(Sleeper::default()));
        mailbox.send(Token::new(1, 0), 1).unwrap();
        mailbox.send(Token::new(1, 0), 2).unwrap();
        inbox.get_up();
        assert!(inbox.next().is_some());
        assert!(!inbox.lie_down());
        inbox.get_up();
        assert!(inbox.next().is_some());
    }

    #[test]
    fn a_message_to_an_ended_worker_comes_back() {
        let (mailbox, inbox) = mailbox::<u64>(Arc::new(Sleeper::default()));
        drop(inbox);
        assert_eq!(mailbox.send(Token::new(1, 0), 7), Err(7));
        assert_eq!(mailbox.stats(), None);
    }
}

//! The way into a worker from other threads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::service::Token;

/// What wakes a worker that waits in the kernel.
pub trait Wake: Send + Sync {
    /// Makes the worker's wait return. Cheap to call again.
    fn wake(&self);
}

/// What comes through a mailbox.
pub(crate) enum Mail<M> {
    /// A message for one session.
    Message(Token, M),
    /// A socket that the acceptor took in: its number, listener and peer.
    Accepted(crate::kernel::Handed),
    /// Stop accepting, end sessions, and give up after this time.
    ShutDown(Duration),
}

struct Bell {
    wake: Box<dyn Wake>,
    /// Whether the worker has been rung and has not looked yet: one ring serves many messages.
    rung: AtomicBool,
}

/// Sends messages to the sessions of one worker, from any thread.
pub struct Mailbox<M> {
    sender: Sender<Mail<M>>,
    bell: Arc<Bell>,
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<M> fmt::Debug for Mailbox<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mailbox")
    }
}

/// The worker's end of its mailbox.
pub(crate) struct Inbox<M> {
    receiver: Receiver<Mail<M>>,
    bell: Arc<Bell>,
}

/// A mailbox and the end that is read.
pub(crate) fn mailbox<M>(wake: Box<dyn Wake>) -> (Mailbox<M>, Inbox<M>) {
    let (sender, receiver) = channel();
    let bell = Arc::new(Bell { wake, rung: AtomicBool::new(false) });
    (Mailbox { sender, bell: Arc::clone(&bell) }, Inbox { receiver, bell })
}

impl<M> Mailbox<M> {
    /// Sends a message to the session at `token`. It is dropped when that session is gone.
    pub fn send(&self, token: Token, message: M) {
        self.post(Mail::Message(token, message));
    }

    /// Posts anything. Whether the worker still runs.
    pub(crate) fn post(&self, mail: Mail<M>) -> bool {
        let delivered = self.sender.send(mail).is_ok();
        // The message is in the queue before the bell is looked at, and the worker silences the
        // bell before it looks into the queue: one of the two sees the other.
        if !self.bell.rung.swap(true, Ordering::AcqRel) {
            self.bell.wake.wake();
        }
        delivered
    }
}

impl<M> Inbox<M> {
    /// To be called before the queue is emptied.
    pub(crate) fn silence(&self) {
        self.bell.rung.swap(false, Ordering::AcqRel);
    }

    pub(crate) fn next(&self) -> Option<Mail<M>> {
        self.receiver.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;

    struct Ring(Sender<()>);

    impl Wake for Ring {
        fn wake(&self) {
            let _ = self.0.send(());
        }
    }

    const TOKEN: Token = Token { index: 1, generation: 2 };

    #[test]
    fn one_ring_serves_many_messages() {
        let (ring, rings) = channel();
        let (mailbox, inbox) = mailbox(Box::new(Ring(ring)));
        for number in 0..10 {
            mailbox.send(TOKEN, number);
        }
        assert_eq!(rings.try_iter().count(), 1);
        inbox.silence();
        let mut seen = 0;
        while let Some(Mail::Message(token, number)) = inbox.next() {
            assert_eq!((token, number), (TOKEN, seen));
            seen += 1;
        }
        assert_eq!(seen, 10);
        mailbox.send(TOKEN, 10);
        assert_eq!(rings.try_iter().count(), 1);
    }

    #[test]
    fn no_wake_up_is_lost_between_threads() {
        let (ring, rings) = channel();
        let (mailbox, inbox) = mailbox(Box::new(Ring(ring)));
        const EACH: usize = 20_000;
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let mailbox = mailbox.clone();
                thread::spawn(move || (0..EACH).for_each(|number| mailbox.send(TOKEN, number)))
            })
            .collect();
        let mut seen = 0;
        while seen < 4 * EACH {
            // A lost wake-up would leave this waiting for ever, with messages in the queue.
            rings.recv_timeout(Duration::from_secs(20)).expect("a ring for what is in the queue");
            inbox.silence();
            while inbox.next().is_some() {
                seen += 1;
            }
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    }
}

//! Requests of signals, files and successors, one by one, until one asks for the end.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use bolide_eventloop::{Signal, Signals};

use super::live::Live;
use super::notify::Notifier;
use super::upgrade::Upgrade;

/// How often the files of certificates are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Something that the server answers.
#[derive(Debug)]
pub(super) enum Heard {
    Signal(Signal),
    /// A successor is ready, or has failed.
    Successor,
}

/// Why the server ends.
#[derive(Debug)]
pub(super) enum End {
    /// A signal asked for it.
    Asked,
    /// This process has taken over.
    TakenOver(u32),
}

/// Signals from here on, one by one; and a way to put something else among them.
pub(super) fn listen_to_signals() -> io::Result<(Receiver<Heard>, Sender<Heard>)> {
    // The access log listens for User1 too; without one, the signal must not end the process.
    let wanted =
        [Signal::Terminate, Signal::Interrupt, Signal::Hangup, Signal::User1, Signal::User2];
    let mut signals = Signals::new(&wanted)?;
    let (sender, receiver) = mpsc::channel();
    let tell = sender.clone();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        while let Some(signal) = signals.wait() {
            if sender.send(Heard::Signal(signal)).is_err() {
                return;
            }
        }
    })?;
    Ok((receiver, tell))
}

/// Sources that are listened to, and what they can change in addition to the server.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    pub(super) heard: Receiver<Heard>,
    pub(super) tell: Sender<Heard>,
    pub(super) notifier: &'a Notifier,
    /// Status that the service manager shows.
    pub(super) status: &'a str,
    pub(super) upgrade: &'a mut Upgrade,
}

impl Watch<'_> {
    /// Does what is asked for, until it is the end.
    pub(super) fn until_the_end(&mut self, live: &mut Live<'_>) -> End {
        loop {
            let heard = if live.stamps.is_empty() {
                self.heard.recv().map_err(RecvTimeoutError::from)
            } else {
                self.heard.recv_timeout(LOOK)
            };
            match heard {
                Ok(Heard::Signal(Signal::Hangup)) => {
                    self.notifier.reloading();
                    live.reload();
                    self.notifier.ready(self.status);
                }
                Ok(Heard::Signal(Signal::User1)) => {}
                Ok(Heard::Signal(Signal::User2)) => self.upgrade(live),
                Ok(Heard::Successor) => match self.upgrade.finish() {
                    Ok(successor) => return End::TakenOver(successor),
                    Err(what) => not_upgraded(&what),
                },
                Err(RecvTimeoutError::Timeout) => live.look_at_files(),
                Ok(Heard::Signal(Signal::Terminate | Signal::Interrupt))
                | Err(RecvTimeoutError::Disconnected) => return End::Asked,
            }
        }
    }

    fn upgrade(&mut self, live: &mut Live<'_>) {
        let tell = self.tell.clone();
        // It fails once the receiver has ended.
        let over = move || drop(tell.send(Heard::Successor));
        match self.upgrade.begin(|| live.running.prepare_handover(), over) {
            Ok(()) => eprintln!("bolide: upgrading: starting {}", self.upgrade.program().display()),
            Err(what) => not_upgraded(&what),
        }
    }
}

fn not_upgraded(what: &str) {
    eprintln!("bolide: not upgraded, this process continues to serve: {what}");
}

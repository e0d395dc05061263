//! A connection to another part, which several threads write to, and the sign of life on it.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::protocol::Message;

/// How often a part says that it is there.
const BEAT: Duration = Duration::from_secs(2);

/// The writing side of a connection.
#[derive(Debug)]
pub(super) struct Line(Mutex<TcpStream>);

impl Line {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Mutex::new(stream))
    }

    /// Sends a message, as a whole.
    pub(super) fn say(&self, message: &Message) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        message.send(&mut *stream)
    }

    /// Closes the connection; what waits for it ends.
    pub(super) fn close(&self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // It may be closed already.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Says on connections that this part is there, until it is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    _end: SyncSender<()>,
}

impl Heartbeat {
    pub(super) fn start(lines: Vec<Arc<Line>>) -> Self {
        let (end, ended) = sync_channel(0);
        thread::spawn(move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                for line in &lines {
                    // Who reads from it notices that it is closed.
                    let _ = line.say(&Message::Alive);
                }
            }
        });
        Self { _end: end }
    }
}

//! One end of a connection that follows its script.

use std::time::Duration;

use bolide_frames::{PREFACE, settings};
use bolide_simnet::{Client, Wire};

use crate::act::{ACTS_MAX, Act, Script};

/// The most bytes that one end sends.
const SENT_BYTES_MAX: usize = 512 * 1024;

/// One end of a connection.
pub struct Party {
    script: Script,
    is_client: bool,
    is_begun: bool,
    is_over: bool,
    at: usize,
    due: Duration,
    sent_bytes: usize,
    repeat: u8,
}

impl Party {
    /// The end that connects; the other begins when it has received something.
    #[must_use]
    pub fn new(script: Script, is_client: bool) -> Self {
        Self {
            script,
            is_client,
            is_begun: false,
            is_over: false,
            at: 0,
            due: Duration::ZERO,
            sent_bytes: 0,
            repeat: 1,
        }
    }

    fn send(&mut self, bytes: &[u8], wire: &mut Wire<'_>) {
        self.sent_bytes += bytes.len();
        if self.sent_bytes <= SENT_BYTES_MAX {
            wire.send(bytes);
        }
    }

    fn begin(&mut self, wire: &mut Wire<'_>) {
        self.is_begun = true;
        if self.script.is_h2 {
            let preface: &[u8] = if self.is_client { PREFACE } else { b"" };
            self.send(&[preface, &settings(&[])].concat(), wire);
        }
    }

    fn act(&mut self, act: &Act, wire: &mut Wire<'_>) {
        let times = std::mem::replace(&mut self.repeat, 1);
        match act {
            Act::Message(message) => {
                let bytes = message.bytes();
                (0..times).for_each(|_| self.send(&bytes, wire));
            }
            Act::Frame(frame) => {
                (0..times).for_each(|nth| self.send(&frame.bytes(u32::from(nth)), wire));
            }
            Act::Raw(bytes) => (0..times).for_each(|_| self.send(bytes, wire)),
            Act::Repeat(times) => self.repeat = *times,
            Act::Read(reads) => wire.read(*reads),
            Act::Pause(milliseconds) => {
                self.due = wire.now() + Duration::from_millis(u64::from(*milliseconds));
            }
            Act::Finish => self.end(wire),
            Act::Reset => {
                wire.reset();
                self.is_over = true;
            }
        }
    }

    fn end(&mut self, wire: &mut Wire<'_>) {
        wire.finish();
        self.is_over = true;
    }
}

impl Client for Party {
    fn advance(&mut self, wire: &mut Wire<'_>) {
        if self.is_over || wire.was_reset() {
            return;
        }
        if !self.is_begun && (self.is_client || !wire.received().is_empty()) {
            self.begin(wire);
        }
        if !self.is_begun {
            return;
        }
        let count = self.script.acts.len().min(ACTS_MAX);
        while self.at < count && wire.now() >= self.due && !self.is_over {
            let act = self.script.acts[self.at].clone();
            self.at += 1;
            self.act(&act, wire);
        }
        if self.is_over {
            return;
        }
        if self.due > wire.now() {
            wire.wake_after(self.due - wire.now());
        } else if wire.eof() && self.at >= count {
            self.end(wire);
        }
    }
}

//! One socket's turn: read, work, write.

use std::io::{self, IoSlice, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use bolide_buffers::{Flush, ReceiveBuffer, SendQueue};

use crate::kernel::Kernel;
use crate::service::{After, Close, CloseCause, Service, Token, Turn};
use crate::slots::Slot;
use crate::{Mailbox, Stats};

/// How many reads, or refills of a drained output, one socket gets before the others have their
/// turn. A read brings at most a block.
const ROUNDS_MAX: usize = 8;

/// How long a socket whose session has ended still takes in what the peer sends: closing it with
/// unread bytes would reset the connection and could destroy the last answer.
const LINGER: Duration = Duration::from_secs(2);

/// How many bytes are discarded meanwhile, at most.
const LINGER_BYTES_MAX: u64 = 1024 * 1024;

/// The round-trip time is asked for again after this many received bytes.
const RTT_AFTER_BYTES: u64 = 1024 * 1024;

/// How much unsent output a socket may hold: what leaves in about 4 ms, so that a small answer never
/// waits behind a large one for longer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    limit: u32,
    /// What the kernel was told; 0 for nothing yet.
    told: u32,
    sent_bytes: u64,
    blocked_at: Option<Instant>,
    received_bytes: u64,
}

impl Pace {
    const LIMIT_MIN: u32 = 16 * 1024;
    const LIMIT_MAX: u32 = 1024 * 1024;
    const LIMIT_START: u32 = 256 * 1024;
    const AHEAD: Duration = Duration::from_millis(4);

    pub(crate) fn new() -> Self {
        Self {
            limit: Self::LIMIT_START,
            told: 0,
            sent_bytes: 0,
            blocked_at: None,
            received_bytes: 0,
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// The socket has taken what it could: measures how fast it does. Returns a limit to tell the
    /// kernel, when it differs much from what it was told.
    fn blocked(&mut self, now: Instant) -> Option<u32> {
        let since = self.blocked_at.replace(now).map(|at| now.saturating_duration_since(at));
        let sent_bytes = std::mem::take(&mut self.sent_bytes);
        let since = since.filter(|since| !since.is_zero() && *since < Duration::from_secs(2))?;
        let ahead = u128::from(sent_bytes) * Self::AHEAD.as_nanos() / since.as_nanos();
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        let ahead = ahead.clamp(Self::LIMIT_MIN, Self::LIMIT_MAX);
        self.limit = self.limit / 2 + ahead / 2;
        let apart = self.told == 0 || self.limit > self.told * 2 || self.limit < self.told / 2;
        if apart {
            self.told = self.limit;
        }
        apart.then_some(self.limit)
    }
}

/// What becomes of a socket after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It waits for the next event.
    Keep,
    /// It has more to do than its budget allowed, and no event will come for it.
    Requeue,
    /// It is over.
    Close(CloseCause),
}

/// Why a session has its turn.
pub(crate) enum Cause<M> {
    Ready,
    Message(M),
    ShutDown,
}

/// What a turn works with: the worker's things.
pub(crate) struct Driver<'a, K, S: Service> {
    pub(crate) kernel: &'a mut K,
    pub(crate) service: &'a mut S,
    pub(crate) input: &'a mut ReceiveBuffer,
    pub(crate) mailbox: &'a Mailbox<S::Message>,
    pub(crate) stats: &'a mut Stats,
    pub(crate) now: Instant,
}

/// A kernel's socket as something to write into.
struct Sink<'a, K: Kernel> {
    kernel: &'a mut K,
    socket: &'a mut K::Socket,
    sent_bytes: u64,
}

impl<K: Kernel> Write for Sink<'_, K> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent = self.kernel.send(self.socket, slices)?;
        self.sent_bytes += sent as u64;
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<K: Kernel, S: Service> Driver<'_, K, S> {
    /// Gives a session its turn: what arrived goes in, what it says goes out in one write.
    #[inline]
    pub(crate) fn drive(
        &mut self,
        slot: &mut Slot<K::Socket, S::Session>,
        token: Token,
        output: &mut SendQueue,
        cause: Cause<S::Message>,
    ) -> Verdict {
        slot.used = self.now;
        if slot.after.close.is_some() {
            return self.flush(slot, output).unwrap_or_else(Verdict::Close);
        }
        let mut cause = Some(cause);
        for _ in 0..ROUNDS_MAX {
            self.input.start(&slot.rest);
            if !slot.rest.is_empty() {
                slot.rest = Box::default();
            }
            let may_read = slot.readable
                && slot.after.wants_input
                && !slot.eof
                && output.len() < slot.pace.limit();
            if may_read && let Err(cause) = self.receive(slot) {
                return Verdict::Close(cause);
            }
            let cause = cause.take().unwrap_or(Cause::Ready);
            let Some(after) = self.call(slot, token, output, cause) else {
                return Verdict::Close(CloseCause::Panic);
            };
            if !self.input.is_empty() {
                slot.rest = self.input.take_rest();
            }
            slot.after = after;
            match self.flush(slot, output) {
                Ok(Verdict::Keep) => {}
                Ok(verdict) => return verdict,
                Err(cause) => return Verdict::Close(cause),
            }
            let goes_on = after.more || (slot.readable && after.wants_input && !slot.eof);
            if slot.blocked || slot.lingering || !goes_on {
                return Verdict::Keep;
            }
        }
        Verdict::Requeue
    }

    /// Reads once into the worker's receive buffer.
    #[inline]
    fn receive(&mut self, slot: &mut Slot<K::Socket, S::Session>) -> Result<(), CloseCause> {
        self.input.make_room();
        match self.kernel.receive(&mut slot.socket, self.input) {
            Ok((0, _)) => {
                slot.eof = true;
                slot.readable = false;
            }
            Ok((received, offered)) => {
                self.stats.received_bytes += received as u64;
                slot.pace.received_bytes += received as u64;
                // A short read has emptied the socket, unless the end came with the bytes: data
                // and FIN can share one edge.
                if received < offered && !slot.read_closed {
                    slot.readable = false;
                }
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => slot.readable = false,
                io::ErrorKind::Interrupted => {}
                kind => return Err(CloseCause::Io(kind)),
            },
        }
        Ok(())
    }

    /// Calls the session. `None` when it panicked.
    #[inline]
    fn call(
        &mut self,
        slot: &mut Slot<K::Socket, S::Session>,
        token: Token,
        output: &mut SendQueue,
        cause: Cause<S::Message>,
    ) -> Option<After> {
        let rtt = if slot.pace.received_bytes >= RTT_AFTER_BYTES {
            slot.pace.received_bytes = 0;
            self.kernel.rtt(&slot.socket)
        } else {
            None
        };
        let mut turn = Turn {
            token,
            input: self.input,
            output,
            output_limit: slot.pace.limit(),
            now: self.now,
            eof: slot.eof,
            mailbox: self.mailbox,
            rtt,
        };
        let (service, session) = (&mut *self.service, &mut slot.session);
        catch_unwind(AssertUnwindSafe(|| match cause {
            Cause::Ready => service.turn(session, &mut turn),
            Cause::Message(message) => service.message(session, message, &mut turn),
            Cause::ShutDown => service.shut_down(session, &mut turn),
        }))
        .ok()
    }

    /// Writes what there is, and ends the socket when that was its last.
    #[inline]
    fn flush(
        &mut self,
        slot: &mut Slot<K::Socket, S::Session>,
        output: &mut SendQueue,
    ) -> Result<Verdict, CloseCause> {
        if !slot.blocked {
            let mut sink = Sink { kernel: self.kernel, socket: &mut slot.socket, sent_bytes: 0 };
            let flushed = self.service.flush(&mut slot.session, output, &mut sink);
            let sent_bytes = sink.sent_bytes;
            self.stats.sent_bytes += sent_bytes;
            slot.pace.sent_bytes += sent_bytes;
            match flushed {
                Ok(Flush::Drained) => {}
                Ok(Flush::Blocked) => self.blocked(slot),
                Err(error) => return Err(CloseCause::Io(error.kind())),
            }
        }
        match slot.after.close {
            None => Ok(Verdict::Keep),
            Some(Close::Now) => Err(CloseCause::Session),
            Some(Close::Flushed) if slot.blocked => Ok(Verdict::Keep),
            Some(Close::Flushed) => {
                self.kernel.finish(&mut slot.socket);
                if slot.eof {
                    return Err(CloseCause::Session);
                }
                slot.lingering = true;
                slot.after.deadline = Some(self.now + LINGER);
                slot.pace.received_bytes = 0;
                self.linger(slot)
            }
        }
    }

    #[cold]
    fn blocked(&mut self, slot: &mut Slot<K::Socket, S::Session>) {
        slot.blocked = true;
        self.stats.blocked += 1;
        if let Some(limit) = slot.pace.blocked(self.now) {
            self.kernel.limit_unsent(&mut slot.socket, limit);
        }
    }

    /// Discards what still arrives on a socket whose session has ended.
    #[cold]
    pub(crate) fn linger(
        &mut self,
        slot: &mut Slot<K::Socket, S::Session>,
    ) -> Result<Verdict, CloseCause> {
        while slot.readable {
            self.input.start(&[]);
            self.receive(slot)?;
            if slot.eof || slot.pace.received_bytes > LINGER_BYTES_MAX {
                return Err(CloseCause::Session);
            }
        }
        Ok(Verdict::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_what_leaves_in_four_milliseconds() {
        let start = Instant::now();
        let mut pace = Pace::new();
        pace.blocked(start);
        // 10 MB/s: 40 KB in 4 ms.
        for turn in 1..20_u32 {
            pace.sent_bytes = 100_000;
            pace.blocked(start + Duration::from_millis(10) * turn);
        }
        assert!((39_000..41_000).contains(&pace.limit()), "{}", pace.limit());
        // 10 GB/s: as much as is allowed.
        for turn in 1..20_u32 {
            pace.sent_bytes = 10_000_000;
            pace.blocked(start + Duration::from_millis(200 + u64::from(turn)));
        }
        assert!(pace.limit() > 1_000_000, "{}", pace.limit());
    }

    #[test]
    fn a_stall_does_not_count_as_slowness() {
        let start = Instant::now();
        let mut pace = Pace::new();
        pace.blocked(start);
        pace.sent_bytes = 1;
        pace.blocked(start + Duration::from_secs(60));
        assert_eq!(pace.limit(), Pace::LIMIT_START as usize);
    }
}

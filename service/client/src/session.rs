//! RFC 9110 §3.3: one connection to a server, from `connect` to its end.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use bolide_buffers::{Flush, ReceiveBuffer, SendQueue};
use bolide_connection::{Alpn, Connection, IdentityError, Limits, Opened, QuicEndpoint};
use bolide_eventloop::{After, CloseCause, Token, Turn};
use bolide_semantics::{CloseReason, Context, Head, Output};

use crate::limits::PASS_EVENTS_COUNT;
use crate::{Dial, Ending, Established, Orders, Owner, Step};

/// How large the block is that plaintext is opened into, in bytes.
const PLAIN_BLOCK_BYTES: usize = 256 * 1024;

/// The kernel is asked for the round-trip time again after this many received bytes: receive
/// windows follow it, and small responses never pay for it.
const RTT_AFTER_BYTES: usize = 1024 * 1024;

/// The same for the first time: half of a stream's first window, so that windows grow from the first round
/// trip on.
const RTT_FIRST_BYTES: usize = 32 * 1024;

/// Buffers that the sessions of a worker use in turn.
#[derive(Debug)]
pub struct Workbench {
    pub(crate) limits: Limits,
    head: Head,
    plain: ReceiveBuffer,
    /// The connections over QUIC, once there was one.
    pub(crate) quic: Option<Box<QuicEndpoint<Token>>>,
}

impl Workbench {
    /// A workbench for connections with these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let plain = ReceiveBuffer::new(PLAIN_BLOCK_BYTES);
        Self { limits, head: Head::default(), plain, quic: None }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// One connection to a server.
#[derive(Debug)]
pub struct Session {
    pub(crate) connection: Connection,
    /// When it must be ready, until it is.
    ready_by: Instant,
    required: Option<Alpn>,
    step: Step,
    /// Its owner has been told that it is over.
    pub(crate) over: bool,
    /// This side of a tunnel has ended.
    sent_all: bool,
    /// Bytes to be received until the round-trip time is asked for.
    rtt_after: usize,
    /// Bytes that are still to be sent before everything else.
    preamble: Option<Preamble>,
}

/// Bytes of which so many are sent.
#[derive(Debug)]
struct Preamble(Arc<[u8]>, usize);

impl Session {
    /// A connection that is being made since `now`.
    ///
    /// # Errors
    ///
    /// When the server's name is none.
    pub fn new(dial: &Dial, bench: &Workbench, now: Instant) -> Result<Self, IdentityError> {
        let (connection, required) = dial.open(&bench.limits, now)?;
        let preamble = dial.preamble.as_ref().map(|bytes| Preamble(Arc::clone(bytes), 0));
        Ok(Self { preamble, ..Self::with(connection, required, now + dial.timeout) })
    }

    pub(crate) fn with(connection: Connection, required: Option<Alpn>, ready_by: Instant) -> Self {
        let step = Step::Connecting;
        let (over, sent_all, rtt_after) = (false, false, RTT_FIRST_BYTES);
        Self { connection, ready_by, required, step, over, sent_all, rtt_after, preamble: None }
    }

    /// Returns what the loop is told about a connection that has just been asked for.
    #[must_use]
    pub fn first_wish(&self) -> After {
        After::READ.by(Some(self.ready_by))
    }

    /// Returns whether requests can be sent, or could be until it ended.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.step == Step::Ready
    }

    /// Returns whether the connection is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Something happened: bytes, an end, a deadline, room, or the owner wants to be called.
    #[inline]
    pub fn turn<M>(
        &mut self,
        turn: &mut Turn<'_, M>,
        bench: &mut Workbench,
        owner: &mut impl Owner,
    ) -> After {
        if let Some(endpoint) = &mut bench.quic {
            self.connection.receive_datagrams(endpoint, turn.now);
        }
        if self.step != Step::Ready {
            if !turn.connected && turn.now < self.ready_by {
                return self.first_wish();
            }
            if turn.now >= self.ready_by {
                self.over(owner, &Ending::late(self.step));
                return After::CLOSED;
            }
            if self.step == Step::Connecting && !self.connection.is_quic() {
                self.step = Step::Handshaking;
                owner.connected();
            }
        }
        let is_tls = self.connection.is_tls();
        // Before records are opened: what they take from the input has been received, too.
        let received = turn.input.len();
        self.rtt_after = self.rtt_after.saturating_sub(received);
        if self.rtt_after == 0 {
            self.rtt_after = RTT_AFTER_BYTES;
            if let Some(rtt) = turn.rtt() {
                self.connection.set_rtt(rtt);
            }
        }
        let mut events_left = PASS_EVENTS_COUNT;
        let (driven, unread) = loop {
            let opened = self.connection.open_some_records(turn.input, &mut bench.plain);
            let has_left = matches!(opened, Opened::Cut | Opened::Part);
            if turn.eof && !has_left {
                self.connection.receive_eof();
            }
            let input = if is_tls { &mut bench.plain } else { &mut *turn.input };
            let cx = Context {
                input,
                output: turn.output,
                output_limit: turn.output_limit,
                head: &mut bench.head,
                now: turn.now,
            };
            let mut orders = Orders { connection: &mut self.connection, cx, ordered: false };
            let (step, limits) = (&mut self.step, &bench.limits);
            let driven = drive(&mut orders, step, self.required, limits, &mut events_left, owner);
            let unread = orders.cx.input.len();
            let is_full = turn.output.len() >= turn.output_limit;
            match driven {
                Ok(pass) if opened == Opened::Part && !is_full && !pass.cut => {}
                Ok(pass) => {
                    let cut = pass.cut || opened == Opened::Cut;
                    break (Ok(Pass { cut, ..pass }), unread);
                }
                Err(reason) => break (Err(reason), unread),
            }
        };
        if is_tls {
            self.connection.keep_records(&mut bench.plain);
        }
        match driven {
            Ok(pass) => self.after(turn, pass, unread, owner),
            Err(reason) => self.finish(reason, owner),
        }
    }

    /// Returns what the loop is to do next.
    #[inline]
    fn after<M>(
        &mut self,
        turn: &Turn<'_, M>,
        pass: Pass,
        unread: usize,
        owner: &impl Owner,
    ) -> After {
        let ends_sending = !self.sent_all && self.connection.ends_sending();
        if ends_sending {
            self.sent_all = true;
            self.connection.finish();
        }
        let own = if self.step == Step::Ready { owner.deadline() } else { Some(self.ready_by) };
        After {
            wants_input: self.connection.wants_input(),
            more: turn.output.len() >= turn.output_limit,
            cut: pass.cut,
            deadline: match (pass.deadline, own) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            expects: self.connection.expects().saturating_sub(unread as u64),
            idle: false,
            // What is not consumed is its reader's.
            held_bytes: self.connection.held_bytes(),
            ends_sending,
            close: None,
        }
    }

    /// The connection is over: what is queued still leaves, unless a reset has to say that it is not complete.
    #[cold]
    fn finish(&mut self, reason: CloseReason, owner: &mut impl Owner) -> After {
        let resets = reason.reset;
        let tls = self.connection.tls_failure().map(|failure| failure.what.clone());
        self.over(owner, &Ending { step: self.step, reason, tls, socket: None });
        if resets {
            return After::RESET;
        }
        self.connection.finish();
        After { held_bytes: self.connection.held_bytes(), ..After::SENT }
    }

    #[cold]
    fn over(&mut self, owner: &mut impl Owner, ending: &Ending) {
        if !std::mem::replace(&mut self.over, true) {
            owner.ended(ending);
        }
    }

    /// Writes what is queued: sealed, if there is TLS.
    ///
    /// # Errors
    ///
    /// Whatever `sink` reports, except `WouldBlock`.
    #[inline]
    pub fn flush(&mut self, output: &mut SendQueue, sink: &mut impl Write) -> io::Result<Flush> {
        if self.preamble.is_some() && !self.send_preamble(sink)? {
            return Ok(Flush::Blocked);
        }
        self.connection.flush(output, sink)
    }

    /// Writes what comes before everything else. Whether all of it is written.
    #[cold]
    fn send_preamble(&mut self, sink: &mut impl Write) -> io::Result<bool> {
        while let Some(Preamble(bytes, sent)) = &mut self.preamble {
            match sink.write(&bytes[*sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if *sent >= bytes.len() {
                self.preamble = None;
            }
        }
        Ok(true)
    }

    /// The worker is to end: the connection ends when everything open is complete.
    pub fn shut_down<M>(
        &mut self,
        turn: &mut Turn<'_, M>,
        bench: &mut Workbench,
        owner: &mut impl Owner,
    ) -> After {
        if self.step != Step::Ready {
            let reason = CloseReason::orderly("shutdown", "the connection was shut down");
            let ending = Ending { step: self.step, reason, tls: None, socket: None };
            self.over(owner, &ending);
            return After::CLOSED;
        }
        let mut cx = Context {
            input: turn.input,
            output: turn.output,
            output_limit: turn.output_limit,
            head: &mut bench.head,
            now: turn.now,
        };
        self.connection.shut_down(&mut cx);
        self.turn(turn, bench, owner)
    }

    /// The loop has closed the socket.
    pub fn close(mut self, cause: CloseCause, owner: &mut impl Owner) {
        let ending = Ending::by_loop(self.step, cause);
        self.over(owner, &ending);
    }
}

/// How far a turn came.
#[derive(Debug, Clone, Copy)]
struct Pass {
    /// Deadline of the connection.
    deadline: Option<Instant>,
    /// The turn's events are used up, and there may be more.
    cut: bool,
}

/// Reports what came, as far as one turn may go, and carries out what is ordered. Fails with why the connection is over.
#[inline]
fn drive(
    orders: &mut Orders<'_>,
    step: &mut Step,
    required: Option<Alpn>,
    limits: &Limits,
    events_left: &mut u32,
    owner: &mut impl Owner,
) -> Result<Pass, CloseReason> {
    loop {
        let output = orders.connection.poll(&mut orders.cx, limits);
        // What a server says of its settings may come together with the end of the handshake.
        let is_over = matches!(output, Output::Closed(_));
        let became_ready =
            *step != Step::Ready && !is_over && become_ready(orders, step, required, owner)?;
        match output {
            Output::Exchange(id, event) => {
                owner.exchange(id, event, orders);
                *events_left -= 1;
                if *events_left == 0 {
                    return Ok(Pass { deadline: None, cut: true });
                }
            }
            Output::Connection(event) => owner.connection(event, orders),
            Output::Closed(reason) => return Err(reason),
            // What was ordered because of that is to be polled for.
            Output::Wait(_) if became_ready => {}
            Output::Wait(deadline) => {
                let pass = Pass { deadline: deadline.map(|deadline| deadline.at), cut: false };
                if *step != Step::Ready {
                    return Ok(pass);
                }
                // Orders from within the reports have been seen by this poll.
                orders.ordered = false;
                owner.settled(orders);
                if !orders.ordered {
                    return Ok(pass);
                }
            }
        }
    }
}

/// Tells the owner that requests can be sent, if they can. Whether they can.
#[cold]
fn become_ready(
    orders: &mut Orders<'_>,
    step: &mut Step,
    required: Option<Alpn>,
    owner: &mut impl Owner,
) -> Result<bool, CloseReason> {
    let Some(version) = orders.connection.version() else { return Ok(false) };
    let tls = orders.connection.tls_facts();
    let agreed = match version {
        // Nothing else is agreed on over QUIC, where requests may leave before the handshake is complete.
        http::Version::HTTP_3 => Some(Alpn::H3),
        _ => tls.as_ref().and_then(|facts| facts.alpn),
    };
    if required.is_some_and(|required| !suits(required, agreed)) {
        return Err(OTHER_PROTOCOL);
    }
    *step = Step::Ready;
    owner.ready(&Established { version, tls }, orders);
    Ok(true)
}

/// A protocol was required that the server does not speak.
const OTHER_PROTOCOL: CloseReason =
    CloseReason::peer("alpn", "the server did not agree to the application protocol");

/// Returns whether what ALPN agreed on is what was required.
fn suits(required: Alpn, agreed: Option<Alpn>) -> bool {
    agreed == Some(required) || (required == Alpn::Http11 && agreed.is_none())
}

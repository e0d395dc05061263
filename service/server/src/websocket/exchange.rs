//! A WebSocket connection as an exchange: bytes in, bytes out, timers.

use std::time::Instant;

use bolide_buffers::PieceQueue;
use bolide_semantics::{AbortReason, End};
use bolide_websocket::{Close, CloseCode, Codec, Event};
use bytes::Bytes;

use super::{Options, Owner, Socket};
use crate::limits::PeerLimits;
use crate::{Exchange, Io, Response};

/// A WebSocket connection that was accepted.
#[derive(Debug)]
pub struct WebSocket {
    core: Core,
    owner: Box<dyn Owner>,
    /// Until it is sent.
    response: Option<Response>,
    /// The owner was told of the end.
    is_told: bool,
}

/// The connection without its owner.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) codec: Codec,
    pub(super) protocol: Option<String>,
    pub(super) paused: bool,
    /// When the owner wants to be woken.
    pub(super) alarm: Option<Instant>,
    /// Bytes that were received and not looked at.
    input: PieceQueue,
    input_ended: bool,
    /// Bytes that the connection did not take.
    refused: Option<Bytes>,
    pub(super) limits: PeerLimits,
    /// When the peer was heard last.
    heard: Instant,
    /// A ping of ours waits for its pong.
    pinged: bool,
    /// When its silence is looked at next.
    ping_at: Option<Instant>,
    /// When the peer must have answered our close frame.
    close_by: Option<Instant>,
    /// When the message that is being received must be complete.
    message_by: Option<Instant>,
}

impl Core {
    pub(super) fn new(
        codec: Codec,
        options: &Options,
        protocol: Option<String>,
        now: Instant,
    ) -> Self {
        let pings = !options.peer.ping_interval.is_zero();
        Self {
            codec,
            protocol,
            paused: false,
            alarm: None,
            input: PieceQueue::new(),
            input_ended: false,
            refused: None,
            limits: options.peer,
            heard: now,
            pinged: false,
            ping_at: pings.then(|| now + options.peer.ping_interval),
            close_by: None,
            message_by: None,
        }
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.codec.output_bytes() + self.refused.as_ref().map_or(0, Bytes::len)
    }

    fn can_receive(&self) -> bool {
        let room = self.unsent_bytes() <= self.limits.output_bytes;
        !self.input.is_empty() && (room || self.codec.is_over()) && !self.paused
    }

    /// Hands over to the connection what it takes.
    fn flush(&mut self, io: &mut Io<'_>) {
        while io.is_sendable()
            && let Some(bytes) = self.refused.take().or_else(|| self.codec.pop_output())
        {
            if let Err(bytes) = io.send(bytes, End::No) {
                self.refused = Some(bytes);
            }
        }
    }

    /// The next thing that the peer did. `None`: everything received was looked at.
    fn receive(&mut self, io: &mut Io<'_>) -> Option<Event> {
        loop {
            let front = self.input.front_mut()?;
            let before = front.len();
            let event = self.codec.receive(front);
            io.consumed(before - front.len());
            if event.is_some() {
                return event;
            }
            self.input.pop();
        }
    }

    /// Looks at a silent peer. Whether it is to be given up.
    fn is_dead(&mut self, now: Instant) -> bool {
        if self.close_by.is_some_and(|at| at <= now) {
            return true;
        }
        if self.ping_at.is_none_or(|at| at > now) {
            return false;
        }
        let reads = !self.paused && self.input.is_empty();
        let silent = reads && self.heard + self.limits.ping_interval <= now;
        if silent && self.pinged {
            return true;
        }
        if silent {
            self.pinged = self.codec.send_ping(Bytes::new()).is_ok();
        }
        let from = if silent || !reads { now } else { self.heard };
        self.ping_at = Some(from + self.limits.ping_interval);
        false
    }

    /// Returns whether the peer had its time for a message and has not completed it. Time in which nothing is read does not
    /// count against it.
    fn is_message_late(&mut self, now: Instant) -> bool {
        if self.message_by.is_none_or(|at| at > now) {
            return false;
        }
        let reads = !self.paused && self.input.is_empty();
        if !reads {
            self.message_by = None;
        }
        reads
    }

    /// Sets the timers for what is waited for next.
    fn set_timers(&mut self, io: &mut Io<'_>) {
        if self.codec.is_closing() && self.close_by.is_none() {
            self.close_by = Some(io.now() + self.limits.close_timeout);
        }
        let timeout = self.limits.message_timeout;
        if !self.codec.is_receiving() || self.codec.is_closing() || timeout.is_zero() {
            self.message_by = None;
        } else if self.message_by.is_none() {
            self.message_by = Some(io.now() + timeout);
        }
        let all = [self.alarm, self.ping_at, self.close_by, self.message_by];
        io.wake_at(all.into_iter().flatten().min());
    }
}

impl WebSocket {
    pub(super) fn new(core: Core, response: Response, owner: Box<dyn Owner>) -> Self {
        Self { core, owner, response: Some(response), is_told: false }
    }

    fn call(&mut self, io: &mut Io<'_>, act: impl FnOnce(&mut dyn Owner, &mut Socket<'_, '_>)) {
        if !self.is_told {
            act(&mut *self.owner, &mut Socket { core: &mut self.core, io });
        }
    }

    fn tell(&mut self, close: &Close) {
        if !std::mem::replace(&mut self.is_told, true) {
            self.owner.on_close(close);
        }
    }

    /// Does everything that can be done now.
    fn run(&mut self, io: &mut Io<'_>) {
        loop {
            while self.core.can_receive()
                && io.may_go_on()
                && let Some(event) = self.core.receive(io)
            {
                io.count_event();
                self.handle(event, io);
            }
            self.core.flush(io);
            while io.is_sendable() && !self.core.codec.is_closing() && !self.is_told {
                self.call(io, |owner, socket| owner.on_sendable(socket));
                if self.core.unsent_bytes() == 0 {
                    break;
                }
                self.core.flush(io);
            }
            if !self.core.can_receive() || !io.may_go_on() {
                break;
            }
        }
        self.core.input.keep();
        self.end_if_over(io);
        self.core.set_timers(io);
    }

    fn handle(&mut self, event: Event, io: &mut Io<'_>) {
        match event {
            Event::Message { kind, payload, end } => {
                if end == End::Yes {
                    self.core.message_by = None;
                }
                self.call(io, |owner, socket| owner.on_message(kind, payload, end, socket));
            }
            // The codec answers it.
            Event::Ping(_) => {}
            Event::Pong(content) => self.call(io, |owner, socket| owner.on_pong(content, socket)),
            Event::Closed(close) => self.tell(&close),
            Event::Failed(failure) => {
                if let Some(limit) = failure.limit {
                    io.note_limit(limit);
                }
                let reason = Bytes::from_static(failure.what.as_bytes());
                self.tell(&Close { code: failure.code, reason });
            }
        }
    }

    /// Ends the tunnel once nothing is left to say.
    fn end_if_over(&mut self, io: &mut Io<'_>) {
        let cut = self.core.input_ended && self.core.input.is_empty();
        if cut {
            self.tell(&Close::abnormal());
        }
        let over = cut || self.core.codec.is_over();
        if over && io.is_sendable() && self.core.unsent_bytes() == 0 {
            let _ = io.send(Bytes::new(), End::Yes);
        }
    }
}

impl Exchange for WebSocket {
    fn on_start(&mut self, io: &mut Io<'_>) {
        if let Some(response) = self.response.take() {
            io.start(&response, None);
        }
        self.call(io, |owner, socket| owner.on_open(socket));
        self.run(io);
    }

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        self.core.heard = io.now();
        self.core.pinged = false;
        self.core.input.push(data);
        self.core.input_ended |= end == End::Yes;
        self.run(io);
    }

    fn on_sendable(&mut self, io: &mut Io<'_>) {
        self.run(io);
    }

    fn on_wake(&mut self, io: &mut Io<'_>) {
        if self.core.is_dead(io.now()) {
            self.tell(&Close::abnormal());
            return io.abort();
        }
        if self.core.is_message_late(io.now()) {
            io.note_limit("WEBSOCKET_MESSAGE_TIMEOUT");
            let why = "the message was not complete in time";
            // The codec is not closing: a message that is late is looked for only until then.
            let _ = self.core.codec.send_close(CloseCode::POLICY, why);
            self.tell(&Close::abnormal());
        }
        if self.core.alarm.is_some_and(|at| at <= io.now()) {
            self.core.alarm = None;
        }
        self.call(io, |owner, socket| owner.on_wake(socket));
        self.run(io);
    }

    fn held_bytes(&self) -> usize {
        let refused = self.core.refused.as_ref().map_or(0, Bytes::len);
        let owner = size_of_val(&*self.owner) + self.owner.held_bytes();
        self.core.codec.held_bytes() + refused + owner
    }

    fn on_shut_down(&mut self, io: &mut Io<'_>) {
        // Nothing to do when it is being closed already.
        let _ = self.core.codec.send_close(CloseCode::GOING_AWAY, "the server is shutting down");
        self.run(io);
    }

    fn on_abort(&mut self, _: AbortReason) {
        self.tell(&Close::abnormal());
    }
}

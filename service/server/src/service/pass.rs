//! One turn of a session: what has come is opened, the session acts on it, and the loop is told what comes next.

use std::cell::Cell;
use std::time::Instant;

use bolide_connection::Opened;
use bolide_eventloop::{After, Turn};
use bolide_semantics::{Context, ExchangeId};

use super::HttpService;
use crate::Message;
use crate::limits::PASS_EVENTS_COUNT;
use crate::outward::Outward;
use crate::responder::Address;
use crate::router::Router;
use crate::session::Session;
use crate::work::Work;
use bolide_observability::{LOOP, PARSE, TLS_OPEN};

impl HttpService {
    /// Lends the worker's things to a session for one turn.
    #[inline]
    pub(super) fn work(
        &mut self,
        session: &mut Session,
        turn: &mut Turn<'_, Message>,
        act: impl Fn(&mut Session, &mut Work<'_>, &Router) -> Option<Instant>,
    ) -> After {
        // Before records are opened: what they take from the input has been received, too.
        if session.tuning.is_due(turn.input.len()) {
            session.tuning.tune(&mut session.connection, &mut self.window_memory, turn.rtt());
        }
        let events_left = Cell::new(PASS_EVENTS_COUNT);
        let opened = self.open(session, turn);
        let mut left = self.act(session, turn, &events_left, &act);
        if opened == Opened::Part {
            left = self.act_on_parts(session, turn, &events_left, &act, left);
        }
        if session.connection.is_tls() {
            self.meter.enter(TLS_OPEN);
            session.connection.keep_records(&mut self.plain);
        }
        self.meter.enter(LOOP);
        let is_idle = session.connection.is_idle() && !session.has_exchanges();
        if let Some(subject) = &mut session.subject {
            self.observer.pass_ended(subject, &mut session.connection, is_idle);
        }
        after(session, turn, left, is_idle)
    }

    /// Opens the other parts of what has come, as far as the session can act on them.
    #[inline(never)]
    fn act_on_parts(
        &mut self,
        session: &mut Session,
        turn: &mut Turn<'_, Message>,
        events_left: &Cell<u32>,
        act: &impl Fn(&mut Session, &mut Work<'_>, &Router) -> Option<Instant>,
        mut left: Left,
    ) -> Left {
        while !session.cut && session.closed.is_none() && turn.output.len() < turn.output_limit {
            let opened = self.open(session, turn);
            left = self.act(session, turn, events_left, act);
            if opened != Opened::Part {
                break;
            }
        }
        left
    }

    /// Opens what has come, or a part of it.
    #[inline(always)]
    fn open(&mut self, session: &mut Session, turn: &mut Turn<'_, Message>) -> Opened {
        let mut opened = Opened::All;
        let place = session.connection.endpoint();
        if session.connection.is_tls() || place.is_some() {
            self.meter.enter(TLS_OPEN);
            match place {
                Some(place) => self.endpoints.receive(place, &mut session.connection, turn.now),
                None => {
                    opened = session.connection.open_some_records(turn.input, &mut self.plain);
                }
            }
            if let Some(subject) = &mut session.subject {
                self.observer.received(subject, &session.connection);
            }
        }
        session.cut = opened == Opened::Cut;
        if turn.eof && !matches!(opened, Opened::Cut | Opened::Part) {
            session.connection.receive_eof();
        }
        opened
    }

    /// Has a session act once on what is open.
    #[inline(always)]
    fn act(
        &mut self,
        session: &mut Session,
        turn: &mut Turn<'_, Message>,
        events_left: &Cell<u32>,
        act: &impl Fn(&mut Session, &mut Work<'_>, &Router) -> Option<Instant>,
    ) -> Left {
        self.meter.enter(PARSE);
        let tls = session.connection.is_tls();
        let input = if tls { &mut self.plain } else { &mut *turn.input };
        let mut work = Work {
            cx: Context {
                input,
                output: turn.output,
                output_limit: turn.output_limit,
                head: &mut self.head,
                now: turn.now,
            },
            shared: &self.shared,
            address: Address { mailbox: turn.mailbox, token: turn.token, exchange: ExchangeId(0) },
            outward: Outward { agenda: turn.agenda, dials: &mut self.dials },
            observer: &mut self.observer,
            path: turn.path,
            meter: &self.meter,
            events_left,
        };
        let deadline = act(session, &mut work, &self.router);
        Left { deadline, unread_bytes: work.cx.input.len() }
    }
}

/// State that a session left when it acted: when it is to act again, and what it has not read.
#[derive(Clone, Copy)]
struct Left {
    deadline: Option<Instant>,
    unread_bytes: usize,
}

/// Returns what the loop is to do with the session next.
#[inline]
fn after(session: &mut Session, turn: &Turn<'_, Message>, left: Left, is_idle: bool) -> After {
    let Left { deadline, unread_bytes } = left;
    let held_bytes = if is_idle { 0 } else { session.held_bytes() };
    match session.closed {
        None => {}
        // The peer of a TLS connection misses the closing alert.
        Some(ended) if ended.resets => return After::RESET,
        Some(_) => {
            session.connection.finish();
            return After { held_bytes, ..After::FINISHED };
        }
    }
    After {
        // Reading is the only way to learn that a client is gone.
        wants_input: session.connection.wants_input()
            || (unread_bytes == 0 && session.watches_client()),
        more: turn.output.len() >= turn.output_limit,
        cut: session.cut,
        deadline,
        expects: session.connection.expects().saturating_sub(unread_bytes as u64),
        idle: is_idle && !session.cut,
        held_bytes,
        ends_sending: false,
        close: None,
    }
}

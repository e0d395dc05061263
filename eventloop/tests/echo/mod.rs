//! A session that echoes what it gets; capital letters are orders.

use std::io;
use std::time::{Duration, Instant};

use bolide_buffers::{Flush, SendQueue};
use bolide_eventloop::{Accepted, After, Agenda, Mailbox, Service, Token, Turn};
use bytes::Bytes;

/// Mail for a session: bytes to send.
pub(crate) type Message = &'static [u8];

/// The mail that empties what a session keeps.
const FORGET: Message = b"forget";

/// How many mails `P` sends at once.
pub(crate) const MAILS: usize = 50;

pub(crate) struct Echo {
    mailbox: Mailbox<Message>,
    /// Named by the order `L`.
    last: Option<Token>,
    undelivered: Option<Token>,
    asker: Option<Token>,
}

impl Echo {
    pub(crate) fn new(mailbox: Mailbox<Message>) -> Self {
        Self { mailbox, last: None, undelivered: None, asker: None }
    }
}

#[derive(Default)]
pub(crate) struct Session {
    busy: bool,
    ending: bool,
    silent: bool,
    stopped: bool,
    /// Bytes other than orders are kept here.
    kept: Option<Vec<u8>>,
    /// The peer has promised much.
    expects: bool,
    /// To be sent in the next turn.
    mail: Vec<u8>,
    deadline: Option<Instant>,
}

fn is_order(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte == b'!'
}

impl Echo {
    /// Carries out one byte. `Some`: the session ends.
    fn obey(
        &mut self,
        session: &mut Session,
        byte: u8,
        turn: &mut Turn<'_, Message>,
    ) -> Option<After> {
        match byte {
            b'Q' => return Some(After::FINISHED),
            b'B' => {
                turn.output.push(Bytes::from(vec![b'B'; 64 * 1024 * 1024]));
                return Some(After::FINISHED);
            }
            b'!' => panic!("as ordered"),
            b'W' => session.busy = true,
            b'I' => session.busy = false,
            b'N' => session.silent = true,
            b'S' => session.stopped = true,
            b'G' => session.expects = true,
            b'H' => session.expects = false,
            b'K' => session.kept = Some(Vec::new()),
            b'F' => {
                let token = self.last.expect("`L` came before");
                self.mailbox.send(token, FORGET).unwrap();
                turn.output.tail().push(b'F');
            }
            b'D' => session.deadline = Some(turn.now + Duration::from_millis(40)),
            b'M' => {
                let (mailbox, token) = (turn.mailbox.clone(), turn.token);
                std::thread::spawn(move || mailbox.send(token, b"mail").unwrap());
            }
            b'P' => {
                let (mailbox, token) = (turn.mailbox, turn.token);
                (0..MAILS).for_each(|_| mailbox.send(token, b"mail").unwrap());
            }
            b'L' => self.last = Some(turn.token),
            b'U' => {
                self.asker = Some(turn.token);
                let gone = self.last.take().expect("`L` came before");
                self.undelivered = Some(gone);
                self.mailbox.send(gone, b"never").unwrap();
            }
            b'R' => {
                let known = if turn.rtt().is_some() { b'y' } else { b'n' };
                turn.output.tail().push(known);
            }
            _ => {}
        }
        if byte == b'W' || byte == b'I' {
            turn.output.tail().push(byte);
        }
        None
    }
}

impl Service for Echo {
    type Session = Session;
    type Message = Message;

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<(Session, After)> {
        Some((Session::default(), After::IDLE))
    }

    fn turn(&mut self, session: &mut Session, turn: &mut Turn<'_, Message>) -> After {
        turn.output.tail().append(&mut session.mail);
        while !turn.input.is_empty() && turn.output.len() < turn.output_limit {
            let plain = turn.input.unread().iter().take_while(|byte| !is_order(**byte)).count();
            let plain = plain.min(turn.output_limit - turn.output.len());
            if plain > 0 {
                let bytes = turn.input.take(plain);
                if let Some(kept) = &mut session.kept {
                    kept.extend_from_slice(&bytes);
                } else if !session.silent {
                    turn.output.push(bytes);
                }
                continue;
            }
            let byte = turn.input.unread()[0];
            turn.input.consume(1);
            if let Some(after) = self.obey(session, byte, turn) {
                return after;
            }
        }
        if session.deadline.is_some_and(|deadline| deadline <= turn.now) {
            session.deadline = None;
            turn.output.tail().push(b'D');
        }
        if session.ending && !session.busy {
            turn.output.tail().extend_from_slice(b"bye");
            return After::FINISHED;
        }
        let full = turn.output.len() >= turn.output_limit;
        if turn.eof && turn.input.is_empty() {
            return After::FINISHED;
        }
        let idle = !session.busy && turn.input.is_empty();
        let wants_input = !full && !session.stopped;
        let expects = if session.expects { u64::MAX } else { 0 };
        let held_bytes = session.kept.as_ref().map_or(0, Vec::len);
        After { wants_input, more: full, idle, held_bytes, expects, ..After::READ }
            .by(session.deadline)
    }

    fn message(
        &mut self,
        session: &mut Session,
        message: Message,
        token: Token,
        agenda: &mut Agenda,
    ) {
        if message == FORGET {
            session.kept = Some(Vec::new());
        }
        if session.mail.is_empty() {
            agenda.call(token);
        }
        if message != FORGET {
            session.mail.extend_from_slice(message);
        }
    }

    fn undelivered(&mut self, message: Message) {
        assert_eq!(message, b"never");
        assert!(self.undelivered.take().is_some());
        if let Some(asker) = self.asker.take() {
            self.mailbox.send(asker, b"undelivered").unwrap();
        }
    }

    fn shut_down(&mut self, session: &mut Session, turn: &mut Turn<'_, Message>) -> After {
        session.ending = true;
        self.turn(session, turn)
    }

    fn flush(
        &mut self,
        _: &mut Session,
        output: &mut SendQueue,
        sink: &mut impl io::Write,
    ) -> io::Result<Flush> {
        output.flush(sink)
    }
}

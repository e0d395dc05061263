//! Handles by which other threads reach an exchange on its worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use bolide_eventloop::{DatagramPipe, Mailbox, Token, Turn};
use bolide_semantics::ExchangeId;
use http::StatusCode;

use crate::Response;

/// A message of another thread to a session.
#[derive(Debug)]
pub struct Message {
    pub(crate) exchange: ExchangeId,
    pub(crate) kind: MessageKind,
}

#[derive(Debug)]
pub(crate) enum MessageKind {
    Respond(Box<Response>),
    Wake,
    /// A piece of the response's body was encoded.
    Encoded,
    PassOn,
    /// A change is to be made. Dropped once the worker has made it.
    Changed(Sender<()>),
    /// The lines of the access log that wait belong to where it goes now. Dropped once they are handed over.
    HandOverLog(Sender<()>),
    /// Another process takes the connections over: what ends from here on ends without losing a request. With a pipe, it has
    /// the UDP sockets, too.
    Leave(Option<Arc<DatagramPipe>>),
    /// Dropped once the worker has come to it.
    Pulse(Sender<()>),
}

impl Message {
    /// A message to the worker itself.
    pub(crate) fn to_worker(kind: MessageKind) -> Self {
        Self { exchange: ExchangeId(0), kind }
    }
}

/// Place of an exchange; turned into a handle only when one is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address<'a> {
    pub(crate) mailbox: &'a Mailbox<Message>,
    pub(crate) token: Token,
    pub(crate) exchange: ExchangeId,
}

impl Address<'_> {
    pub(crate) fn waker(&self) -> Waker {
        Waker { mailbox: self.mailbox.clone(), token: self.token, exchange: self.exchange }
    }
}

/// Asks for another turn of one exchange: its [`Exchange::on_wake`](crate::Exchange::on_wake) is
/// called, and a body stream that was pending is pulled again. Harmless when the exchange is over.
#[derive(Debug, Clone)]
pub struct Waker {
    mailbox: Mailbox<Message>,
    token: Token,
    exchange: ExchangeId,
}

impl Waker {
    /// Gives the owner of a connection outward its [`turn`](crate::Outbound::turn), when there is no
    /// [`Agenda`](crate::Agenda) at hand to [call](crate::Agenda::call) it by.
    #[must_use]
    pub fn of_outbound(turn: &Turn<'_, Message>) -> Self {
        Self { mailbox: turn.mailbox.clone(), token: turn.token, exchange: ExchangeId(0) }
    }

    /// Wakes the exchange. From any thread.
    pub fn wake(&self) {
        self.send(MessageKind::Wake);
    }

    /// Says that a piece of the body was encoded.
    pub(crate) fn encoded(&self) {
        self.send(MessageKind::Encoded);
    }

    fn send(&self, kind: MessageKind) {
        // A worker that has ended has no exchanges left to reach.
        let _ = self.mailbox.send(self.token, Message { exchange: self.exchange, kind });
    }
}

/// As a [`Waker`], for one exchange of a worker after another, wherever it is kept:
/// [`Request::aim`](crate::Request::aim) names the next one.
#[derive(Debug)]
pub struct MovableWaker {
    mailbox: Mailbox<Message>,
    token: AtomicU64,
    exchange: AtomicU32,
}

impl MovableWaker {
    pub(crate) fn new(address: &Address<'_>) -> Self {
        Self {
            mailbox: address.mailbox.clone(),
            token: AtomicU64::new(address.token.key()),
            exchange: AtomicU32::new(address.exchange.0),
        }
    }

    pub(crate) fn aim(&self, address: &Address<'_>) {
        self.token.store(address.token.key(), Ordering::Relaxed);
        self.exchange.store(address.exchange.0, Ordering::Relaxed);
    }

    /// Wakes the exchange that was named last. From any thread; one that learnt of this waker before that
    /// exchange was named may wake another one.
    pub fn wake(&self) {
        let token = Token::from_key(self.token.load(Ordering::Relaxed));
        let exchange = ExchangeId(self.exchange.load(Ordering::Relaxed));
        // A worker that has ended has no exchanges left to reach.
        let _ = self.mailbox.send(token, Message { exchange, kind: MessageKind::Wake });
    }
}

/// Answers one exchange later, from any thread. Dropped without a response, it answers 500.
#[derive(Debug)]
pub struct Responder {
    waker: Waker,
    answered: bool,
}

impl Responder {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { waker, answered: false }
    }

    /// Sends the response. Nothing happens when the client has gone.
    pub fn respond(mut self, response: impl Into<Response>) {
        self.answered = true;
        self.waker.send(MessageKind::Respond(Box::new(response.into())));
    }

    /// Leaves the request to the handler that [`Reply::LaterOr`](crate::Reply::LaterOr) named; where none
    /// was named, it is a 404.
    pub fn pass_on(mut self) {
        self.answered = true;
        self.waker.send(MessageKind::PassOn);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            let response = Response::error(StatusCode::INTERNAL_SERVER_ERROR);
            self.waker.send(MessageKind::Respond(Box::new(response)));
        }
    }
}

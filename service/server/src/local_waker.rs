//! Requests of others to the exchanges of a connection, and the handle by which another one of the same worker does.

use std::cell::RefCell;
use std::rc::Rc;

use bolide_eventloop::{Agenda, Token};
use bolide_semantics::ExchangeId;

use crate::responder::{Message, MessageKind};

/// Messages for the exchanges of one connection in its next turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Rc<RefCell<Vec<Message>>>);

impl Calls {
    /// Adds one, of which the connection's turn is to come.
    pub(crate) fn add(&self, message: Message, token: Token, agenda: &mut Agenda) {
        let mut calls = self.0.borrow_mut();
        // One turn serves all that come before it.
        if calls.is_empty() {
            agenda.call(token);
        }
        calls.push(message);
    }

    /// Adds one in a turn after which another follows.
    pub(crate) fn again(&self, exchange: ExchangeId) {
        self.0.borrow_mut().push(Message { exchange, kind: MessageKind::Wake });
    }

    /// All of them.
    #[inline]
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.0.borrow_mut())
    }

    /// Takes their memory back for the next ones.
    pub(crate) fn give(&self, memory: Vec<Message>) {
        let mut calls = self.0.borrow_mut();
        if calls.is_empty() {
            *calls = memory;
        }
    }
}

/// Asks for another turn of one exchange of the same worker, as [`Waker`](crate::Waker) does from other
/// threads: it comes in this turn of the loop, and costs no mail. Harmless when the exchange is over.
#[derive(Debug, Clone)]
pub struct LocalWaker {
    token: Token,
    exchange: ExchangeId,
    calls: Calls,
}

impl LocalWaker {
    pub(crate) fn new(token: Token, exchange: ExchangeId, calls: &Calls) -> Self {
        Self { token, exchange, calls: calls.clone() }
    }

    /// Wakes the exchange: its [`Exchange::on_wake`](crate::Exchange::on_wake) is called.
    pub fn wake(&self, agenda: &mut Agenda) {
        let message = Message { exchange: self.exchange, kind: MessageKind::Wake };
        self.calls.add(message, self.token, agenda);
    }
}

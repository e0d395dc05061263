//! A handle by which one connection of a worker reaches an exchange on another.

use std::cell::RefCell;
use std::rc::Rc;

use bolide_eventloop::{Agenda, Token};
use bolide_semantics::ExchangeId;

/// The exchanges of one connection that are to be woken in its next turn.
pub(crate) type WokenList = Rc<RefCell<Vec<ExchangeId>>>;

/// Asks for another turn of one exchange of the same worker, as [`Waker`](crate::Waker) does from other
/// threads: it comes in this turn of the loop, and costs no mail. Harmless when the exchange is over.
#[derive(Debug, Clone)]
pub struct LocalWaker {
    token: Token,
    exchange: ExchangeId,
    woken: WokenList,
}

impl LocalWaker {
    pub(crate) fn new(token: Token, exchange: ExchangeId, woken: &WokenList) -> Self {
        Self { token, exchange, woken: Rc::clone(woken) }
    }

    /// Wakes the exchange: its [`Exchange::on_wake`](crate::Exchange::on_wake) is called.
    pub fn wake(&self, agenda: &mut Agenda) {
        let mut woken = self.woken.borrow_mut();
        // One call serves all that are woken before it.
        if woken.is_empty() {
            agenda.call(self.token);
        }
        woken.push(self.exchange);
    }
}

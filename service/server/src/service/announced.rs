//! Connections that begin with a PROXY header.

use std::time::Instant;

use bolide_connection::Connection;
use bolide_eventloop::{After, Service, Turn};
use bolide_semantics::Role;

use super::{HttpService, Owner};
use crate::Message;
use crate::announced::{Announced, Arrival};
use crate::ends::Ends;
use crate::limits::PROXY_HEADER_TIMEOUT;
use crate::session::Session;

impl HttpService {
    /// A connection begins that has to say first whose it is.
    pub(super) fn announce(
        &mut self,
        listener: usize,
        ends: Ends,
        is_required: bool,
        now: Instant,
    ) -> (Owner, After) {
        let is_tls = self.tls.get(listener).is_some_and(Option::is_some);
        let due = now + PROXY_HEADER_TIMEOUT;
        let announced = Announced {
            ends,
            subject: self.observer.opened(is_tls),
            connection: Connection::new(Role::Server, None, now),
            has_ended: false,
            listener,
            is_required,
            due,
        };
        (Owner::Announced(Box::new(announced)), After::READ.by(Some(due)))
    }

    /// Something came of a connection that has to say first whose it is.
    #[cold]
    pub(super) fn arrive(&mut self, owner: &mut Owner, turn: &mut Turn<'_, Message>) -> After {
        let Owner::Announced(announced) = owner else { return After::CLOSED };
        match announced.look(turn.input, turn.eof, turn.now) {
            Arrival::Waits => return After::READ.by(Some(announced.due)),
            Arrival::Ends(reason) => {
                let (subject, peer) = (announced.subject.as_deref(), announced.ends.peer());
                self.observer.connection_ended(subject, &announced.connection, peer, &reason);
                announced.has_ended = true;
                return After::CLOSED;
            }
            Arrival::Begins => {}
        }
        let tls = match self.tls.get(announced.listener).and_then(Option::as_ref) {
            None => None,
            Some(settings) => match settings.accept() {
                Ok(tls) => Some(tls),
                Err(_) => return After::CLOSED,
            },
        };
        let Some(is_counted) = self.count(&announced.ends) else {
            announced.has_ended = true;
            return After::CLOSED;
        };
        let connection = Connection::new(Role::Server, tls, turn.now);
        let mut session = Session::new(connection, std::mem::take(&mut announced.ends));
        session.is_counted = is_counted;
        session.subject = announced.subject.take();
        *owner = Owner::Client(session);
        self.turn(owner, turn)
    }
}

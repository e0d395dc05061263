//! RFC 9114 §5.2: a connection's part in its orderly end.

use bolide_semantics::Role;

use crate::connection::Connection;
use crate::goaway::{LAST_OF_ALL, Leaving};
use crate::stream::id_of;
use crate::transport::{Context, Quic};

impl Connection {
    /// Begins an orderly end: requests that are on their way are still served (RFC 9114 §5.2), and
    /// the connection closes after the last exchange.
    pub fn shut_down<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) {
        if self.begin(cx).is_some() || self.control.goaway.leaving != Leaving::No {
            return;
        }
        if self.role == Role::Client {
            return self.leave_finally();
        }
        self.control.goaway.leaving = Leaving::Asked;
    }

    /// The first GOAWAY, once a shutdown has begun and the handshake is over.
    pub(crate) fn announce_leaving<Q: Quic>(&mut self, quic: &Q) {
        if self.control.goaway.leaving == Leaving::Asked && !quic.is_handshaking() {
            self.control.goaway.leaving = Leaving::Announced { since_ms: self.times.clock.ms };
            self.control.write_goaway(LAST_OF_ALL);
        }
    }

    /// The second GOAWAY: nothing but the requests that came is served; of a client's, the only one.
    pub(crate) fn leave_finally(&mut self) {
        let first_refused = match self.role {
            Role::Server => id_of(self.streams.highest.saturating_add(1)),
            // A client's GOAWAY is about pushes, of which it has allowed none.
            Role::Client => 0,
        };
        self.control.goaway.leaving = Leaving::Final { first_refused };
        self.control.write_goaway(first_refused);
    }
}

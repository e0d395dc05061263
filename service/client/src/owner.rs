//! RFC 9110 §3.3: the owner of an exchange.

use std::time::Instant;

use bolide_connection::HandshakeFacts;
use bolide_semantics::{ConnectionEvent, ExchangeEvent, ExchangeId};

use crate::{Ending, Orders};

/// Facts about a connection that was established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Established {
    /// The version that is spoken; HTTP/1.1 stands for HTTP/1.0, too.
    pub version: http::Version,
    /// Results of the TLS handshake, over TLS or QUIC.
    pub tls: Option<HandshakeFacts>,
}

impl Established {
    /// Returns whether the connection carries many exchanges at once, each with an end of its own: HTTP/2, HTTP/3.
    #[must_use]
    pub fn multiplexes(&self) -> bool {
        self.version >= http::Version::HTTP_2
    }
}

/// The owner of a session: it is told what comes, and gives orders.
pub trait Owner {
    /// The socket is connected. Not said over QUIC, where there is nothing before the handshake.
    fn connected(&mut self) {}

    /// Requests can be sent from here on.
    fn ready(&mut self, established: &Established, orders: &mut Orders<'_>);

    /// Something about one exchange. Heads and trailers stand in [`Orders::head`].
    ///
    /// Data counts against the receive window until it is reported as
    /// [consumed](Orders::consumed).
    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>);

    /// Something about the connection as a whole.
    fn connection(&mut self, event: ConnectionEvent, orders: &mut Orders<'_>) {
        let _ = (event, orders);
    }

    /// Everything that came has been reported: the place for requests that nothing which came has
    /// caused. Called again after orders that it gave.
    fn settled(&mut self, orders: &mut Orders<'_>);

    /// When the session is to be called next, even if nothing happens.
    fn deadline(&self) -> Option<Instant>;

    /// The connection is over, and with it every exchange that is still open. Called once.
    fn ended(&mut self, ending: &Ending);
}

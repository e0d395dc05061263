//! A connection whose PROXY header has not arrived.

use std::time::Instant;

use bolide_buffers::ReceiveBuffer;
use bolide_connection::Connection;
use bolide_semantics::CloseReason;

use crate::ends::Ends;
use crate::observe::Subject;
use crate::proxy_header::ProxyHeader;

/// Names of the ends of connections without the header that they need.
pub(crate) const MALFORMED: &str = "proxy-header";
pub(crate) const LATE: &str = "proxy-header-timeout";

/// Facts about the connection, and the event that is waited for.
#[derive(Debug)]
pub(crate) struct Announced {
    /// Those of the socket, until the header has come.
    pub(crate) ends: Ends,
    pub(crate) subject: Option<Box<Subject>>,
    /// Nothing comes to it: the client's begins after the header.
    pub(crate) connection: Connection,
    pub(crate) has_ended: bool,
    pub(crate) listener: usize,
    pub(crate) is_required: bool,
    pub(crate) due: Instant,
}

/// How far the header is.
#[derive(Debug)]
pub(crate) enum Arrival {
    Waits,
    /// It has come, or none comes: the connection begins with what is left of the input.
    Begins,
    Ends(CloseReason),
}

impl Announced {
    /// Looks at what has arrived, and takes a whole header off.
    pub(crate) fn look(&mut self, input: &mut ReceiveBuffer, eof: bool, now: Instant) -> Arrival {
        let bytes = input.unread();
        if !self.is_required && !bytes.is_empty() && !ProxyHeader::may_begin(bytes) {
            return Arrival::Begins;
        }
        match ProxyHeader::read(bytes) {
            Ok(Some((header, length))) => {
                input.consume(length);
                match header {
                    ProxyHeader::Own => {}
                    ProxyHeader::Unix => self.ends = self.ends.announced(None),
                    ProxyHeader::Inet { source, destination } => {
                        self.ends = self.ends.announced(Some((source, destination)));
                    }
                }
                Arrival::Begins
            }
            Ok(None) if bytes.is_empty() && eof => {
                Arrival::Ends(CloseReason::orderly("eof", "the peer closed the connection"))
            }
            Ok(None) if eof => {
                Arrival::Ends(CloseReason::peer(MALFORMED, "the PROXY header is not complete"))
            }
            Ok(None) if now >= self.due => {
                Arrival::Ends(CloseReason::peer(LATE, "the PROXY header did not arrive in time"))
            }
            Ok(None) => Arrival::Waits,
            Err(_) => Arrival::Ends(CloseReason::peer(MALFORMED, "the PROXY header is malformed")),
        }
    }
}

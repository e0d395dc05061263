//! RFC 9112 §6.2, §7.1: pieces of a body that are not in memory.

use bolide_buffers::Outside;
use bolide_semantics::{Context, End, ExchangeId, Misuse};

use super::{Connection, Stack};

impl Connection {
    /// Returns whether [`Self::send_outside`] can be used: over cleartext HTTP/1.1, where a body's bytes reach the socket as
    /// they are.
    #[inline]
    #[must_use]
    pub fn takes_outside(&self) -> bool {
        self.tls.is_none() && matches!(self.stack, Stack::H1(_))
    }

    /// [`Self::send_data`] for a piece whose bytes are not in memory, on a connection that
    /// [takes](Self::takes_outside) it and a socket whose owner knows what it is.
    ///
    /// # Errors
    ///
    /// [`Misuse`] says which rule the call breaks; [`Misuse::Refused`] when the connection takes no such piece.
    pub fn send_outside(
        &mut self,
        cx: &mut Context<'_>,
        id: ExchangeId,
        outside: Outside,
        end: End,
    ) -> Result<bool, Misuse> {
        match &mut self.stack {
            Stack::H1(core) if self.tls.is_none() => core.send_outside(cx, id, outside, end),
            _ => Err(Misuse::Refused),
        }
    }
}

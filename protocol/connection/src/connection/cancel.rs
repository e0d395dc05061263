//! RFC 9113 §7: an exchange that is given up although nothing failed.

use bolide_semantics::{Context, ExchangeId};

use super::{Connection, Stack};

impl Connection {
    /// As [`Self::abort`]; over HTTP/2 and HTTP/3 the peer is told that nothing failed here (CANCEL).
    pub fn cancel(&mut self, cx: &mut Context<'_>, id: ExchangeId) {
        match &mut self.stack {
            Stack::H2(core) => core.cancel(cx, id),
            Stack::H3(http3) => {
                let (core, mut cx) = http3.lend(cx);
                core.cancel(&mut cx, id);
            }
            Stack::H1(core) => core.abort(cx, id),
            Stack::Open { .. } => {}
        }
    }
}

//! RFC 9113 §7: a response that is given up although nothing failed.

use super::{Io, Phase};

impl Io<'_> {
    /// As [`Io::abort`]; over HTTP/2 the client is told that nothing failed here (CANCEL), as by a server that keeps
    /// the deadline of a gRPC call.
    pub fn cancel(&mut self) {
        if self.state.phase != Phase::Done {
            self.connection.cancel(&mut self.cx, self.id);
            self.state.phase = Phase::Done;
            self.state.record.aborted.get_or_insert("cancelled");
        }
    }
}

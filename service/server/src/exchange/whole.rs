//! Answers that are given in one step.

use super::{Io, Phase};
use crate::Response;
use crate::response::Body;

impl Io<'_> {
    /// Sends an answer whose lines are written out and whose body is at hand and small, if the connection takes it
    /// in one step; else does nothing and returns false.
    #[inline]
    pub(super) fn answer_whole(&mut self, response: &Response) -> bool {
        let body = match &response.body {
            Body::Bytes(body) | Body::Own(body) => &body[..],
            Body::Empty => &[],
            Body::Trailed(_) | Body::Stream(_) => return false,
        };
        let (status, length) = (response.status, Some(body.len() as u64));
        let Some(prepared) = &response.prepared else { return false };
        if response.invalid || !response.fields.is_empty() {
            return false;
        }
        let Some(head) = prepared.known_head(status, length, self.date) else { return false };
        let is_sent = self.connection.send_whole(&mut self.cx, self.id, &head, body);
        if is_sent {
            self.state.phase = Phase::Done;
            self.state.status = status.as_u16();
            self.state.answered = self.state.began.map(|_| self.cx.now);
            self.state.sent_bytes += body.len() as u64;
        }
        is_sent
    }
}

//! Answers that were made before.

use bolide_buffers::Chunk;
use bolide_connection::KnownHead;
use bolide_semantics::{End, ExchangeId, FieldName, FieldRef, has_no_body};

use super::Session;
use crate::exchange::{Io, Phase, State};
use crate::prepared::{Parts, Prepared};
use crate::profile::ENCODE;
use crate::work::Work;

impl Session {
    /// Answers by what the client's connection has encoded before, if it can. The worker's head is the request's.
    #[inline]
    pub(super) fn answer_prepared<const MEASURED: bool>(
        &mut self,
        id: ExchangeId,
        prepared: &Prepared,
        state: &mut State,
        work: &mut Work<'_>,
    ) -> bool {
        if MEASURED {
            work.meter.enter(ENCODE);
        }
        state.body_left = 0;
        state.awaits_continue = false;
        let woken = &mut self.woken;
        let is_sent =
            work.io(&mut self.connection, &self.ends, id, state, woken).answer_prepared(prepared);
        if is_sent {
            self.answered::<MEASURED>(id, state, true, work);
        }
        is_sent
    }
}

impl Io<'_> {
    /// Sends an answer that was made before, of which its connection has encoded a part already. Otherwise it does
    /// nothing and returns false.
    #[inline]
    fn answer_prepared(&mut self, prepared: &Prepared) -> bool {
        let Prepared { status, parts, body, .. } = prepared;
        if self.state.phase != Phase::Unanswered || status.is_informational() {
            return false;
        }
        let parts = parts.as_ref().filter(|_| self.connection.is_h2() == Some(true));
        let Some(Parts { common, own }) = parts else { return self.answer_written(prepared) };
        let Some(head) = common.known_head(*status, None, self.date) else { return false };
        let sent = self.connection.send_whole_again(&mut self.cx, self.id, &head.name, own, body);
        let Some(sent) = sent else {
            return self.answer_in_two(prepared, &head);
        };
        if self.head_was_sent(*status, sent, End::Yes) {
            self.state.sent_bytes += body.len() as u64;
        }
        true
    }

    /// The same over HTTP/1.1, where all lines have been written out.
    #[inline]
    fn answer_written(&mut self, prepared: &Prepared) -> bool {
        let Prepared { status, fields, body, .. } = prepared;
        let length = Some(body.len() as u64);
        let Some(head) = fields.known_head(*status, length, self.date) else { return false };
        let is_sent = self.connection.send_whole(&mut self.cx, self.id, &head, body);
        if is_sent && self.head_was_sent(*status, Ok(()), End::Yes) {
            self.state.sent_bytes += body.len() as u64;
        }
        is_sent
    }

    /// The same, head and body one after the other.
    fn answer_in_two(&mut self, prepared: &Prepared, head: &KnownHead<'_>) -> bool {
        let Prepared { status, parts: Some(Parts { common, own }), body, .. } = prepared else {
            return false;
        };
        let date = head.date.map(|date| FieldRef::known(FieldName::Date, date));
        let named = (&head.name, common.refs().chain(date));
        let no_body = body.is_empty() || has_no_body(self.state.method(), *status);
        let end = if no_body { End::Yes } else { End::No };
        let sent = self.connection.send_common_head(&mut self.cx, self.id, named, own, end);
        let Some(sent) = sent else { return false };
        if self.head_was_sent(*status, sent, end) && end == End::No {
            self.state.sent_bytes += body.len() as u64;
            let body = Chunk::own(body.clone());
            let sent = self.connection.send_data(&mut self.cx, self.id, body, End::Yes);
            self.settle(sent, End::Yes);
        }
        true
    }
}

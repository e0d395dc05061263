//! RFC 9114 §6.2, §7.2, RFC 9204 §4.2: what comes on unidirectional streams.

use bolide_semantics::{
    AbortReason, Blame, ConnectionEvent, End, ExchangeEvent, ExchangeId, HeadReader, Priority, Role,
};
use bytes::{Buf, Bytes};

use crate::connection::{Connection, Event};
use crate::control::{PeerKind, PeerStream, stream_type};
use crate::error::{ErrorCode, Fault};
use crate::frame::kind;
use crate::limits::CONTROL_FRAME_BYTES;
use crate::settings;
use crate::stream::{Part, number_of};
use crate::transport::{Context, Quic, Read};
use crate::varint;

impl Connection {
    /// Reads all that has come on a unidirectional stream of the peer's.
    pub(crate) fn read_peer<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        id: u64,
    ) -> Result<(), Fault> {
        let at = self.control.peers.iter().position(|peer| peer.id == id);
        let Some(at) = at else { return Ok(()) };
        let mut peer = self.control.peers.swap_remove(at);
        loop {
            let end = match cx.quic.read(id) {
                Read::Nothing => {
                    self.control.peers.push(peer);
                    return Ok(());
                }
                Read::End | Read::Reset(_) => End::Yes,
                Read::Data(bytes, end) => {
                    if !self.feed_peer(cx, &mut peer, bytes)? {
                        return Ok(());
                    }
                    end
                }
            };
            if end == End::Yes && peer.kind == PeerKind::Untyped {
                // RFC 9114 §6.2: a stream that ends before its type is to be tolerated.
                return self.glitch();
            }
            if end == End::Yes {
                let what = "a stream that the connection needs was closed";
                return Err(Fault::new(ErrorCode::ClosedCriticalStream, what));
            }
        }
    }

    /// Deals with the next bytes of a stream. False: it is of no interest any more.
    fn feed_peer<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        peer: &mut PeerStream,
        mut bytes: Bytes,
    ) -> Result<bool, Fault> {
        while peer.kind == PeerKind::Untyped && !bytes.is_empty() {
            peer.partial.push(bytes.get_u8());
            if let Some(kind) = varint::whole(&peer.partial) {
                peer.partial.clear();
                if !self.typed(cx, peer, kind)? {
                    return Ok(false);
                }
            }
        }
        match peer.kind {
            PeerKind::Untyped => {}
            PeerKind::Control => self.feed_control(cx, peer, bytes)?,
            PeerKind::Encoder => {
                let decoder = &mut self.compression.decoder;
                decoder.read_instructions::<HeadReader<'_>>(&bytes)?;
                self.wake_blocked();
            }
            PeerKind::Decoder => self.compression.encoder.read_feedback(&bytes)?,
        }
        Ok(true)
    }

    /// RFC 9114 §6.2: the type of a stream has come. False: it is of no interest.
    fn typed<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        peer: &mut PeerStream,
        kind: u64,
    ) -> Result<bool, Fault> {
        peer.kind = match (kind, self.role) {
            (stream_type::CONTROL, _) => PeerKind::Control,
            (stream_type::ENCODER, _) => PeerKind::Encoder,
            (stream_type::DECODER, _) => PeerKind::Decoder,
            (stream_type::PUSH, Role::Server) => {
                let what = "a client opened a push stream";
                return Err(Fault::new(ErrorCode::StreamCreationError, what));
            }
            (stream_type::PUSH, Role::Client) => {
                return Err(Fault::new(ErrorCode::IdError, "a push that was never allowed"));
            }
            _ => {
                cx.quic.stop(peer.id, ErrorCode::StreamCreationError as u64);
                self.glitch()?;
                return Ok(false);
            }
        };
        if self.control.has(peer.kind) {
            let what = "a second stream of a type of which there is one";
            return Err(Fault::new(ErrorCode::StreamCreationError, what));
        }
        Ok(true)
    }

    /// The table has more entries: sections that waited for them may be read.
    fn wake_blocked(&mut self) {
        if self.compression.blocked.is_empty() {
            return;
        }
        for number in self.compression.blocked.clone() {
            let required = self.streams.peek(number).and_then(|stream| stream.receiving.blocked);
            if required.is_some_and(|required| self.compression.decoder.is_ready(required)) {
                self.look_at(number);
            }
        }
    }

    /// The next bytes of the control stream.
    fn feed_control<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        peer: &mut PeerStream,
        mut bytes: Bytes,
    ) -> Result<(), Fault> {
        loop {
            let Some((kind, left)) = peer.frames.current else {
                let Some((kind, length)) = peer.frames.header(&mut bytes) else { return Ok(()) };
                self.check_control(kind, length)?;
                if length == 0 {
                    peer.frames.current = None;
                    self.control_frame(cx, kind, &[])?;
                }
                continue;
            };
            if bytes.is_empty() {
                return Ok(());
            }
            let piece = peer.frames.payload(&mut bytes);
            let is_last = piece.len() as u64 == left;
            if !is_known(kind) || left + peer.partial.len() as u64 > u64::from(CONTROL_FRAME_BYTES)
            {
                continue;
            }
            if is_last && peer.partial.is_empty() {
                self.control_frame(cx, kind, &piece)?;
                continue;
            }
            peer.partial.extend_from_slice(&piece);
            if is_last {
                let payload = std::mem::take(&mut peer.partial);
                self.control_frame(cx, kind, &payload)?;
            }
        }
    }

    /// RFC 9114 §7.2: whether the frame may come on the control stream now, and be so long.
    fn check_control(&mut self, kind: u64, length: u64) -> Result<(), Fault> {
        if self.control.settings.is_none() && kind != kind::SETTINGS {
            let what = "the first frame is not SETTINGS";
            return Err(Fault::new(ErrorCode::MissingSettings, what));
        }
        let client = self.role == Role::Client;
        match kind {
            kind::SETTINGS if self.control.settings.is_some() => {
                Err(Fault::unexpected("a second SETTINGS frame"))
            }
            kind::SETTINGS if length > u64::from(CONTROL_FRAME_BYTES) => {
                Err(Fault::abuse("settings-flood", "a SETTINGS frame above the limit"))
            }
            kind::SETTINGS => Ok(()),
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => {
                Err(Fault::unexpected("a request's frame on the control stream"))
            }
            kind::MAX_PUSH_ID if client => Err(Fault::unexpected("MAX_PUSH_ID from a server")),
            kind::PRIORITY_UPDATE_REQUEST | kind::PRIORITY_UPDATE_PUSH if client => {
                Err(Fault::unexpected("PRIORITY_UPDATE from a server"))
            }
            kind::GOAWAY | kind::MAX_PUSH_ID | kind::CANCEL_PUSH if !(1..=8).contains(&length) => {
                Err(Fault::new(ErrorCode::FrameError, "a frame that is not one integer long"))
            }
            kind::GOAWAY | kind::MAX_PUSH_ID | kind::CANCEL_PUSH => Ok(()),
            _ if kind::is_of_http2(kind) => Err(Fault::unexpected("a frame of HTTP/2")),
            // PRIORITY_UPDATE, and unknown types, which are ignored (RFC 9114 §9).
            _ => self.glitch(),
        }
    }

    /// A whole frame on the control stream.
    fn control_frame<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        kind: u64,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let short = || Fault::new(ErrorCode::FrameError, "a frame of which something is missing");
        match kind {
            kind::SETTINGS => {
                let settings = settings::read(payload, &self.limits)?;
                self.control.settings = Some(settings);
                self.compression.encoder.set_peer_capacity(settings.table_capacity);
                self.concurrency(cx);
                Ok(())
            }
            kind::GOAWAY => {
                let identifier = varint::whole(payload).ok_or_else(short)?;
                self.receive_goaway(cx, identifier)
            }
            kind::MAX_PUSH_ID => {
                let most = varint::whole(payload).ok_or_else(short)?;
                if self.control.push_max.is_some_and(|before| most < before) {
                    return Err(Fault::new(
                        ErrorCode::IdError,
                        "a MAX_PUSH_ID below the one before",
                    ));
                }
                if self.control.push_max.replace(most).is_some() {
                    self.glitch()?;
                }
                Ok(())
            }
            kind::CANCEL_PUSH => {
                varint::whole(payload).ok_or_else(short)?;
                // None was ever promised, either way.
                Err(Fault::new(ErrorCode::IdError, "CANCEL_PUSH of a push that was never promised"))
            }
            kind::PRIORITY_UPDATE_REQUEST => {
                let (element, length) = varint::read(payload).ok_or_else(short)?;
                let number = number_of(element).ok_or_else(|| {
                    Fault::new(ErrorCode::IdError, "PRIORITY_UPDATE of what is not a request")
                })?;
                let priority = Priority::parse(&payload[length..]);
                if self.streams.peek(number).is_some() {
                    self.reprioritise(cx, number, priority);
                } else if number > self.streams.highest {
                    self.control.early.insert(number, priority);
                }
                Ok(())
            }
            kind::PRIORITY_UPDATE_PUSH => {
                varint::read(payload).ok_or_else(short)?;
                Err(Fault::new(
                    ErrorCode::IdError,
                    "PRIORITY_UPDATE of a push that was never promised",
                ))
            }
            _ => Ok(()),
        }
    }

    /// RFC 9114 §5.2
    fn receive_goaway<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        identifier: u64,
    ) -> Result<(), Fault> {
        let repeated = self.control.goaway.is_received();
        if self.role == Role::Client && !identifier.is_multiple_of(4) {
            return Err(Fault::new(ErrorCode::IdError, "a GOAWAY frame with no request's stream"));
        }
        if !self.control.goaway.receive(identifier) {
            let what = "a GOAWAY frame with a higher identifier than before";
            return Err(Fault::new(ErrorCode::IdError, what));
        }
        if repeated {
            self.glitch()?;
        }
        // The last one that is served comes before the first that is not.
        let last = match self.role {
            Role::Client => u32::try_from(identifier / 4).unwrap_or(u32::MAX),
            Role::Server => u32::MAX,
        };
        let event = ConnectionEvent::Draining { last: ExchangeId(last) };
        self.pending.push_back(Event::Connection(event));
        if self.role == Role::Client {
            let unserved = self.streams.numbers().into_iter().filter(|number| *number > last);
            for number in unserved {
                let what = "the server closed the connection before it acted on the request";
                let reason = AbortReason::new(Blame::Peer, "not-served", what).untouched();
                self.give_up(cx, number, ErrorCode::RequestCancelled, Some(reason));
            }
        }
        Ok(())
    }

    /// The peer stopped (STOP_SENDING) what we send of an exchange.
    pub(crate) fn stopped<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        id: u64,
        code: u64,
    ) -> Result<(), Fault> {
        let Some(number) = number_of(id) else { return Ok(()) };
        let Some(stream) = self.streams.find(number) else { return Ok(()) };
        if self.role == Role::Client && code == ErrorCode::NoError as u64 {
            // RFC 9114 §4.1: the response comes, whatever becomes of the rest of the request.
            let sending = &mut stream.sending;
            if sending.part == Part::Ended && !sending.has_more() {
                return Ok(());
            }
            cx.quic.reset(id, ErrorCode::NoError as u64);
            sending.framed = Vec::new();
            let waiting = sending.waiting.take();
            sending.cut = Some(waiting.map_or(0, |waiting| waiting.chunk.bytes.len() as u64));
            if let Some(turn) = sending.turn.take() {
                self.scheduler.remove(sending.priority, turn);
            }
            if std::mem::replace(&mut sending.part, Part::Ended) != Part::Ended {
                // What it gives next is refused: that is how a caller that waits for room learns of it.
                self.pending.push_back(Event::Exchange(number, ExchangeEvent::Sendable));
            }
            self.streams.charge(number);
            return self.response_ended(cx, number);
        }
        self.given_up_by_peer(cx, number, code)
    }

    /// The peer reset the stream, or stopped it: the exchange is over.
    pub(crate) fn given_up_by_peer<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        code: u64,
    ) -> Result<(), Fault> {
        if self.streams.peek(number).is_none() {
            return Ok(());
        }
        let by_peer = |name, what| AbortReason::new(Blame::Peer, name, what);
        let reason = match self.role {
            Role::Client if code == ErrorCode::RequestRejected as u64 => {
                by_peer(AbortReason::REFUSED, "the server refused the request").untouched()
            }
            Role::Client if code == ErrorCode::RequestCancelled as u64 => {
                by_peer(AbortReason::CANCELLED, "the server cancelled the stream")
            }
            Role::Client => by_peer("server-reset", "the server reset the stream"),
            Role::Server => by_peer("client-reset", "the client reset the stream"),
        };
        self.give_up(cx, number, ErrorCode::RequestCancelled, Some(reason));
        if self.role == Role::Server {
            self.budgets.client_reset(self.times.clock.ms, &self.limits)?;
        }
        Ok(())
    }

    /// The response is complete and the server needs no more of the request: the exchange is over.
    pub(crate) fn response_ended<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
    ) -> Result<(), Fault> {
        let Some(stream) = self.streams.peek(number) else { return Ok(()) };
        if !stream.is_over() {
            return Ok(());
        }
        if stream.sending.cut.is_some() {
            self.pending.push_back(Event::NotNeeded(number));
        } else {
            self.remove(cx, number, ErrorCode::NoError);
        }
        Ok(())
    }

    /// A stream's priority is another from now on.
    pub(crate) fn reprioritise<Q: Quic>(
        &mut self,
        cx: &mut Context<'_, Q>,
        number: u32,
        priority: Priority,
    ) {
        let Some(stream) = self.streams.find(number) else { return };
        let before = std::mem::replace(&mut stream.sending.priority, priority);
        if before == priority {
            return;
        }
        stream.sending.kept = None;
        if let Some(turn) = stream.sending.turn {
            self.scheduler.remove(before, turn);
            stream.sending.turn = Some(self.scheduler.push(number, priority, None));
        }
        cx.quic.prioritise(stream.id(), priority);
    }
}

/// Returns whether the payload of a frame on the control stream means something.
fn is_known(kind: u64) -> bool {
    matches!(
        kind,
        kind::SETTINGS
            | kind::GOAWAY
            | kind::MAX_PUSH_ID
            | kind::CANCEL_PUSH
            | kind::PRIORITY_UPDATE_REQUEST
            | kind::PRIORITY_UPDATE_PUSH
    )
}

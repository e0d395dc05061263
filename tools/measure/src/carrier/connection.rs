//! One connection of a transfer: its requests, and the probes that it takes.

use std::time::Instant;

use bolide_client::{Ending, Established, Orders, Owner};
use bolide_connection::Http2Stats;
use bolide_semantics::{
    ConnectionEvent, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, RequestHead,
    parse_content_length,
};
use bytes::Bytes;
use http::{Method, StatusCode};

use super::Facts;
use super::feed::Feed;
use super::ndt7::{self, Ndt7};
use super::transfer_state::{Stage, TransferState, ending_in_words};
use crate::plan::{Amount, Direction};
use crate::report::TlsReport;

/// Probes on a connection that wait for their responses at most: a server that answers none must not
/// collect streams.
const PROBES_MAX: usize = 50;

/// One request of the transfer.
#[derive(Debug)]
struct Moving {
    id: ExchangeId,
    /// Size of the response's body that has come.
    received: u64,
    /// How long it announced to be.
    announced: Option<u64>,
    /// The response's status, once it is known.
    status: Option<StatusCode>,
    /// The body that we send.
    feed: Option<Feed>,
    /// Protocol in the tunnel that the request asked for.
    tunnel: Option<Box<Ndt7>>,
    /// The piece that was given last has not left.
    is_busy: bool,
    /// Payload has moved on this stream, with this request or one before.
    has_moved: bool,
    /// The response is complete, or nothing more is expected of it.
    is_complete: bool,
}

impl Moving {
    /// Payload has moved in the direction that is measured.
    fn count(&mut self, payload_bytes: u64, state: &mut TransferState) {
        if payload_bytes > 0 && state.counts() {
            state.progress.bytes += payload_bytes;
            state.progress.moving += usize::from(!std::mem::replace(&mut self.has_moved, true));
        }
    }
}

/// State of one connection.
#[derive(Debug)]
pub(super) struct CarrierConnection {
    dialed_ns: u64,
    connected_ns: u64,
    multiplexes: bool,
    /// Requests can be sent, and the server's settings are known.
    is_open: bool,
    has_begun: bool,
    moving: Vec<Moving>,
    /// Each with the time at which it was due.
    probes: Vec<(ExchangeId, u64)>,
    counted: Http2Stats,
}

impl CarrierConnection {
    pub(super) fn new(dialed_ns: u64) -> Self {
        Self {
            dialed_ns,
            connected_ns: 0,
            multiplexes: false,
            is_open: false,
            has_begun: false,
            moving: Vec::new(),
            probes: Vec::new(),
            counted: Http2Stats::default(),
        }
    }

    /// Returns whether it can take a probe in addition to its requests.
    pub(super) fn takes_probes(&self) -> bool {
        self.multiplexes && self.is_open && self.probes.len() < PROBES_MAX
    }
}

/// A connection at its turn.
pub(super) struct At<'a> {
    pub(super) line: &'a mut CarrierConnection,
    pub(super) state: &'a mut TransferState,
}

impl Owner for At<'_> {
    fn connected(&mut self) {
        self.line.connected_ns = self.state.now_ns;
    }

    fn ready(&mut self, established: &Established, _: &mut Orders<'_>) {
        let Self { line, state } = self;
        // The cryptography of this very turn belongs to the handshake.
        state.now_ns = state.task.clock.now_ns();
        line.multiplexes = established.multiplexes();
        if line.connected_ns == 0 {
            // QUIC has no handshake before that of TLS.
            line.connected_ns = line.dialed_ns;
        }
        let handshake_ns = state.now_ns - line.connected_ns;
        let tls = established.tls.as_ref().map(TlsReport::of);
        state.facts.get_or_insert_with(|| Facts {
            version: established.version,
            handshake_ns: tls.is_some().then_some(handshake_ns),
            tls,
            connect_ns: line.connected_ns - line.dialed_ns,
        });
        // What an HTTP/2 server allows is known with its settings.
        if established.version != http::Version::HTTP_2 {
            self.opened();
        }
    }

    #[inline]
    fn exchange(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        if let Some(position) = self.line.moving.iter().position(|moving| moving.id == id) {
            self.moved(position, event, orders);
        } else {
            self.probed(id, event, orders);
        }
    }

    fn connection(&mut self, event: ConnectionEvent, _: &mut Orders<'_>) {
        if matches!(event, ConnectionEvent::Concurrency { .. }) && !self.line.is_open {
            self.opened();
        }
    }

    #[inline]
    fn settled(&mut self, orders: &mut Orders<'_>) {
        if self.line.is_open && !self.line.has_begun && self.state.stage == Stage::Running {
            self.begin(orders);
        }
        if self.state.stage == Stage::Ending {
            self.bring_to_end(orders);
        }
        self.probe(orders);
        if let Some(stats) = orders.http2_stats() {
            self.state.add_stalls(&stats, &self.line.counted);
            self.line.counted = stats;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn ended(&mut self, ending: &Ending) {
        let Self { line, state } = self;
        state.probes -= line.probes.len() as u64;
        state.lost += line.probes.len() as u64;
        line.probes.clear();
        let open = line.moving.iter().find(|moving| !moving.is_complete);
        let is_bad = ending.reason.blame.is_some();
        if open.is_none() && !is_bad && line.has_begun {
            return;
        }
        let why = ending_in_words(ending, state.task.route.is_tls());
        match open.map(|moving| (moving, moving.announced.or(state.task.transfer.expected_bytes))) {
            Some((moving, Some(all))) if moving.feed.is_none() => {
                let received = moving.received;
                state.fail(&format!("the connection ended after {received} of {all} bytes: {why}"));
            }
            Some((Moving { feed: Some(feed), .. }, _)) if !feed.is_over => {
                let left = feed.left();
                let left = if left > 0 { format!("{left} bytes") } else { "it".to_owned() };
                state.fail(&format!(
                    "the connection ended while {left} had still to be sent: {why}"
                ));
            }
            Some(_) => state.fail(&format!("the connection ended before the response: {why}")),
            None => state.fail(&why),
        }
    }
}

impl At<'_> {
    fn opened(&mut self) {
        self.line.is_open = true;
        self.state.progress.open += 1;
    }

    /// Sends the requests of the transfer.
    fn begin(&mut self, orders: &mut Orders<'_>) {
        self.line.has_begun = true;
        let streams = self.state.task.transfer.streams;
        let available = orders.available();
        if available < streams {
            let what = format!(
                "the server allows {available} requests at a time on a connection, not {streams}"
            );
            return self.state.fail(&what);
        }
        for _ in 0..streams {
            self.ask(false, orders);
        }
    }

    /// Sends one request. `has_moved`: another one on this stream has moved payload.
    fn ask(&mut self, has_moved: bool, orders: &mut Orders<'_>) {
        let task = std::sync::Arc::clone(&self.state.task);
        let (route, transfer) = (&task.route, &task.transfer);
        let length = match transfer.amount {
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Whole | Amount::Time(_) => None,
        };
        let text = length.map(|bytes| bytes.to_string()).unwrap_or_default();
        let is_upload = transfer.direction == Direction::Upload;
        let tunnel =
            transfer.is_ndt7.then(|| Box::new(Ndt7::new(transfer.direction, self.state.now_ns)));
        let mut fields = Vec::new();
        match &tunnel {
            Some(tunnel) => fields.extend(ndt7::fields(&tunnel.key)),
            None if !is_upload => {
                // A body that is compressed on its way is not what is measured.
                fields.push(FieldRef::known(FieldName::AcceptEncoding, b"identity"));
            }
            None if length.is_some() => {
                fields.push(FieldRef::known(FieldName::ContentLength, text.as_bytes()));
            }
            None => {}
        }
        let end = if is_upload || tunnel.is_some() { End::No } else { End::Yes };
        let head = RequestHead {
            method: &transfer.method,
            scheme: route.scheme,
            authority: &route.authority,
            path: &transfer.path,
            protocol: None,
            fields: &fields,
        };
        let Ok(id) = orders.send_request(&head, end) else {
            return self.state.fail("the connection took no further request");
        };
        let feed = (is_upload && tunnel.is_none()).then(|| Feed::new(length));
        self.line.moving.push(Moving {
            id,
            received: 0,
            announced: None,
            status: None,
            feed,
            tunnel,
            is_busy: false,
            has_moved,
            is_complete: false,
        });
        self.feed(self.line.moving.len() - 1, orders);
    }

    /// Gives an upload as much as leaves at once, and one piece more.
    fn feed(&mut self, position: usize, orders: &mut Orders<'_>) {
        let Self { line, state } = self;
        let moving = &mut line.moving[position];
        let ends = state.stage == Stage::Ending
            || state.time_is_over_ns().is_some_and(|end| state.now_ns >= end);
        while !moving.is_busy {
            let (piece, payload_bytes, end) = match (&mut moving.tunnel, &mut moving.feed) {
                (Some(tunnel), _) => match tunnel.next(ends) {
                    Some((piece, payload_bytes)) => (piece, payload_bytes, End::No),
                    None => return,
                },
                (None, Some(feed)) if !feed.is_over => {
                    let (piece, last) = feed.next(state.now_ns, ends);
                    let payload_bytes = piece.len() as u64;
                    (piece, payload_bytes, if last { End::Yes } else { End::No })
                }
                _ => return,
            };
            match orders.send_data(moving.id, piece, end) {
                Ok(more) => {
                    moving.is_busy = !more;
                    moving.count(payload_bytes, state);
                }
                // What the server did to the exchange is about to be reported.
                Err(_) => return,
            }
        }
    }

    /// The time is over: uploads end, where the piece before has left.
    fn bring_to_end(&mut self, orders: &mut Orders<'_>) {
        for position in 0..self.line.moving.len() {
            self.feed(position, orders);
        }
    }

    /// Something about a request of the transfer.
    #[inline]
    fn moved(&mut self, position: usize, event: ExchangeEvent, orders: &mut Orders<'_>) {
        match event {
            ExchangeEvent::Data(data, end) if self.line.moving[position].tunnel.is_some() => {
                self.tunnelled(position, data, end, orders);
            }
            ExchangeEvent::Data(data, end) => {
                let Self { line, state } = self;
                let moving = &mut line.moving[position];
                let length = data.len();
                state.keep(&data);
                // The block is free again before the next read.
                drop(data);
                moving.received += length as u64;
                if moving.feed.is_none() {
                    moving.count(length as u64, state);
                }
                orders.consumed(moving.id, length);
                if end == End::Yes {
                    self.complete(position, orders);
                }
            }
            ExchangeEvent::Sendable => {
                self.line.moving[position].is_busy = false;
                self.feed(position, orders);
            }
            ExchangeEvent::Head(_) if self.line.moving[position].tunnel.is_some() => {
                let tunnel = self.line.moving[position].tunnel.as_mut();
                match tunnel.map(|tunnel| tunnel.opened(orders.head())) {
                    Some(Err(what)) => self.state.fail(&what),
                    _ => self.feed(position, orders),
                }
            }
            ExchangeEvent::Head(end) => {
                let status = orders.head().status();
                let announced =
                    orders.head().get(FieldName::ContentLength).and_then(parse_content_length);
                let moving = &mut self.line.moving[position];
                (moving.status, moving.announced) = (Some(status), announced);
                self.judge_head(status, announced);
                if end == End::Yes {
                    self.complete(position, orders);
                }
            }
            ExchangeEvent::Trailers => self.complete(position, orders),
            ExchangeEvent::Aborted(reason) => {
                // With HTTP/1.1 the end of the connection follows, and it says more.
                if self.line.multiplexes {
                    self.line.moving[position].is_complete = true;
                    let received = self.line.moving[position].received;
                    let what = reason.what;
                    self.state.fail(&format!("the stream ended after {received} bytes: {what}"));
                }
            }
            ExchangeEvent::Informational | ExchangeEvent::Rejected(_) => {}
        }
    }

    /// Bytes have come through a tunnel.
    fn tunnelled(&mut self, position: usize, data: Bytes, end: End, orders: &mut Orders<'_>) {
        let Self { line, state } = self;
        let moving = &mut line.moving[position];
        let Some(tunnel) = &mut moving.tunnel else { return };
        let length = data.len();
        let received = tunnel.received(data, state.now_ns);
        state.told = tunnel.told.or(state.told);
        let is_over = tunnel.is_over;
        orders.consumed(moving.id, length);
        match received {
            Ok(payload_bytes) => {
                moving.received += payload_bytes;
                if state.task.transfer.direction == Direction::Download {
                    moving.count(payload_bytes, state);
                }
            }
            Err(what) => return state.fail(&what),
        }
        self.feed(position, orders);
        let Self { line, state } = self;
        if is_over && !std::mem::replace(&mut line.moving[position].is_complete, true) {
            state.progress.done += 1;
            state.progress.ended_ns = state.now_ns;
            state.judge_end();
        } else if end == End::Yes && !is_over {
            state.fail("the server ended the connection without a close frame");
        }
    }

    /// Judges whether a response is what was asked for.
    fn judge_head(&mut self, status: StatusCode, announced: Option<u64>) {
        let transfer = &self.state.task.transfer;
        let is_upload = transfer.direction == Direction::Upload;
        let expected = transfer.expected_bytes.filter(|_| !is_upload);
        if !status.is_success() {
            let wanted = if is_upload { "200 or 204" } else { "200" };
            self.state.fail(&format!("the response was {status} instead of {wanted}"));
        } else if let (Some(expected), Some(announced)) = (expected, announced)
            && expected != announced
        {
            let what = format!("the server announced {announced} bytes instead of {expected}");
            self.state.fail(&what);
        }
    }

    /// A response is complete.
    fn complete(&mut self, position: usize, orders: &mut Orders<'_>) {
        let moving = &mut self.line.moving[position];
        if std::mem::replace(&mut moving.is_complete, true) {
            return;
        }
        let (received, id) = (moving.received, moving.id);
        let is_early =
            moving.feed.as_ref().is_some_and(|feed| !feed.is_over) || !orders.is_written(id);
        let is_upload = moving.feed.is_some();
        let expected = self.state.task.transfer.expected_bytes.filter(|_| !is_upload);
        if is_early {
            let status = moving.status.unwrap_or_default();
            let what = format!("the response {status} came before the request was sent");
            self.state.fail(&what);
            return orders.abort(id);
        }
        if let Some(expected) = expected
            && received != expected
        {
            let what = format!("received {received} bytes instead of {expected}");
            return self.state.fail(&what);
        }
        if self.state.goes_on() && self.state.error.is_none() {
            let before = self.line.moving.remove(position);
            // An HTTP/1.1 connection that the server ends is told of by its end.
            if orders.available() > 0 {
                return self.ask(before.has_moved, orders);
            }
            return self.state.fail("the server takes no further request on this connection");
        }
        self.state.progress.done += 1;
        self.state.progress.ended_ns = self.state.now_ns;
    }

    /// Sends the probes that are due, if this connection can take them.
    fn probe(&mut self, orders: &mut Orders<'_>) {
        let task = std::sync::Arc::clone(&self.state.task);
        let Some(path) = &task.probe_path else { return };
        while self.line.takes_probes()
            && orders.available() > 0
            && let Some(due_ns) = self.state.due.pop()
        {
            let route = &task.route;
            let head = RequestHead {
                method: &Method::GET,
                scheme: route.scheme,
                authority: &route.authority,
                path,
                protocol: None,
                fields: &[],
            };
            match orders.send_request(&head, End::Yes) {
                Ok(id) => {
                    self.line.probes.push((id, due_ns));
                    self.state.probes += 1;
                }
                Err(_) => self.state.lost += 1,
            }
        }
    }

    /// Something about a probe.
    fn probed(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        let Some(position) = self.line.probes.iter().position(|(probe, _)| *probe == id) else {
            return;
        };
        let is_over = match event {
            ExchangeEvent::Head(end) => {
                let status = orders.head().status();
                if !status.is_success() {
                    let path = self.state.task.probe_path.clone().unwrap_or_default();
                    self.state.fail(&format!("the probe for {path} got {status}"));
                }
                end == End::Yes
            }
            ExchangeEvent::Data(data, end) => {
                orders.consumed(id, data.len());
                end == End::Yes
            }
            ExchangeEvent::Trailers => true,
            ExchangeEvent::Aborted(_) => {
                self.line.probes.swap_remove(position);
                self.state.probes -= 1;
                self.state.lost += 1;
                return;
            }
            _ => false,
        };
        if is_over {
            let (_, due_ns) = self.line.probes.swap_remove(position);
            self.state.answered(due_ns);
        }
    }
}

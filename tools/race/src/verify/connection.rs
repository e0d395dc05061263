//! One connection to a contender, for single exchanges that are looked at closely.

use std::io::Read;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use bolide_buffers::{Flush, ReceiveBuffer, SendQueue};
use bolide_connection::{Connection, Limits};
use bolide_semantics::{
    Blame, Context, End, ExchangeEvent, ExchangeId, FieldRef, Head, Output, RequestHead,
};
use bytes::Bytes;
use http::{Method, StatusCode, Version};

use super::carrier::Carrier;
use crate::catalogue::Protocol;

/// How long one exchange may take, with its connection.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// How much is read at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// Output that may wait; bodies are given in pieces below it.
const OUTPUT_BYTES: usize = 64 * 1024;

/// How much longer than expected a body may become: enough to show in a sentence by how much it is wrong.
const EXCESS_BYTES: usize = 64 * 1024;

/// Rest between two pieces, so that they arrive apart.
const PIECE_PAUSE: Duration = Duration::from_micros(500);

/// A question.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// The path with its query.
    pub(crate) path: String,
    /// The body of a POST; `None`: a GET.
    pub(crate) body: Option<Bytes>,
    /// The body leaves in so many pieces, each in a segment of its own.
    pub(crate) pieces: usize,
    /// Fields in addition to the length of the body.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// How long the response's body should be, in bytes.
    pub(crate) expected_bytes: usize,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    /// Names in lower case.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// Names in lower case.
    pub(crate) trailers: Vec<(String, Vec<u8>)>,
}

impl Response {
    /// The first field of this name, in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.fields.iter();
        fields.find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// The body before it was compressed by gzip, as far as one byte more than `expected`; `None`: it is not coded so, or is no
    /// smaller for it.
    pub(crate) fn unzipped(&self, expected: usize) -> Option<Vec<u8>> {
        let mut plain = Vec::new();
        let is_coded = self.field("content-encoding") == Some(b"gzip");
        let decoder = flate2::bufread::GzDecoder::new(self.body.as_slice());
        let read = decoder.take(expected as u64 + 1).read_to_end(&mut plain);
        (is_coded && read.is_ok() && self.body.len() < plain.len()).then_some(plain)
    }
}

/// An open connection.
pub(crate) struct OpenConnection {
    carrier: Carrier,
    connection: Connection,
    limits: Limits,
    rest: Box<[u8]>,
    authority: String,
    scheme: &'static str,
    /// How long one exchange may take.
    pub(super) timeout: Duration,
    pub(crate) ended: bool,
    /// The server broke the protocol.
    pub(crate) is_broken: bool,
}

/// An exchange that is under way.
struct Progress {
    id: Option<ExchangeId>,
    pieces: Vec<Bytes>,
    can_send: bool,
    /// The head, with a body that is still empty.
    head: Option<Response>,
    body: Vec<u8>,
    body_bytes_max: usize,
    trailers: Vec<(String, Vec<u8>)>,
    is_complete: bool,
    failure: Option<String>,
}

impl OpenConnection {
    /// Connects.
    pub(crate) fn open(address: SocketAddr, protocol: Protocol) -> Result<Self, String> {
        let limits = Limits::default();
        let (carrier, connection) = Carrier::open(address, protocol, &limits, EXCHANGE_TIMEOUT)?;
        Ok(Self {
            carrier,
            connection,
            limits,
            rest: Box::default(),
            authority: address.to_string(),
            scheme: if protocol.is_tls() { "https" } else { "http" },
            timeout: EXCHANGE_TIMEOUT,
            ended: false,
            is_broken: false,
        })
    }

    /// Asks, and waits for the whole response.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Result<Response, String> {
        let deadline = Instant::now() + self.timeout;
        let mut progress = Progress::new(ask);
        let mut input = ReceiveBuffer::new(BLOCK_BYTES);
        let mut plain = ReceiveBuffer::new(BLOCK_BYTES);
        let mut output = SendQueue::new();
        let mut head = Head::default();
        let mut block = vec![0; BLOCK_BYTES];
        // What is there already can't be the response.
        let mut read = self.receive(&mut block, Flush::Drained, Instant::now())?;
        loop {
            input.start(&self.rest);
            input.extend(&block[..read]);
            let is_tls = self.connection.is_tls();
            self.connection.open_records(&mut input, &mut plain);
            let mut cx = Context {
                input: if is_tls { &mut plain } else { &mut input },
                output: &mut output,
                output_limit: OUTPUT_BYTES,
                head: &mut head,
                now: Instant::now(),
            };
            self.advance(&mut cx, &mut progress);
            if progress.id.is_none() && self.connection.version().is_some() {
                self.send_head(&mut cx, ask, &mut progress);
                self.advance(&mut cx, &mut progress);
            }
            let more = self.send_piece(&mut cx, &mut progress);
            self.connection.keep_records(&mut plain);
            self.rest = input.take_rest();
            let flushed = self.carrier.flush(&mut self.connection, &mut output)?;
            if progress.is_complete {
                return progress.answer();
            }
            if let Some(failure) = progress.failure.take() {
                return Err(failure);
            }
            if self.ended {
                return Err("the connection ended before the response did".to_owned());
            }
            if Instant::now() >= deadline {
                return Err(format!("no response within {} s", self.timeout.as_secs_f64()));
            }
            read = if more && flushed == Flush::Drained {
                thread::sleep(PIECE_PAUSE);
                self.receive(&mut block, flushed, Instant::now())?
            } else {
                self.receive(&mut block, flushed, deadline)?
            };
        }
    }

    /// Acknowledges what has come since the last exchange, which over QUIC nothing else does.
    pub(crate) fn acknowledge(&mut self, block: &mut [u8]) -> Result<(), String> {
        self.carrier.acknowledge(&mut self.connection, block)
    }

    /// Takes what the connection reports until it waits.
    fn advance(&mut self, cx: &mut Context<'_>, progress: &mut Progress) {
        loop {
            match self.connection.poll(cx, &self.limits) {
                Output::Wait(_) => return,
                Output::Connection(_) => {}
                Output::Closed(reason) => {
                    self.is_broken |= reason.blame == Some(Blame::Peer);
                    progress.failure.get_or_insert_with(|| reason.what.to_owned());
                    return;
                }
                Output::Exchange(id, event) => {
                    if progress.id == Some(id)
                        && let Some(bytes) = progress.take(event, cx.head)
                    {
                        self.connection.consumed(cx, id, bytes);
                    }
                }
            }
        }
    }

    fn send_head(&mut self, cx: &mut Context<'_>, ask: &Ask, progress: &mut Progress) {
        let length = ask.body.as_ref().map(|body| body.len().to_string());
        let length = length.iter().map(|length| ("content-length", length.as_str()));
        let fields = ask.fields.iter().map(|(name, value)| (*name, value.as_str())).chain(length);
        let fields = fields.map(|(name, value)| FieldRef::named(name, value.as_bytes()));
        let fields: Vec<_> = fields.collect();
        let end = if progress.pieces.is_empty() { End::Yes } else { End::No };
        let head = RequestHead {
            method: if ask.body.is_some() { &Method::POST } else { &Method::GET },
            scheme: self.scheme,
            authority: &self.authority,
            path: &ask.path,
            protocol: None,
            fields: &fields,
        };
        progress.id = self.connection.send_request(cx, &head, end).ok();
        if progress.id.is_none() {
            progress.failure.get_or_insert_with(|| "the connection takes no request".to_owned());
        }
    }

    /// Gives the next piece of the body, if it can be sent; whether more are left.
    fn send_piece(&mut self, cx: &mut Context<'_>, progress: &mut Progress) -> bool {
        if let Some(id) = progress.id
            && progress.can_send
            && !progress.is_complete
            && let Some(piece) = progress.pieces.pop()
        {
            let end = if progress.pieces.is_empty() { End::Yes } else { End::No };
            let sent = self.connection.send_data(cx, id, piece, end);
            // What the server needs no more is dropped; its own event says why.
            progress.can_send = sent.unwrap_or(true);
        }
        progress.can_send && !progress.pieces.is_empty()
    }

    /// Waits until something can be read, or (when blocked) written, or the deadline.
    fn receive(
        &mut self,
        block: &mut [u8],
        flushed: Flush,
        deadline: Instant,
    ) -> Result<usize, String> {
        let received = self.carrier.receive(&mut self.connection, block, flushed, deadline)?;
        if received.is_none() {
            self.ended = true;
            self.connection.receive_eof();
        }
        Ok(received.unwrap_or_default())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.carrier.close(&mut self.connection);
    }
}

impl Progress {
    fn new(ask: &Ask) -> Self {
        let mut pieces = Vec::new();
        let mut body = ask.body.clone().unwrap_or_default();
        let piece = body.len().div_ceil(ask.pieces.max(1)).clamp(1, OUTPUT_BYTES / 4);
        while !body.is_empty() {
            pieces.push(body.split_to(piece.min(body.len())));
        }
        pieces.reverse();
        Self {
            id: None,
            pieces,
            can_send: true,
            head: None,
            body: Vec::new(),
            body_bytes_max: ask.expected_bytes + EXCESS_BYTES,
            trailers: Vec::new(),
            is_complete: false,
            failure: None,
        }
    }

    /// Takes one event; returns how many bytes of the body have been used up.
    fn take(&mut self, event: ExchangeEvent, head: &Head) -> Option<usize> {
        match event {
            ExchangeEvent::Head(end) => {
                self.head = Some(Response {
                    status: head.status(),
                    version: head.version(),
                    fields: fields(head),
                    body: Vec::new(),
                    trailers: Vec::new(),
                });
                self.is_complete = end == End::Yes;
            }
            ExchangeEvent::Data(data, _) if self.body.len() + data.len() > self.body_bytes_max => {
                let bytes = self.body_bytes_max - EXCESS_BYTES;
                self.failure = Some(format!(
                    "the body has more than {} bytes, not {bytes}",
                    self.body_bytes_max
                ));
                return Some(data.len());
            }
            ExchangeEvent::Data(data, end) => {
                self.body.extend_from_slice(&data);
                self.is_complete = end == End::Yes;
                return Some(data.len());
            }
            ExchangeEvent::Trailers => {
                self.trailers = fields(head);
                self.is_complete = true;
            }
            ExchangeEvent::Sendable => self.can_send = true,
            ExchangeEvent::Aborted(reason) => self.failure = Some(reason.what.to_owned()),
            ExchangeEvent::Rejected(_) | ExchangeEvent::Informational => {}
        }
        None
    }

    fn answer(self) -> Result<Response, String> {
        let head = self.head.ok_or_else(|| "a response without a head".to_owned())?;
        Ok(Response { body: self.body, trailers: self.trailers, ..head })
    }
}

fn fields(head: &Head) -> Vec<(String, Vec<u8>)> {
    head.fields().map(|field| (field.name.to_owned(), field.value.to_vec())).collect()
}

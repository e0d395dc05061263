//! One client, which sends some requests in one write and reads their responses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_connection::{Connection, Limits};
use bolide_semantics::{
    Context, End, ExchangeEvent, ExchangeId, FieldRef, Head, Output, RequestHead,
};
use bytes::Bytes;
use http::StatusCode;

use crate::request::Request;
use crate::row::Carrier;

/// How long one read may take.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// How much is read at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// A connection and the exchanges that are under way.
pub(crate) struct Client {
    stream: TcpStream,
    connection: Connection,
    limits: Limits,
    authority: String,
    input: ReceiveBuffer,
    rest: Box<[u8]>,
    output: SendQueue,
    head: Head,
    block: Vec<u8>,
    open: Vec<Exchange>,
}

/// A request whose response has not been read to its end.
struct Exchange {
    id: ExchangeId,
    expected: Bytes,
    received: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, carrier: Carrier) -> Result<Self, String> {
        let stream = TcpStream::connect(address)
            .and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(READ_TIMEOUT))?;
                Ok(stream)
            })
            .map_err(|error| format!("no connection to {address}: {error}"))?;
        let limits = Limits::default();
        let connection = if carrier == Carrier::H2c {
            Connection::with_prior_knowledge(&limits, Instant::now())
        } else {
            Connection::http1(&limits, Instant::now())
        };
        Ok(Self {
            stream,
            connection,
            limits,
            authority: address.to_string(),
            input: ReceiveBuffer::new(BLOCK_BYTES),
            rest: Box::default(),
            output: SendQueue::new(),
            head: Head::default(),
            block: vec![0; BLOCK_BYTES],
            open: Vec::new(),
        })
    }

    /// Sends the requests, and what reading has left to be sent, in one write.
    pub(crate) fn send(&mut self, requests: impl Iterator<Item = Request>) -> Result<(), String> {
        self.advance(0)?;
        for request in requests {
            self.queue(request)?;
        }
        let mut bytes = Vec::new();
        self.connection
            .flush(&mut self.output, &mut bytes)
            .and_then(|_| self.stream.write_all(&bytes))
            .map_err(|error| format!("writing failed: {error}"))
    }

    /// Reads until every response is complete.
    pub(crate) fn receive(&mut self) -> Result<(), String> {
        while !self.open.is_empty() {
            let read = self.stream.read(&mut self.block);
            match read.map_err(|error| format!("reading failed: {error}"))? {
                0 => return Err("the server closed a connection".to_owned()),
                count => self.advance(count)?,
            }
        }
        Ok(())
    }

    fn queue(&mut self, request: Request) -> Result<(), String> {
        let fields: Vec<_> = request
            .fields
            .iter()
            .map(|(name, value)| FieldRef::named(name, value.as_bytes()))
            .collect();
        let head = RequestHead {
            method: &request.method,
            scheme: "http",
            authority: &self.authority,
            path: &request.path,
            protocol: None,
            fields: &fields,
        };
        let end = if request.body.is_empty() { End::Yes } else { End::No };
        let mut cx = context(&mut self.input, &mut self.output, &mut self.head);
        let misused = |misuse| format!("the connection takes no request: {misuse:?}");
        let id = self.connection.send_request(&mut cx, &head, end).map_err(misused)?;
        if end == End::No {
            self.connection.send_data(&mut cx, id, request.body, End::Yes).map_err(misused)?;
        }
        self.open.push(Exchange { id, expected: request.response, received: Vec::new() });
        Ok(())
    }

    /// Takes what the connection makes of `count` further bytes of the block.
    fn advance(&mut self, count: usize) -> Result<(), String> {
        self.input.start(&self.rest);
        self.input.extend(&self.block[..count]);
        let mut cx = context(&mut self.input, &mut self.output, &mut self.head);
        loop {
            match self.connection.poll(&mut cx, &self.limits) {
                Output::Wait(_) => break,
                Output::Connection(_) => {}
                Output::Closed(reason) => {
                    return Err(format!("a connection ended: {}", reason.what));
                }
                Output::Exchange(id, event) => {
                    if let ExchangeEvent::Data(data, _) = &event {
                        self.connection.consumed(&mut cx, id, data.len());
                    }
                    take(&mut self.open, id, event, cx.head)?;
                }
            }
        }
        self.rest = self.input.take_rest();
        Ok(())
    }
}

/// Returns what the connection works on, with room for every request.
fn context<'a>(
    input: &'a mut ReceiveBuffer,
    output: &'a mut SendQueue,
    head: &'a mut Head,
) -> Context<'a> {
    Context { input, output, output_limit: usize::MAX, head, now: Instant::now() }
}

/// Takes one event of an exchange; a response that is complete and right leaves the list.
fn take(
    open: &mut Vec<Exchange>,
    id: ExchangeId,
    event: ExchangeEvent,
    head: &Head,
) -> Result<(), String> {
    let Some(at) = open.iter().position(|exchange| exchange.id == id) else { return Ok(()) };
    let exchange = &mut open[at];
    let end = match event {
        ExchangeEvent::Head(_) if head.status() != StatusCode::OK => {
            return Err(format!("the server's status is {}", head.status()));
        }
        ExchangeEvent::Head(end) => end,
        ExchangeEvent::Data(data, end) => {
            exchange.received.extend_from_slice(&data);
            end
        }
        ExchangeEvent::Trailers => End::Yes,
        ExchangeEvent::Aborted(reason) => {
            return Err(format!("an exchange ended: {}", reason.what));
        }
        ExchangeEvent::Rejected(_) | ExchangeEvent::Informational | ExchangeEvent::Sendable => {
            End::No
        }
    };
    if end == End::Yes {
        let Exchange { expected, received, .. } = open.swap_remove(at);
        if received != expected {
            return Err(format!(
                "the content of a response is {:?}, not {expected:?}",
                Bytes::from(received)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ExchangeId = ExchangeId(1);

    fn given(pieces: &[&'static [u8]]) -> (Result<(), String>, usize) {
        let expected = Bytes::from_static(b"pong");
        let mut open = vec![Exchange { id: ID, expected, received: Vec::new() }];
        let taken = pieces.iter().enumerate().try_for_each(|(at, piece)| {
            let end = if at + 1 == pieces.len() { End::Yes } else { End::No };
            let event = ExchangeEvent::Data(Bytes::from_static(piece), end);
            take(&mut open, ID, event, &Head::default())
        });
        (taken, open.len())
    }

    #[test]
    fn a_response_with_other_content_is_an_error() {
        assert_eq!(given(&[b"po", b"ng"]), (Ok(()), 0));
        for wrong in [&[&b"po"[..]][..], &[b"pong", b"!"], &[b"", b"ping"]] {
            assert!(given(wrong).0.unwrap_err().contains("not b\"pong\""), "{wrong:?}");
        }
    }
}

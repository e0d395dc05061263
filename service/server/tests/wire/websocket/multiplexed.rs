//! A client that asks for WebSocket connections by an extended CONNECT (RFC 8441).

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_connection::{Connection, Limits};
use bolide_semantics::{
    Context, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, Head, Output, RequestHead, Role,
};
use bolide_websocket::{Assembly, CloseCode, Codec, Event, Kind, Settings};
use bytes::Bytes;
use http::Method;

pub(super) struct Client {
    stream: TcpStream,
    connection: Connection,
    limits: Limits,
    input: ReceiveBuffer,
    output: SendQueue,
    head: Head,
    rest: Box<[u8]>,
    codec: Codec,
    assembly: Assembly,
    exchange: ExchangeId,
    unsent: Option<Bytes>,
    sendable: bool,
    granted: bool,
}

/// Result of one turn.
enum Turn {
    Nothing,
    Response(u16, Option<String>),
    Message(Bytes),
    Closed(u16),
}

impl Client {
    pub(super) fn connect(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let limits = Limits::default();
        Self {
            stream,
            connection: Connection::with_prior_knowledge(&limits, Instant::now()),
            limits,
            input: ReceiveBuffer::new(64 * 1024),
            output: SendQueue::new(),
            head: Head::default(),
            rest: Box::default(),
            codec: Codec::new(Role::Client, Settings { mask_seed: 3, ..Settings::default() }),
            assembly: Assembly::default(),
            exchange: ExchangeId(0),
            unsent: None,
            sendable: true,
            granted: false,
        }
    }

    /// The status of the response, and the subprotocol in it.
    pub(super) fn handshake(
        &mut self,
        path: &str,
        protocol: &str,
        subprotocol: &str,
    ) -> (u16, Option<String>) {
        // The preface goes out with the first poll; a server's settings say whether it may be asked.
        self.input.start(&[]);
        let _ = self.advance();
        while self.connection.takes_protocols().is_none() {
            let _ = self.turn();
        }
        assert_eq!(self.connection.takes_protocols(), Some(true));
        let fields = [
            FieldRef::known(FieldName::SecWebsocketVersion, b"13"),
            FieldRef::known(FieldName::SecWebsocketProtocol, subprotocol.as_bytes()),
        ];
        let mut cx = Context {
            input: &mut self.input,
            output: &mut self.output,
            output_limit: 1 << 20,
            head: &mut self.head,
            now: Instant::now(),
        };
        let head = RequestHead {
            method: &Method::CONNECT,
            scheme: "http",
            authority: "a",
            path,
            protocol: Some(protocol),
            fields: &fields,
        };
        self.exchange = self.connection.send_request(&mut cx, &head, End::No).expect("it is open");
        self.flush();
        loop {
            if let Turn::Response(status, chosen) = self.turn() {
                return (status, chosen);
            }
        }
    }

    pub(super) fn send(&mut self, message: &[u8]) {
        self.codec.send(Kind::Binary, message.to_vec()).expect("it is open");
    }

    pub(super) fn receive(&mut self) -> Bytes {
        loop {
            if let Turn::Message(message) = self.turn() {
                return message;
            }
        }
    }

    /// The code of the server's response.
    pub(super) fn close(&mut self) -> u16 {
        self.codec.send_close(CloseCode::NORMAL, "").expect("it is open");
        loop {
            if let Turn::Closed(code) = self.turn() {
                return code;
            }
        }
    }

    /// Sends what can be sent, then reads once.
    fn turn(&mut self) -> Turn {
        self.push();
        let turn = self.advance();
        if !matches!(turn, Turn::Nothing) {
            return turn;
        }
        let mut bytes = [0; 32 * 1024];
        let count = self.stream.read(&mut bytes).expect("a response in time");
        assert!(count > 0, "the server has closed");
        self.input.start(&self.rest);
        self.input.extend(&bytes[..count]);
        let turn = self.advance();
        self.rest = self.input.take_rest();
        turn
    }

    /// Gives the connection what the codec has to send.
    fn push(&mut self) {
        while self.sendable
            && let Some(bytes) = self.unsent.take().or_else(|| self.codec.pop_output())
        {
            let mut cx = Context {
                input: &mut self.input,
                output: &mut self.output,
                output_limit: 1 << 20,
                head: &mut self.head,
                now: Instant::now(),
            };
            let sent = self.connection.send_data(&mut cx, self.exchange, bytes, End::No);
            self.sendable = sent.expect("the tunnel is open");
        }
        self.flush();
    }

    /// Returns what the connection has to report, up to the first thing of interest.
    fn advance(&mut self) -> Turn {
        let mut found = Turn::Nothing;
        loop {
            let mut cx = Context {
                input: &mut self.input,
                output: &mut self.output,
                output_limit: 1 << 20,
                head: &mut self.head,
                now: Instant::now(),
            };
            match self.connection.poll(&mut cx, &self.limits) {
                Output::Exchange(_, ExchangeEvent::Head(_)) => {
                    let chosen = cx.head.get(FieldName::SecWebsocketProtocol);
                    self.granted = cx.head.status().is_success();
                    let chosen = chosen.map(|name| String::from_utf8_lossy(name).into_owned());
                    found = Turn::Response(cx.head.status().as_u16(), chosen);
                }
                Output::Exchange(id, ExchangeEvent::Data(mut data, _)) => {
                    self.connection.consumed(&mut cx, id, data.len());
                    while self.granted
                        && let Some(event) = self.codec.receive(&mut data)
                    {
                        match event {
                            Event::Message { payload, end, .. } => {
                                if let Some(message) = self.assembly.push(payload, end) {
                                    found = Turn::Message(message);
                                }
                            }
                            Event::Closed(close) => found = Turn::Closed(close.code.0),
                            other => panic!("{other:?}"),
                        }
                    }
                }
                Output::Exchange(_, ExchangeEvent::Sendable) => self.sendable = true,
                // Who is refused need not send the rest.
                Output::Exchange(_, ExchangeEvent::Aborted(_)) if !self.granted => {}
                Output::Exchange(_, other) => panic!("{other:?}"),
                Output::Closed(reason) => panic!("{reason:?}"),
                Output::Connection(_) => {}
                Output::Wait(_) => break,
            }
        }
        self.flush();
        found
    }

    fn flush(&mut self) {
        while !self.output.is_empty() {
            self.output.flush(&mut self.stream).expect("the server reads");
        }
    }
}

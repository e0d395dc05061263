//! RFC 9113: a client and a server with any orders in any order: neither may find fault with the other,
//! and no byte of a body is lost, added or out of place.

#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbitrary::Arbitrary;
use bolide_buffers::{Chunk, ReceiveBuffer, SendQueue};
use bolide_h2::{Connection, Limits, limits};
use bolide_semantics::{
    Blame, Content, Context, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, Head, Output,
    RequestHead, ResponseHead, Role,
};
use bytes::Bytes;
use http::{Method, StatusCode};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
enum Order {
    Ask { body: bool },
    Interim { exchange: u8 },
    Answer { exchange: u8, end: bool },
    Give { server: bool, exchange: u8, bytes: u16, end: bool },
    Trailers { server: bool, exchange: u8 },
    Abort { server: bool, exchange: u8 },
    Move { server: bool, bytes: u16 },
    Consume { server: bool },
    ShutDown { server: bool },
    Pass { milliseconds: u16 },
}

#[derive(Debug, Arbitrary)]
struct Plan {
    window: u16,
    limit: u16,
    orders: Vec<Order>,
}

/// One end, and what it has been told.
struct Side {
    connection: Connection,
    input: ReceiveBuffer,
    rest: Box<[u8]>,
    output: SendQueue,
    limit: usize,
    head: Head,
    now: Instant,
    /// Bytes given and received, by exchange.
    given: BTreeMap<u32, usize>,
    received: BTreeMap<u32, usize>,
    unconsumed: Vec<(ExchangeId, usize)>,
    closed: bool,
}

fn byte_at(exchange: u32, place: usize) -> u8 {
    (place as u8).wrapping_mul(7).wrapping_add((place >> 8) as u8).wrapping_add(exchange as u8)
}

impl Side {
    fn new(role: Role, plan: &Plan, now: Instant) -> Self {
        let window = u32::from(plan.window) + 1;
        let limits = Limits {
            windows: limits::Windows { stream_window_bytes: window, ..limits::Windows::DEFAULT },
            budgets: limits::Budgets {
                small_data_burst_count: Some(1_000_000),
                glitches_burst_count: Some(1_000_000),
                client_resets_burst_count: 1_000_000,
                ..limits::Budgets::DEFAULT
            },
            ..Limits::default()
        };
        Self {
            connection: Connection::new(role, &Arc::new(limits), now),
            input: ReceiveBuffer::new(64 * 1024),
            rest: Box::default(),
            output: SendQueue::new(),
            limit: usize::from(plan.limit) + 1,
            head: Head::default(),
            now,
            given: BTreeMap::new(),
            received: BTreeMap::new(),
            unconsumed: Vec::new(),
            closed: false,
        }
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Connection, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            input: &mut self.input,
            output: &mut self.output,
            output_limit: self.limit,
            head: &mut self.head,
            now: self.now,
        };
        act(&mut self.connection, &mut cx)
    }

    fn turn(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        let rest = std::mem::take(&mut self.rest);
        self.input.start(&rest);
        self.input.extend(bytes);
        loop {
            match self.with(|connection, cx| connection.poll(cx)) {
                Output::Wait(_) => break,
                Output::Closed(reason) => {
                    assert_ne!(reason.blame, Some(Blame::Peer), "{reason:?}");
                    self.closed = true;
                    break;
                }
                Output::Exchange(id, ExchangeEvent::Data(bytes, _)) => {
                    let received = self.received.entry(id.0).or_default();
                    for byte in &bytes {
                        assert_eq!(*byte, byte_at(id.0, *received), "a byte out of place");
                        *received += 1;
                    }
                    self.unconsumed.push((id, bytes.len()));
                }
                Output::Exchange(id, ExchangeEvent::Head(_)) => {
                    self.given.entry(id.0).or_default();
                }
                Output::Exchange(..) | Output::Connection(_) => {}
            }
        }
        self.rest = self.input.take_rest();
    }

    fn give(&mut self, exchange: u8, bytes: u16, end: bool) {
        let id = u32::from(exchange) * 2 + 1;
        let Some(given) = self.given.get(&id).copied() else { return };
        let body: Vec<u8> =
            (given..given + usize::from(bytes)).map(|place| byte_at(id, place)).collect();
        let end = if end { End::Yes } else { End::No };
        // Some wait as they are, others as copies.
        let chunk =
            if given % 2 == 0 { Chunk::kept(body.into()) } else { Bytes::from(body).into() };
        let given = self.with(|c, cx| c.send_data(cx, ExchangeId(id), chunk, end));
        if given.is_ok() {
            *self.given.get_mut(&id).expect("it was there") += usize::from(bytes);
        }
    }

    fn order(&mut self, order: &Order) {
        let fields = [FieldRef::known(FieldName::ContentType, b"text/plain")];
        match *order {
            Order::Ask { body } => {
                let (scheme, authority, path) = ("http", "a", "/");
                let method = &Method::POST;
                let head = RequestHead {
                    method,
                    scheme,
                    authority,
                    path,
                    protocol: None,
                    fields: &fields,
                };
                let end = if body { End::No } else { End::Yes };
                if let Ok(id) = self.with(|c, cx| c.send_request(cx, &head, end)) {
                    self.given.insert(id.0, 0);
                }
            }
            Order::Interim { exchange } | Order::Answer { exchange, .. } => {
                let id = ExchangeId(u32::from(exchange) * 2 + 1);
                let content = match order {
                    Order::Answer { end: true, .. } => Content::None,
                    _ => Content::Follows,
                };
                self.with(|c, cx| {
                    if matches!(order, Order::Interim { .. }) {
                        let _ = c.send_interim(cx, id, StatusCode::EARLY_HINTS, &fields);
                        return;
                    }
                    let head = ResponseHead::new(StatusCode::OK, &fields);
                    let _ = c.send_response(cx, id, &head, content);
                });
            }
            Order::Give { exchange, bytes, end, .. } => self.give(exchange, bytes, end),
            Order::Trailers { exchange, .. } => {
                let id = ExchangeId(u32::from(exchange) * 2 + 1);
                let _ = self.with(|c, cx| c.send_trailers(cx, id, &fields));
            }
            Order::Abort { exchange, .. } => {
                let id = ExchangeId(u32::from(exchange) * 2 + 1);
                self.with(|c, cx| c.abort(cx, id));
            }
            Order::Consume { .. } => {
                for (id, bytes) in std::mem::take(&mut self.unconsumed) {
                    self.with(|c, cx| c.consumed(cx, id, bytes));
                }
            }
            Order::ShutDown { .. } => self.with(|c, cx| c.shut_down(cx)),
            Order::Move { .. } | Order::Pass { .. } => {}
        }
    }
}

fuzz_target!(|plan: Plan| {
    let now = Instant::now();
    let mut client = Side::new(Role::Client, &plan, now);
    let mut server = Side::new(Role::Server, &plan, now);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for order in plan.orders.iter().take(300) {
        match order {
            Order::Move { server: false, bytes } => {
                let bytes = usize::from(*bytes).min(up.len());
                server.turn(&up.drain(..bytes).collect::<Vec<_>>());
            }
            Order::Move { server: true, bytes } => {
                let bytes = usize::from(*bytes).min(down.len());
                client.turn(&down.drain(..bytes).collect::<Vec<_>>());
            }
            Order::Pass { milliseconds } => {
                let time = Duration::from_millis(u64::from(*milliseconds) % 200);
                client.now += time;
                server.now += time;
            }
            Order::Ask { .. } => client.order(order),
            Order::Interim { .. } | Order::Answer { .. } => server.order(order),
            Order::Give { server: at_server, .. }
            | Order::Trailers { server: at_server, .. }
            | Order::Abort { server: at_server, .. }
            | Order::Consume { server: at_server }
            | Order::ShutDown { server: at_server } => {
                if *at_server {
                    server.order(order)
                } else {
                    client.order(order)
                }
            }
        }
        client.turn(&[]);
        server.turn(&[]);
        client.output.flush(&mut up).expect("memory takes everything");
        server.output.flush(&mut down).expect("memory takes everything");
        if client.closed || server.closed {
            return;
        }
    }
    for (id, received) in &server.received {
        assert!(*received <= client.given[id]);
    }
});

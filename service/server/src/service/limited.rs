//! Reports of what a limit ends: they are made with the limit's name, at the level that is the program's default.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bolide_eventloop::{Limits as LoopLimits, MioKernel, MioListener, Worker};
use bolide_semantics::End;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;
use crate::limits::EVENTS_PER_SECOND;
use crate::websocket::{
    Kind, Limits as MessageLimits, Options, Owner as Messages, Payload, Socket, WebSocket,
};
use crate::{Request, body_limit, collect};

/// Keeps the limits that are reported at the default level.
#[derive(Debug, Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "bolide::limits" && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Limit(&self.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Limit<'a>(&'a Mutex<Vec<String>>);

impl Visit for Limit<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "limit" {
            self.0.lock().unwrap().push(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

#[derive(Debug)]
struct Deaf;

impl Messages for Deaf {
    fn on_message(&mut self, _: Kind, _: Payload, _: End, _: &mut Socket<'_, '_>) {}
}

/// The limits that are reported while so many connections send these bytes, until all of them have ended.
fn reported(connections: usize, bytes: &[u8]) -> Vec<String> {
    let limits =
        MessageLimits { message_bytes: 10, fragments_count: 2, ..MessageLimits::default() };
    let options = Options::new().limits(limits);
    let router = Router::new()
        .handle_post("/small", body_limit(10, collect(|_, _| "whole")))
        .websocket("/ws", move |request: &mut Request<'_>| {
            WebSocket::accept(request, &options, Deaf)
        });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heard = Heard::default();
    tracing::subscriber::with_default(heard.clone(), || {
        let mut worker = Worker::new(MioKernel::new().unwrap(), LoopLimits::default(), |_| {
            let now = Instant::now();
            HttpService::new(router, Limits::default(), vec![None], SystemTime::now, now)
        });
        worker.listen(MioListener::new(listener.into()).unwrap(), 0).unwrap();
        let clients = (0..connections).map(|_| TcpStream::connect(address).unwrap());
        let clients: Vec<TcpStream> = clients.collect();
        for mut client in &clients {
            client.write_all(bytes).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
        }
        while worker.stats().accepted < connections as u64 || worker.stats().open > 0 {
            worker.step(Some(Duration::from_millis(1))).unwrap();
        }
    });
    let heard = heard.0.lock().unwrap();
    heard.clone()
}

const HANDSHAKE: &[u8] =
    b"GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

#[test]
fn what_a_limit_ends_is_reported_with_the_name_of_the_limit() {
    let long = [b"GET /", &[b'a'; 100_000][..], b" HTTP/1.1\r\nhost: a\r\n\r\n"].concat();
    assert_eq!(reported(1, &long), ["request-line-bytes"]);
    let large = b"POST /small HTTP/1.1\r\nhost: a\r\ncontent-length: 11\r\n\r\n";
    assert_eq!(reported(1, large), ["body-bytes-max"]);
    let message = [HANDSHAKE, &[0x82, 0x80 | 11, 0, 0, 0, 0], &[0; 11]].concat();
    assert_eq!(reported(1, &message), ["message-bytes"]);
    let piece = [0, 0x81, 0, 0, 0, 0, b'x'];
    let fragments = [HANDSHAKE, &[2, 0x81, 0, 0, 0, 0, b'x'], &piece, &piece].concat();
    assert_eq!(reported(1, &fragments), ["fragments-count"]);
}

#[test]
fn an_event_flood_of_limits_is_reported_in_part() {
    let large = b"POST /small HTTP/1.1\r\nhost: a\r\ncontent-length: 11\r\n\r\n";
    let reported = reported(10 * EVENTS_PER_SECOND as usize, large);
    // The clock may have passed a second or two.
    assert!((1..=3 * EVENTS_PER_SECOND as usize).contains(&reported.len()), "{}", reported.len());
}

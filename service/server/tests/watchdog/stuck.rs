//! A handler that doesn't return, until the watchdog has said so.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use bolide_server::{Limits, Router, Server};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const PATIENCE: Duration = Duration::from_secs(30);

/// Hands on what the watchdog says, without the values.
struct Heard(Sender<String>);

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "bolide::watchdog"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        // The test may have ended.
        let _ = self.0.send(message.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[test]
fn a_stuck_handler_is_reported_while_it_is_stuck() {
    let (sender, heard) = mpsc::channel();
    tracing::subscriber::set_global_default(Heard(sender)).unwrap();
    let (let_go, go) = mpsc::channel::<()>();
    let go = std::sync::Arc::new(Mutex::new(go));
    let limits = Limits { long_turn: Duration::from_millis(20), ..Limits::default() };
    let server = Server::new().workers(1).limits(limits).http("127.0.0.1:0");
    let running = server
        .start(move || {
            let go = std::sync::Arc::clone(&go);
            Router::new().get("/stuck", move |_| {
                let went = go.lock().unwrap().recv_timeout(PATIENCE);
                if went.is_ok() { "at last" } else { "never" }
            })
        })
        .unwrap();
    let address = running.addresses()[0].unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /stuck HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let said = heard.recv_timeout(PATIENCE).unwrap();
    assert!(said.starts_with("a worker is stuck in one turn"), "{said}");
    let_go.send(()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("at last"), "{response}");
    let said = heard.recv_timeout(PATIENCE).unwrap();
    assert!(said.contains("was stuck") && said.contains("continues"), "{said}");
    running.shut_down();
    running.join().unwrap();
}

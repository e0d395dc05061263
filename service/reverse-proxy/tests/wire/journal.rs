//! Log lines about upstreams: one line that tells what was wrong.

use std::fmt::{Debug, Write};
use std::sync::{Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::scene::{Behind, Proxy, Vacant};

/// Everything that was said, by level.
static SAID: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

/// Writes down what the proxy says.
struct Listener;

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "bolide::proxy"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        SAID.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns what was said of an upstream.
fn said_of(url: &str) -> Vec<(Level, String)> {
    let of_it = |(_, line): &&(Level, String)| line.contains(url);
    SAID.lock().unwrap().iter().filter(of_it).cloned().collect()
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listener).expect("the only one"));
}

#[test]
fn an_upstream_that_talks_nonsense_is_named_once_in_a_second_with_what_was_wrong() {
    listen();
    let behind = Behind::answering("SSH-2.0-OpenSSH\r\n");
    let proxy = Proxy::to(&[&behind.url()]);
    for _ in 0..2 {
        assert!(proxy.get().starts_with("HTTP/1.1 502"));
    }
    let said = said_of(&behind.url());
    let [(level, line)] = &said[..] else { panic!("one line: {said:?}") };
    assert_eq!(*level, Level::WARN);
    assert!(
        line.starts_with(&format!("upstream {}: its response is not HTTP: ", behind.url())),
        "{line}"
    );
    assert_eq!(proxy.settings.stats()[0].garbage, 2);
}

#[test]
fn an_upstream_that_refuses_is_named_and_so_is_that_it_is_left_alone() {
    listen();
    let vacant = Vacant::new();
    let url = vacant.url();
    let proxy = Proxy::to(&[&url]);
    assert!(proxy.get().starts_with("HTTP/1.1 502"));
    let said = said_of(&url);
    assert_eq!(said.len(), 2, "{said:?}");
    let (refused, left_alone) = (&said[0].1, &said[1].1);
    assert!(refused.contains("no connection: connection refused ("), "{refused}");
    assert!(left_alone.contains("ejected for 1s after 3 consecutive failures"), "{left_alone}");
    assert_eq!(proxy.settings.stats()[0].refused, 3);
}

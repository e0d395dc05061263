//! Log of a service that panics.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::start::{get as request, http2, in_time, start};

/// Keeps the lines of one target.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

/// One line: the values of its fields in their order.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "bolide::tower"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} ", event.metadata().level()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_panic_is_one_line_with_method_path_and_message() {
    let lines = Lines::default();
    // Workers have no subscriber of their own; no other test of this program looks at the log.
    tracing::subscriber::set_global_default(lines.clone()).expect("the first and only one");
    let at_once = async || -> &'static str { panic!("on purpose: at once") };
    let later = async || -> &'static str {
        tokio::task::yield_now().await;
        let number = 7;
        panic!("on purpose: {number}")
    };
    let app =
        Router::new().route("/logged/at-once", get(at_once)).route("/logged/later", get(later));
    let address = start(app, |serve| serve.workers(1)).await;
    let mut client = http2(address).await;
    for (path, said) in
        [("/logged/at-once?a=secret", "on purpose: at once"), ("/logged/later", "on purpose: 7")]
    {
        let response = in_time(client.send_request(request(path))).await.unwrap();
        assert_eq!(response.status(), 500, "{path}");
        let path = path.split('?').next().unwrap();
        let mine: Vec<String> = lines
            .0
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.contains(&format!("path={path:?}")))
            .cloned()
            .collect();
        let [line] = &mine[..] else { panic!("{mine:?}") };
        assert!(line.starts_with("ERROR ") && line.contains("method=GET"), "{line}");
        assert!(line.contains(&format!("the service has panicked: {said}")), "{line}");
        assert!(!line.contains("secret"), "{line}");
    }
}

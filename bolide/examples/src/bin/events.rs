//! Server-sent events: a clock that every client watches.
//!
//! `curl -N localhost:8080/time`

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use futures_util::{Stream, StreamExt};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;

type Ticks = watch::Receiver<u64>;

async fn time(State(ticks): State<Ticks>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = WatchStream::new(ticks)
        .map(|tick| Ok(Event::default().event("tick").data(tick.to_string())));
    Sse::new(events).keep_alive(KeepAlive::default())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let (clock, ticks) = watch::channel(0);
    tokio::spawn(async move {
        let started = Instant::now();
        let mut interval = tokio::time::interval(Duration::from_millis(100));
        loop {
            interval.tick().await;
            clock.send_replace(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
        }
    });
    let app = Router::new().route("/time", get(time)).with_state(ticks);
    let listener = bolide_examples::listen().await?;
    bolide::tower::serve(listener, app).await
}

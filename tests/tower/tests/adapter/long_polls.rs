//! Ten thousand exchanges that wait at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use tokio::sync::watch;

use crate::start::{get as request, http2, in_time, read, start};

const CONNECTIONS: usize = 100;
const POLLS_EACH: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_long_polls_wait_and_are_all_answered() {
    let waiting = Arc::new(AtomicUsize::new(0));
    let (news, told) = watch::channel("nothing yet");
    let counter = Arc::clone(&waiting);
    let (full, mut all_wait) = watch::channel(());
    let full = Arc::new(full);
    let poll = async move || {
        let mut told = told.clone();
        if counter.fetch_add(1, Ordering::SeqCst) + 1 == CONNECTIONS * POLLS_EACH {
            full.send_replace(());
        }
        told.changed().await.unwrap();
        *told.borrow()
    };
    let address = start(Router::new().route("/news", get(poll)), |serve| serve).await;
    let mut asked = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = http2(address).await;
        for _ in 0..POLLS_EACH {
            asked.push(tokio::spawn(client.send_request(request("/news"))));
        }
    }
    in_time(all_wait.changed()).await.unwrap();
    assert_eq!(waiting.load(Ordering::SeqCst), CONNECTIONS * POLLS_EACH);
    news.send_replace("news");
    for one in asked {
        let response = in_time(one).await.unwrap().unwrap();
        assert_eq!(read(response).await, (200, "news".to_owned()));
    }
}

//! Wakes from everywhere, and none of them lost.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use tokio::sync::mpsc;

use crate::start::{get as request, http2, in_time, read, start};

const THREADS: usize = 3;
const EXCHANGES: usize = 60;
const MESSAGES: u64 = 300;

#[tokio::test]
async fn wakes_from_other_threads_are_all_seen() {
    let (seat, seats) = std::sync::mpsc::channel::<mpsc::Sender<u64>>();
    let seats = Arc::new(Mutex::new(seats));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let seats = Arc::clone(&seats);
            std::thread::spawn(move || {
                loop {
                    let next = seats.lock().unwrap().recv();
                    let Ok(sender) = next else { return };
                    for number in 1..=MESSAGES {
                        // The channel is full most of the time: both sides wait for each other.
                        sender.blocking_send(number).expect("the handler listens");
                    }
                }
            })
        })
        .collect();
    let sum = async move || {
        let (sender, mut receiver) = mpsc::channel(1);
        seat.send(sender).unwrap();
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            sum += number;
        }
        sum.to_string()
    };
    let address = start(Router::new().route("/sum", get(sum)), |serve| serve).await;
    let mut clients = [http2(address).await, http2(address).await, http2(address).await];
    let mut asked = Vec::new();
    for exchange in 0..EXCHANGES {
        asked.push(tokio::spawn(clients[exchange % 3].send_request(request("/sum"))));
    }
    let expected = (MESSAGES * (MESSAGES + 1) / 2).to_string();
    for one in asked {
        let response = in_time(one).await.unwrap().unwrap();
        assert_eq!(read(response).await, (200, expected.clone()));
    }
    drop(clients);
    drop(threads);
}

#[tokio::test]
async fn a_future_that_wakes_itself_goes_on_and_lets_others_pass() {
    let spin = async |Path(turns): Path<usize>| {
        for _ in 0..turns {
            let mut yielded = false;
            std::future::poll_fn(|cx| {
                if std::mem::replace(&mut yielded, true) {
                    return std::task::Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                std::task::Poll::Pending
            })
            .await;
        }
        turns.to_string()
    };
    let app = Router::new().route("/spin/{turns}", get(spin)).route("/ping", get(async || "pong"));
    let address = start(app, |serve| serve.workers(1)).await;
    let mut client = http2(address).await;
    for turns in [0, 1, 7, 8, 9, 1000] {
        let response = in_time(client.send_request(request(&format!("/spin/{turns}")))).await;
        assert_eq!(read(response.unwrap()).await, (200, turns.to_string()));
    }
    let long = tokio::spawn(client.send_request(request("/spin/5000000")));
    let response = in_time(client.send_request(request("/ping"))).await.unwrap();
    assert_eq!(read(response).await, (200, "pong".to_owned()));
    assert!(!long.is_finished(), "the other exchange had its turn in between");
    long.abort();
}

#[tokio::test]
async fn timers_of_many_exchanges_run_at_once() {
    let nap = async |Path(milliseconds): Path<u64>| {
        tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
        "rested"
    };
    let address = start(Router::new().route("/nap/{n}", get(nap)), |serve| serve).await;
    let mut client = http2(address).await;
    let naps: Vec<_> = (0..90)
        .map(|n| tokio::spawn(client.send_request(request(&format!("/nap/{}", n % 10)))))
        .collect();
    for one in naps {
        let response = in_time(one).await.unwrap().unwrap();
        assert_eq!(read(response).await, (200, "rested".to_owned()));
    }
}

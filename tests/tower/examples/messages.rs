//! A WebSocket client of tokio-tungstenite on one thread, to compare `bolide load` with: each connection sends a message when the
//! one before has come back.

use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use tokio::task::JoinSet;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

/// How many messages came back on one connection within a time.
async fn converse(url: String, bytes: usize, time: Duration) -> Result<u64, String> {
    let (mut socket, _) = connect_async(url).await.map_err(|error| error.to_string())?;
    let (end, mut count) = (Instant::now() + time, 0);
    while Instant::now() < end {
        let message = Message::binary(vec![7; bytes]);
        socket.send(message).await.map_err(|error| error.to_string())?;
        match socket.next().await {
            Some(Ok(message)) if message.len() == bytes => count += 1,
            other => return Err(format!("not what was sent: {other:?}")),
        }
    }
    Ok(count)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, bytes, seconds] = &arguments[..] else {
        return Err("usage: messages URL CONNECTIONS BYTES SECONDS".into());
    };
    let (bytes, time) = (bytes.parse()?, Duration::from_secs(seconds.parse()?));
    let mut tasks = JoinSet::new();
    for _ in 0..connections.parse::<usize>()? {
        tasks.spawn(converse(url.clone(), bytes, time));
    }
    let mut count = 0;
    while let Some(done) = tasks.join_next().await {
        count += done??;
    }
    writeln!(io::stdout(), "{count} messages")?;
    Ok(())
}

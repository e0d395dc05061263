//! The bare handler API, without tower: what a service costs beyond it can be measured against this.
//!
//! `curl localhost:8080/ping`, `curl -d '[1, 2, 3]' localhost:8080/sum`

use std::io::{self, Write};

use bolide::server::{Json, JsonError, body_limit, read_json};
use bolide::{Response, Router, Server, collect};

/// The largest body that goes back, in bytes.
const ECHO_BYTES_MAX: u64 = 1024 * 1024;

fn routes() -> Router {
    let echo = collect(|_, body| Response::from(body));
    let sum = collect(|_, body| -> Result<_, JsonError> {
        Ok(Json(read_json::<Vec<f64>>(&body)?.iter().sum::<f64>()))
    });
    Router::new()
        .get("/ping", |_| "pong")
        .handle_post("/echo", body_limit(ECHO_BYTES_MAX, echo))
        .handle_post("/sum", sum)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let running = Server::new().http(&address).start(routes)?;
    for address in running.addresses().into_iter().flatten() {
        writeln!(io::stdout(), "listening on http://{address}")?;
    }
    running.join()?;
    Ok(())
}

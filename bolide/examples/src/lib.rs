//! Applications on Bolide. Each is one file under `src/bin` and starts with one command, such as
//! `cargo run -p bolide-examples --bin axum`; an address may follow after `--`.

pub mod grpc;

use std::io::{self, Write};

use tokio::net::TcpListener;

/// Listens on the address that was given as the first argument, else on port 8080 of this machine,
/// and says where.
///
/// # Errors
///
/// When the address can't be listened on.
pub async fn listen() -> io::Result<TcpListener> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(&address)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))?;
    writeln!(io::stdout(), "listening on http://{}", listener.local_addr()?)?;
    Ok(listener)
}

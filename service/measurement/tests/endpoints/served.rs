//! A server with the endpoints, and ways to ask it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bolide_measurement::Settings;
use bolide_server::{Router, Running, Server};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::{Error, HandshakeError};

pub(crate) type Socket = tungstenite::WebSocket<TcpStream>;

/// A server on a free port, shut down when it is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    running: Option<Running>,
}

impl Served {
    pub(crate) fn new(settings: impl Into<Settings>) -> Self {
        Self::on(Server::new(), settings)
    }

    /// On a server that is set up so far.
    pub(crate) fn on(server: Server, settings: impl Into<Settings>) -> Self {
        let settings = settings.into();
        let running = server
            .workers(1)
            .drain(Duration::from_secs(5))
            .http("127.0.0.1:0")
            .start(move || bolide_measurement::routes_with(Router::new(), &settings))
            .expect("a free port");
        let address = running.addresses()[0].expect("an address");
        Self { address, running: Some(running) }
    }

    pub(crate) fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream
    }

    /// A WebSocket connection, or the status and text of its refusal.
    pub(crate) fn websocket(
        &self,
        path: &str,
        protocol: Option<&str>,
    ) -> Result<Socket, (u16, String)> {
        let url = format!("ws://{}{path}", self.address);
        let mut request = url.into_client_request().expect("a URL");
        if let Some(protocol) = protocol {
            let value = protocol.parse().expect("a value");
            request.headers_mut().insert("sec-websocket-protocol", value);
        }
        match tungstenite::client(request, self.stream()) {
            Ok((socket, response)) => {
                let chosen = response.headers().get("sec-websocket-protocol");
                assert_eq!(chosen.and_then(|name| name.to_str().ok()), protocol);
                Ok(socket)
            }
            Err(HandshakeError::Failure(Error::Http(response))) => {
                let text = response.body().clone().unwrap_or_default();
                Err((response.status().as_u16(), String::from_utf8_lossy(&text).into_owned()))
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// The response to a request, head and body, up to so many bytes.
    pub(crate) fn ask(&self, request: &str, bytes_max: u64) -> String {
        let mut stream = self.stream();
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut response = Vec::new();
        stream.take(bytes_max).read_to_end(&mut response).expect("a response in time");
        String::from_utf8_lossy(&response).into_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down();
            let _ = running.join();
        }
    }
}

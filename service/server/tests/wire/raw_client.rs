//! A client that writes bytes and reads them back, for tests of what a server says on the wire.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bolide_server::{Router, Running, Server};

/// A server on a free port, shut down when it is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    running: Option<Running>,
}

impl Served {
    pub(crate) fn new(routes: impl Fn() -> Router + Send + Sync + 'static) -> Self {
        Self::with(Server::new(), routes)
    }

    pub(crate) fn with(
        server: Server,
        routes: impl Fn() -> Router + Send + Sync + 'static,
    ) -> Self {
        let running = server
            .workers(1)
            .drain(Duration::from_secs(5))
            .http("127.0.0.1:0")
            .start(routes)
            .expect("a free port");
        let address = running.addresses()[0].expect("an address");
        Self { address, running: Some(running) }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        Client { stream, unread: Vec::new() }
    }

    /// One request on a connection of its own: everything until the server closes.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut client = self.connect();
        client.send(request.as_bytes());
        String::from_utf8_lossy(&client.rest()).into_owned()
    }

    /// Gives the workers other limits.
    pub(crate) fn set_limits(&self, limits: bolide_server::Limits) {
        self.running.as_ref().expect("it runs").set_limits(limits);
    }

    pub(crate) fn reload(
        &self,
        routes: impl Fn() -> Router + Send + Sync + 'static,
    ) -> Result<(), bolide_server::Error> {
        self.running.as_ref().expect("it runs").reload(routes)
    }

    pub(crate) fn shut_down(mut self) -> bolide_server::Stats {
        let running = self.running.take().expect("it runs");
        running.shut_down();
        running.join().expect("no worker failed")
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

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

/// A response with the body that its Content-Length announced.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Closes by a reset: after an orderly close the server may go on with its response.
    pub(crate) fn abort(self) {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))
            .expect("an option of TCP");
    }

    fn fill(&mut self) -> usize {
        let mut bytes = [0; 65_536];
        let count = self.stream.read(&mut bytes).expect("a response in time");
        self.unread.extend_from_slice(&bytes[..count]);
        count
    }

    /// Reads up to and including `mark`.
    pub(crate) fn until(&mut self, mark: &str) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.unread).into_owned();
            if let Some(at) = text.find(mark) {
                let taken: Vec<u8> = self.unread.drain(..at + mark.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            assert!(self.fill() > 0, "the server closed before `{mark}`: {text:?}");
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            assert!(self.fill() > 0, "the server closed after {} of {count}", self.unread.len());
        }
        self.unread.drain(..count).collect()
    }

    /// The next response.
    pub(crate) fn answer(&mut self) -> RawResponse {
        let head = self.until("\r\n\r\n");
        let status = head[9..12].parse().expect("a status");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        let body = self.take(length);
        RawResponse { status, head, body }
    }

    /// Everything until the server closes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill() > 0 {}
        std::mem::take(&mut self.unread)
    }
}

//! A server of a directory made for one test, and a client that writes bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bolide_server::{Limits, Router, Running, Server, Stats};
use bolide_static_files::StaticFiles;
use tempfile::TempDir;

/// A server, shut down when it is dropped.
pub(crate) struct Site {
    address: SocketAddr,
    running: Option<Running>,
    directory: TempDir,
}

impl Site {
    /// Serves these files as they are by default.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self::with(files, |site| site)
    }

    /// Serves these files, with options.
    pub(crate) fn with(
        files: &[(&str, &str)],
        options: impl FnOnce(StaticFiles) -> StaticFiles,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, content) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a file has a directory"))
                .expect("a directory");
            fs::write(path, content).expect("a file");
        }
        let files = options(StaticFiles::new(directory.path()).expect("a root"));
        Self::serving(directory, files)
    }

    /// Serves what these serve, and `/ping`.
    pub(crate) fn serving(directory: TempDir, files: StaticFiles) -> Self {
        Self::serving_within(directory, files, Limits::default())
    }

    /// The same within other limits.
    pub(crate) fn serving_within(directory: TempDir, files: StaticFiles, limits: Limits) -> Self {
        let running = Server::new()
            .workers(1)
            .limits(limits)
            .drain(Duration::from_secs(5))
            .http("127.0.0.1:0")
            .start(move || files.routes(Router::new().get("/ping", |_| "pong")))
            .expect("a free port");
        let address = running.addresses()[0].expect("an address");
        Self { address, running: Some(running), directory }
    }

    /// Begins to end the server: what is under way has some seconds.
    pub(crate) fn shut_down(&self) {
        self.running.iter().for_each(Running::shut_down);
    }

    /// Returns what was counted until the end.
    pub(crate) fn counted(mut self) -> Stats {
        self.shut_down();
        self.running.take().expect("it runs").join().expect("it ends")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::of(self.address)
    }

    pub(crate) fn get(&self, path: &str) -> RawResponse {
        self.get_with(path, &[])
    }

    /// GET with these field lines.
    pub(crate) fn get_with(&self, path: &str, lines: &[&str]) -> RawResponse {
        self.connect().ask("GET", path, lines)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down();
            drop(running.join());
        }
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// True if all came that was announced.
    pub(crate) complete: bool,
}

impl RawResponse {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

impl Client {
    pub(crate) fn of(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        Self { stream, unread: Vec::new() }
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, lines: &[&str]) {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\n");
        for line in lines {
            request.push_str(line);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        self.stream.write_all(request.as_bytes()).expect("the server reads");
    }

    pub(crate) fn ask(&mut self, method: &str, path: &str, lines: &[&str]) -> RawResponse {
        self.send(method, path, lines);
        self.answer(method == "HEAD")
    }

    /// Reads more; whether there was any.
    fn fill(&mut self) -> bool {
        let mut bytes = [0; 65_536];
        // A reset is an end, too.
        let count = match self.stream.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("no response in time: {:?}", String::from_utf8_lossy(&self.unread))
            }
            Err(_) => 0,
        };
        self.unread.extend_from_slice(&bytes[..count]);
        count > 0
    }

    /// The head of the next response.
    pub(crate) fn head(&mut self) -> (u16, String) {
        loop {
            let end = self.unread.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head: Vec<u8> = self.unread.drain(..end + 4).collect();
                let head = String::from_utf8(head).expect("a head is text");
                return (head[9..12].parse().expect("a status"), head);
            }
            assert!(self.fill(), "closed before a response: {:?}", self.unread);
        }
    }

    /// Everything until the server closes or resets.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.unread)
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            assert!(self.fill(), "closed after {} of {count}", self.unread.len());
        }
        self.unread.drain(..count).collect()
    }

    pub(crate) fn answer(&mut self, no_body: bool) -> RawResponse {
        let (status, head) = self.head();
        let mut response = RawResponse { status, head, body: Vec::new(), complete: true };
        if no_body || matches!(status, 304 | 204) {
            return response;
        }
        let length = response.field("content-length").expect("a length").parse().expect("a number");
        while self.unread.len() < length {
            if !self.fill() {
                response.complete = false;
                response.body = std::mem::take(&mut self.unread);
                return response;
            }
        }
        response.body = self.unread.drain(..length).collect();
        response
    }
}

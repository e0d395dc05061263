//! Parties of the tests: a client, the proxy, and upstreams that follow a script.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bolide_reverse_proxy::{ProxyLimits, ProxySettings, ReverseProxy, Upstream};
use bolide_server::{Router, Running, Server};
use rustix::net::{self, AddressFamily, SocketType};

/// How long anything may take that is expected to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// One end of a connection, read and written as text.
pub(crate) struct Talk<S = TcpStream> {
    pub(crate) stream: S,
    unread: Vec<u8>,
}

impl Talk {
    /// Closes by a reset: after an orderly close the proxy may wait for a response.
    pub(crate) fn abort(self) {
        self.will_abort();
    }

    /// Resets the connection when it is dropped.
    pub(crate) fn will_abort(&self) {
        net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))
            .expect("an option of TCP");
    }
}

impl<S: Read + Write> Talk<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, unread: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("the other end reads");
    }

    /// Reads more; `false` at the end.
    fn fill(&mut self) -> bool {
        let mut bytes = [0; 65_536];
        let count = match self.stream.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("neither bytes nor an end within {PATIENCE:?}")
            }
            // A reset is an end, too.
            Err(_) => 0,
        };
        self.unread.extend_from_slice(&bytes[..count]);
        count > 0
    }

    /// Reads up to and including `mark`; what there is when the other end closes before.
    pub(crate) fn until(&mut self, mark: &str) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.unread).into_owned();
            if let Some(at) = text.find(mark) {
                let taken: Vec<u8> = self.unread.drain(..at + mark.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            if !self.fill() {
                return String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned();
            }
        }
    }

    /// The next head.
    pub(crate) fn head(&mut self) -> String {
        self.until("\r\n\r\n")
    }

    /// So many bytes, or what comes before the end.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count && self.fill() {}
        let count = count.min(self.unread.len());
        self.unread.drain(..count).collect()
    }

    /// The next bytes, which stay to be read.
    pub(crate) fn peek(&mut self, count: usize) -> &[u8] {
        while self.unread.len() < count && self.fill() {}
        &self.unread[..count.min(self.unread.len())]
    }

    /// Everything until the other end closes.
    pub(crate) fn rest(&mut self) -> String {
        while self.fill() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.unread)).into_owned()
    }

    /// The next message with its body, by its `content-length`.
    pub(crate) fn message(&mut self) -> String {
        let head = self.head();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        head + &String::from_utf8_lossy(&self.take(length))
    }
}

impl Talk {
    /// Sends so many bytes while it takes as many that come; both are whole MiB.
    pub(crate) fn exchange(&mut self, bytes: usize) {
        let early = std::mem::take(&mut self.unread).len();
        let piece = vec![b'x'; 1 << 20];
        let stream = &self.stream;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..bytes / piece.len() {
                    (&mut &*stream).write_all(&piece).expect("the other end reads");
                }
            });
            let rest = (bytes - early) as u64;
            let came = std::io::copy(&mut stream.take(rest), &mut std::io::sink());
            assert_eq!(came.expect("the other end writes"), rest);
        });
    }
}

/// A server behind the proxy: each of its connections follows the script.
pub(crate) struct Behind {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Behind {
    /// `script` gets each connection with its number, from 0.
    pub(crate) fn new(script: impl Fn(&mut Talk, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let (script, count) = (Arc::new(script), Arc::clone(&connections));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                let (script, number) = (Arc::clone(&script), count.fetch_add(1, Ordering::SeqCst));
                std::thread::spawn(move || script(&mut Talk::new(stream), number));
            }
        });
        Self { address, connections }
    }

    /// Answers each request of each connection alike.
    pub(crate) fn answering(response: &'static str) -> Self {
        Self::new(move |talk, _| {
            while !talk.head().is_empty() {
                talk.send(response);
            }
        })
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// An address that refuses connections, and that the system gives to no other socket meanwhile.
pub(crate) struct Vacant(OwnedFd);

impl Vacant {
    pub(crate) fn new() -> Self {
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        Self(socket)
    }

    pub(crate) fn url(&self) -> String {
        let bound = net::getsockname(&self.0).expect("an address");
        format!("http://{}", SocketAddr::try_from(bound).expect("one of the internet"))
    }
}

/// A proxy that runs, with one worker.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    pub(crate) settings: ProxySettings,
    running: Option<Running>,
}

impl Proxy {
    pub(crate) fn to(urls: &[&str]) -> Self {
        Self::with(settings(urls))
    }

    pub(crate) fn with(settings: ProxySettings) -> Self {
        Self::on(Server::new(), settings)
    }

    /// On a server that is set up so far.
    pub(crate) fn on(server: Server, settings: ProxySettings) -> Self {
        let routed = settings.clone();
        let running = server
            .workers(1)
            .drain(Duration::from_secs(5))
            .http("127.0.0.1:0")
            .start(move || Router::new().fallback(ReverseProxy::new(&routed)))
            .expect("a free port");
        let address = running.addresses()[0].expect("an address");
        Self { address, settings, running: Some(running) }
    }

    pub(crate) fn limited(urls: &[&str], limits: ProxyLimits) -> Self {
        Self::with(settings(urls).limits(limits))
    }

    pub(crate) fn connect(&self) -> Talk {
        let stream = TcpStream::connect(self.address).expect("the proxy listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Talk::new(stream)
    }

    /// One request on a connection of its own, and its response.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut talk = self.connect();
        talk.send(request);
        talk.message()
    }

    pub(crate) fn get(&self) -> String {
        self.ask("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    }

    /// Another proxy answers from here on, as after SIGHUP.
    pub(crate) fn replace(&mut self, settings: ProxySettings) {
        let mut all = [settings];
        ProxySettings::take_over(&mut all, std::slice::from_ref(&self.settings));
        let [settings] = all;
        let routed = settings.clone();
        let running = self.running.as_ref().expect("it runs");
        running
            .reload(move || Router::new().fallback(ReverseProxy::new(&routed)))
            .expect("routes that can be");
        self.settings = settings;
    }

    pub(crate) fn shut_down(mut self) -> bolide_server::Stats {
        let running = self.running.take().expect("it runs");
        running.shut_down();
        running.join().expect("no worker failed")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shut_down();
            let stats = running.join().expect("no worker failed");
            assert_eq!(stats.panics, 0);
        }
    }
}

pub(crate) fn settings(urls: &[&str]) -> ProxySettings {
    let upstreams = urls.iter().map(|url| Upstream::parse(url).expect("an upstream")).collect();
    ProxySettings::new(upstreams).expect("settings")
}

/// The lines of a head, without those that differ from run to run, in order.
pub(crate) fn lines(head: &str) -> Vec<&str> {
    head.lines().filter(|line| !line.is_empty() && !line.starts_with("date: ")).collect()
}

//! quiche in both roles, for the interoperation tests.
//!
//!     quiche-peer client ADDRESS
//!     quiche-peer serve CERTIFICATE KEY
//!
//! The client prints a line `ok: WAY` for each way, and ends with 101 at the first mistake. The server answers GET with `pong` and
//! echoes what is posted; it prints `port: N` and ends with its standard input.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use quiche::h3::{Event, Header, NameValue};
use quiche::{Connection, ConnectionId, RecvInfo};

const SIZES: &[usize] = &[0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 1 << 20];
const PATIENCE: Duration = Duration::from_secs(60);
const DATAGRAM_BYTES: usize = 1350;
const NAME_BYTES: usize = 16;
const WINDOW_BYTES: u64 = 1 << 20;

/// A message that comes, and what is to be sent on the same stream.
#[derive(Default)]
struct Stream {
    head: Vec<Header>,
    body: Vec<u8>,
    is_complete: bool,
    response: Option<Vec<Header>>,
    outgoing: VecDeque<u8>,
    ends: bool,
}

impl Stream {
    fn field(&self, name: &str) -> String {
        let found = self.head.iter().find(|field| field.name() == name.as_bytes());
        String::from_utf8_lossy(found.map_or(b"", |field| field.value())).into_owned()
    }
}

/// A connection, and HTTP/3 on it once the handshake is complete.
struct Peer {
    quic: Connection,
    h3: Option<quiche::h3::Connection>,
    streams: HashMap<u64, Stream>,
}

impl Peer {
    fn new(quic: Connection) -> Self {
        Self { quic, h3: None, streams: HashMap::new() }
    }

    fn receive(&mut self, datagram: &mut [u8], from: SocketAddr, to: SocketAddr) {
        // What is wrong with it ends the connection, which says so.
        let _ = self.quic.recv(datagram, RecvInfo { from, to });
        if self.quic.is_established() && self.h3.is_none() {
            let settings = quiche::h3::Config::new().unwrap();
            let begun = quiche::h3::Connection::with_transport(&mut self.quic, &settings);
            self.h3 = Some(begun.unwrap());
        }
    }

    /// Takes what has come. Returns the streams whose messages are complete.
    fn poll(&mut self) -> Vec<u64> {
        let mut complete = Vec::new();
        let Some(h3) = &mut self.h3 else { return complete };
        loop {
            let (id, event) = match h3.poll(&mut self.quic) {
                Ok(seen) => seen,
                Err(quiche::h3::Error::Done) => return complete,
                Err(error) => panic!("{error}"),
            };
            let stream = self.streams.entry(id).or_default();
            match event {
                Event::Headers { list, .. } => stream.head = list,
                Event::Data => {
                    let mut piece = [0; 65_536];
                    while let Ok(length) = h3.recv_body(&mut self.quic, id, &mut piece) {
                        stream.body.extend_from_slice(&piece[..length]);
                    }
                }
                Event::Finished => {
                    stream.is_complete = true;
                    complete.push(id);
                }
                Event::Reset(code) => panic!("stream {id} was reset: {code}"),
                Event::PriorityUpdate | Event::GoAway => {}
            }
        }
    }

    /// Sends as much of the bodies as there is room for, and all datagrams.
    fn flush(&mut self, socket: &UdpSocket) {
        if let Some(h3) = &mut self.h3 {
            for (id, stream) in &mut self.streams {
                if let Some(head) = &stream.response {
                    match h3.send_response(&mut self.quic, *id, head, false) {
                        Ok(()) => stream.response = None,
                        Err(quiche::h3::Error::StreamBlocked) => continue,
                        Err(error) => panic!("{error}"),
                    }
                }
                while stream.ends {
                    let piece = stream.outgoing.make_contiguous();
                    let length = piece.len();
                    match h3.send_body(&mut self.quic, *id, piece, true) {
                        Ok(sent) => {
                            stream.outgoing.drain(..sent);
                            stream.ends = sent < length;
                        }
                        Err(quiche::h3::Error::Done) => break,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
        let mut datagram = [0; DATAGRAM_BYTES];
        while let Ok((length, info)) = self.quic.send(&mut datagram) {
            socket.send_to(&datagram[..length], info.to).unwrap();
        }
    }
}

fn settings() -> quiche::Config {
    let mut settings = quiche::Config::new(quiche::PROTOCOL_VERSION).unwrap();
    settings.set_application_protos(quiche::h3::APPLICATION_PROTOCOL).unwrap();
    settings.set_max_idle_timeout(PATIENCE.as_millis() as u64);
    settings.set_max_recv_udp_payload_size(DATAGRAM_BYTES);
    settings.set_max_send_udp_payload_size(DATAGRAM_BYTES);
    settings.set_initial_max_data(10 * WINDOW_BYTES);
    settings.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    settings.set_initial_max_stream_data_bidi_remote(WINDOW_BYTES);
    settings.set_initial_max_stream_data_uni(WINDOW_BYTES);
    settings.set_initial_max_streams_bidi(100);
    settings.set_initial_max_streams_uni(100);
    settings
}

fn header((name, value): (&str, &str)) -> Header {
    Header::new(name.as_bytes(), value.as_bytes())
}

/// A name for a connection: they follow each other.
fn next_name(last: &mut u64) -> ConnectionId<'static> {
    *last += 1;
    ConnectionId::from_vec([last.to_be_bytes(); 2].concat())
}

/// Waits for a datagram, as long as the connections allow.
fn wait(
    socket: &UdpSocket,
    longest: Option<Duration>,
    buffer: &mut [u8],
) -> Option<(usize, SocketAddr)> {
    let longest = longest.unwrap_or(PATIENCE).clamp(Duration::from_millis(1), PATIENCE);
    socket.set_read_timeout(Some(longest)).unwrap();
    match socket.recv_from(buffer) {
        Ok(came) => Some(came),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(error) => panic!("{error}"),
    }
}

/// A request, and the response that has to come back: the status and the content.
struct Exchange<'a> {
    method: &'a str,
    path: String,
    body: Option<Vec<u8>>,
    status: &'a str,
    content: Vec<u8>,
}

struct Client {
    socket: UdpSocket,
    local: SocketAddr,
    peer: Peer,
}

impl Client {
    fn connect(to: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = socket.local_addr().unwrap();
        let mut settings = settings();
        settings.verify_peer(false);
        let name = next_name(&mut 0);
        let quic = quiche::connect(Some("localhost"), &name, local, to, &mut settings).unwrap();
        let mut client = Self { socket, local, peer: Peer::new(quic) };
        client.run(|peer| peer.h3.is_some());
        client
    }

    fn run(&mut self, done: impl Fn(&Peer) -> bool) {
        let (mut buffer, until) = ([0; 65_536], Instant::now() + PATIENCE);
        loop {
            self.peer.poll();
            self.peer.flush(&self.socket);
            if done(&self.peer) {
                return;
            }
            assert!(!self.peer.quic.is_closed(), "closed: {:?}", self.peer.quic.peer_error());
            assert!(Instant::now() < until, "it takes too long");
            match wait(&self.socket, self.peer.quic.timeout(), &mut buffer) {
                Some((length, from)) => self.peer.receive(&mut buffer[..length], from, self.local),
                None => self.peer.quic.on_timeout(),
            }
        }
    }

    /// Makes exchanges, all at once.
    fn exchange(&mut self, exchanges: &[Exchange<'_>]) {
        // What allows as many streams may be on its way.
        self.run(|peer| peer.quic.peer_streams_left_bidi() >= exchanges.len() as u64);
        let mut begun = Vec::new();
        for exchange in exchanges {
            let head = [
                (":method", exchange.method),
                (":scheme", "https"),
                (":authority", "localhost"),
                (":path", &exchange.path),
                ("user-agent", "quiche"),
            ]
            .map(header);
            let h3 = self.peer.h3.as_mut().unwrap();
            let body = exchange.body.as_ref();
            let id = h3.send_request(&mut self.peer.quic, &head, body.is_none()).unwrap();
            let outgoing = body.into_iter().flatten().copied().collect();
            let stream = Stream { outgoing, ends: body.is_some(), ..Stream::default() };
            self.peer.streams.insert(id, stream);
            begun.push(id);
        }
        self.run(|peer| begun.iter().all(|id| peer.streams[id].is_complete));
        for (id, exchange) in begun.iter().zip(exchanges) {
            let stream = self.peer.streams.remove(id).unwrap();
            let asked = format!("{} {}", exchange.method, exchange.path);
            assert_eq!(stream.field(":status"), exchange.status, "{asked}");
            assert!(stream.body == exchange.content, "{asked}: {} bytes", stream.body.len());
        }
    }
}

fn get(path: &str, content: &[u8]) -> Exchange<'static> {
    let (path, content) = (path.to_owned(), content.to_vec());
    Exchange { method: "GET", path, body: None, status: "200", content }
}

fn client(to: SocketAddr) {
    let mut client = Client::connect(to);
    client.exchange(&[get("/ping", b"pong")]);
    println!("ok: ping");
    for size in SIZES {
        let content: Vec<u8> = (0..*size).map(|at| (at * 7 % 251) as u8).collect();
        let (path, body) = ("/echo".to_owned(), Some(content.clone()));
        client.exchange(&[Exchange { method: "POST", path, body, status: "200", content }]);
    }
    println!("ok: bodies");
    let at_once: Vec<_> =
        (1000..1090).map(|size| get(&format!("/echo?size={size}"), &vec![b'x'; size])).collect();
    client.exchange(&at_once);
    println!("ok: at once");
    let head = Exchange { method: "HEAD", ..get("/echo?size=100000", b"") };
    client.exchange(&[head]);
    client.peer.quic.close(true, 0x100, b"").unwrap();
    client.run(|peer| peer.quic.is_draining() || peer.quic.is_closed());
    println!("ok: head");
}

fn serve(certificate: &str, key: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let local = socket.local_addr().unwrap();
    let mut settings = settings();
    settings.load_cert_chain_from_pem_file(certificate).unwrap();
    settings.load_priv_key_from_pem_file(key).unwrap();
    println!("port: {}", local.port());
    let (mut peers, mut names, mut last) = (Vec::<Peer>::new(), HashMap::new(), 0);
    let mut buffer = [0; 65_536];
    loop {
        let longest = peers.iter().filter_map(|peer| peer.quic.timeout()).min();
        if let Some((length, from)) = wait(&socket, longest, &mut buffer) {
            let datagram = &mut buffer[..length];
            let Ok(header) = quiche::Header::from_slice(datagram, NAME_BYTES) else { continue };
            // The client's name for the connection is known by its first packets alone.
            if header.ty == quiche::Type::Initial && !names.contains_key(&header.dcid) {
                let name = next_name(&mut last);
                let quic = quiche::accept(&name, None, local, from, &mut settings).unwrap();
                names.insert(name, peers.len());
                names.insert(header.dcid.clone(), peers.len());
                peers.push(Peer::new(quic));
            }
            if let Some(peer) = names.get(&header.dcid) {
                peers[*peer].receive(datagram, from, local);
            }
        } else {
            peers.iter_mut().for_each(|peer| peer.quic.on_timeout());
        }
        for peer in &mut peers {
            for id in peer.poll() {
                respond(peer, id);
            }
            peer.flush(&socket);
        }
    }
}

fn respond(peer: &mut Peer, id: u64) {
    let stream = peer.streams.get_mut(&id).unwrap();
    let content = match stream.field(":method").as_str() {
        "GET" => b"pong".to_vec(),
        _ => std::mem::take(&mut stream.body),
    };
    stream.outgoing = content.into();
    stream.ends = true;
    let head = [(":status", "200"), ("server", "quiche")];
    stream.response = Some(head.map(header).to_vec());
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["client", address] => client(address.parse().unwrap()),
        ["serve", certificate, key] => {
            std::thread::spawn(|| {
                let _ = std::io::stdin().read_to_end(&mut Vec::new());
                std::process::exit(0);
            });
            serve(certificate, key);
        }
        _ => panic!("quiche-peer client ADDRESS | serve CERTIFICATE KEY"),
    }
}

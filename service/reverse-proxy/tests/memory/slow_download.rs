//! A client that offers a window of 2 GiB and reads slowly, over HTTP/2. Everything is in this process: client,
//! proxy and upstream.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bolide_reverse_proxy::{ProxySettings, ReverseProxy, Upstream};
use bolide_server::{BodyStream, Bytes, Pull, Response, Router, Running, Server};

/// How much is downloaded.
const LENGTH: u64 = 256 << 20;

/// What the process may grow by meanwhile, in bytes: what the exchange holds in the proxy, and what the upstream
/// and the test have themselves.
const GROWTH_BYTES_MAX: u64 = 4 << 20;

/// So many bytes that lie in memory anyway.
#[derive(Debug)]
struct Zeros(u64);

impl BodyStream for Zeros {
    fn pull(&mut self, room: usize) -> Pull {
        static BLOCK: [u8; 65_536] = [0; 65_536];
        let count = (BLOCK.len() as u64).min(room as u64).min(self.0);
        if count == 0 {
            return Pull::End;
        }
        self.0 -= count;
        Pull::Data(Bytes::from_static(&BLOCK[..count as usize]))
    }
}

fn start(router: impl Fn() -> Router + Send + Sync + 'static) -> (Running, SocketAddr) {
    let server = Server::new().workers(1).drain(Duration::ZERO).http("127.0.0.1:0");
    let running = server.start(router).expect("a free port");
    let address = running.addresses()[0].expect("an address");
    (running, address)
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    let kilobytes = line.trim().trim_end_matches(" kB").trim().parse::<u64>();
    kilobytes.expect("a number") * 1024
}

/// Downloads over HTTP/2 with the largest window there is. Returns the most memory that the process had.
fn download(from: SocketAddr, pause: Duration) -> u64 {
    let mut stream = TcpStream::connect(from).expect("it listens");
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE and a WINDOW_UPDATE for the connection: 2^31-1 octets each.
    request.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff]);
    request.extend([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0]);
    // GET / of the authority `a` over http.
    request.extend([0, 0, 6, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 1, b'a']);
    stream.write_all(&request).expect("it reads");
    let mut block = vec![0; 1 << 20];
    let (mut received, mut peak) = (0, 0);
    while received < LENGTH {
        std::thread::sleep(pause);
        let count = stream.read(&mut block).expect("more comes");
        assert!(count > 0, "it broke off after {received} bytes");
        received += count as u64;
        peak = peak.max(resident_bytes());
    }
    peak
}

#[test]
fn a_slow_download_holds_little_however_large_the_window() {
    if !cfg!(target_os = "linux") {
        eprintln!("SKIPPED: the memory of a process is read from /proc");
        return;
    }
    let (behind, address) = start(|| Router::new().get("/", |_| Response::stream(Zeros(LENGTH))));
    for scheme in ["http", "h2c"] {
        let upstream = Upstream::parse(&format!("{scheme}://{address}")).expect("an upstream");
        let settings = ProxySettings::new(vec![upstream]).expect("settings");
        let (proxy, front) = start(move || Router::new().fallback(ReverseProxy::new(&settings)));
        // What is needed once, for the first request, is needed however slow the reader is.
        let before = download(front, Duration::ZERO);
        let peak = download(front, Duration::from_millis(1));
        let growth = peak.saturating_sub(before);
        eprintln!(
            "{scheme} behind: {before} bytes at most when read fast, {peak} when read slowly"
        );
        assert!(growth < GROWTH_BYTES_MAX, "{scheme}: {growth} bytes more");
        assert!(peak < 64 << 20, "{scheme}: {peak} bytes in all");
        proxy.shut_down();
        assert_eq!(proxy.join().expect("no worker failed").panics, 0);
    }
    behind.shut_down();
    behind.join().expect("no worker failed");
}

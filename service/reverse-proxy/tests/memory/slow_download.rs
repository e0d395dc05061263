//! A client that offers a window of 2 GiB and reads slowly, over HTTP/2. The proxy has a process of its own; client
//! and upstream are here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use bolide_reverse_proxy::{ProxySettings, ReverseProxy, Upstream};
use bolide_server::{BodyStream, Bytes, Pull, Response, Router, Running, Server};

/// How much is downloaded.
const LENGTH: u64 = 96 << 20;

/// How much is asked for first, some times: what a process needs once, it needs for any request.
const LENGTH_SMALL: u64 = 4096;

/// Growth of the proxy's process meanwhile, at most, in bytes.
const GROWTH_BYTES_MAX: u64 = 4 << 20;

/// Names the upstream to the proxy's process.
const UPSTREAM: &str = "BOLIDE_TEST_UPSTREAM";

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

/// A proxy in a process of its own.
struct Proxy {
    child: Child,
    /// Its output goes somewhere as long as it runs.
    _said: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Proxy {
    fn start(upstream: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["slow_download::a_proxy_alone", "--exact", "--ignored", "--nocapture"])
            .env(UPSTREAM, upstream)
            .stdout(Stdio::piped())
            .stdin(Stdio::piped())
            .spawn()
            .expect("it can be started again");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let address = said.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("it listens on ")?;
            Some(address.parse().expect("an address"))
        });
        Self { child, _said: said, address: address.expect("the proxy says where it is") }
    }

    /// A line of what the kernel says of the process, in bytes.
    fn memory_bytes(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("such a line");
        let kilobytes = line.trim_start_matches(':').trim().trim_end_matches(" kB");
        kilobytes.parse::<u64>().expect("a number") * 1024
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Its input ends, and it with that.
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it was started").success());
    }
}

#[test]
#[ignore = "it is the process that the other test starts"]
fn a_proxy_alone() {
    let Ok(upstream) = std::env::var(UPSTREAM) else {
        eprintln!("SKIPPED: the other test starts this with an upstream");
        return;
    };
    let settings = ProxySettings::new(vec![Upstream::parse(&upstream).expect("an upstream")]);
    let settings = settings.expect("settings");
    let (proxy, address) = start(move || Router::new().fallback(ReverseProxy::new(&settings)));
    println!("\nit listens on {address}");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("an end");
    proxy.shut_down();
    assert_eq!(proxy.join().expect("no worker failed").panics, 0);
}

/// Downloads over HTTP/2 with the largest window there is, so much at once and with pauses in between.
fn download(from: SocketAddr, path: u8, length: u64, at_once: usize, pause: Duration) {
    let mut stream = TcpStream::connect(from).expect("it listens");
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE and a WINDOW_UPDATE for the connection: 2^31-1 bytes each.
    request.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff]);
    request.extend([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0]);
    // GET of a path of one letter, of the authority `a` over http.
    request.extend([0, 0, 9, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x44, 2, b'/', path, 0x41, 1, b'a']);
    stream.write_all(&request).expect("it reads");
    let (mut block, mut received) = (vec![0; at_once], 0);
    while received < length {
        std::thread::sleep(pause);
        let count = stream.read(&mut block).expect("more comes");
        assert!(count > 0, "it broke off after {received} bytes");
        received += count as u64;
    }
}

#[test]
fn a_slow_download_holds_little_however_large_the_window() {
    if !cfg!(target_os = "linux") {
        eprintln!("SKIPPED: the memory of a process is read from /proc");
        return;
    }
    let (behind, address) = start(|| {
        Router::new()
            .get("/s", |_| Response::stream(Zeros(LENGTH_SMALL)))
            .get("/l", |_| Response::stream(Zeros(LENGTH)))
    });
    for scheme in ["http", "h2c"] {
        let proxy = Proxy::start(&format!("{scheme}://{address}"));
        for _ in 0..8 {
            download(proxy.address, b's', LENGTH_SMALL, 65_536, Duration::ZERO);
        }
        let before = proxy.memory_bytes("VmRSS");
        download(proxy.address, b'l', LENGTH, 256 << 10, Duration::from_millis(3));
        let growth = proxy.memory_bytes("VmHWM") - before;
        eprintln!("{scheme} behind: {growth} bytes more than {before}");
        assert!(growth < GROWTH_BYTES_MAX, "{scheme} behind: {growth} bytes more");
    }
    behind.shut_down();
    behind.join().expect("no worker failed");
}

//! A thousand uploads that stop in the middle of a frame, next to ten thousand connections that have
//! nothing to say: what they make the running server hold.

use std::io::{Read, Write};
use std::net::TcpStream;

use bolide_frames::{END_HEADERS, HEADERS, PING, client_preface, data, frame};
use bolide_launcher::{Server, skip};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const UPLOADS: usize = 1000;
const IDLE: usize = 10_000;

/// Descriptors that this test and the server need, each.
const DESCRIPTORS: u64 = 12_500;

/// Memory that a stalled upload may hold in the server, in bytes: the half frame that came is with its reader, so it
/// is the connection, its stream and their tables (docs/MEMORY.md), and what an allocator adds.
const UPLOAD_BYTES: u64 = 12 * 1024;

/// The same of an idle connection of HTTP/1.1.
const IDLE_BYTES: u64 = 2 * 1024;

/// Memory that a server that has worked holds anyway: blocks to read into, slots in advance, bytes.
const WORKER_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes that arrive of a frame before its upload stalls.
const HALF_FRAME: usize = 8 * 1024;

#[test]
fn a_thousand_stalled_uploads_beside_ten_thousand_idle_connections_hold_little() {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < DESCRIPTORS) {
        skip("11,000 connections need more file descriptors than this system allows");
        return;
    }
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let server = Server::start(&["--http", "127.0.0.1:0", "--no-https", "--workers", "1"]);
    let address = Server::authority(server.http()).to_owned();
    // What the first connections of a server make it allocate is not theirs.
    let first = [idle(&address), upload(&address)];
    let before = resident_bytes(server.id());
    let waiting: Vec<TcpStream> = (0..IDLE).map(|_| idle(&address)).collect();
    let beside = resident_bytes(server.id());
    let stalled: Vec<TcpStream> = (0..UPLOADS).map(|_| upload(&address)).collect();
    let after = resident_bytes(server.id());
    let (idle_bytes, upload_bytes) = (beside.saturating_sub(before), after.saturating_sub(beside));
    eprintln!(
        "idle: {} bytes each; stalled uploads: {} bytes each",
        idle_bytes / IDLE as u64,
        upload_bytes / UPLOADS as u64
    );
    assert!(idle_bytes < IDLE as u64 * IDLE_BYTES + WORKER_BYTES, "{idle_bytes}");
    assert!(upload_bytes < UPLOADS as u64 * UPLOAD_BYTES + WORKER_BYTES, "{upload_bytes}");
    // They are all still there, and so is the server.
    drop(idle(&address));
    for mut stream in stalled.into_iter().chain(first.into_iter().skip(1)) {
        finish(&mut stream);
    }
    drop(waiting);
}

/// A connection that has been answered and says nothing more.
fn idle(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\npong") {
        let mut byte = [0; 256];
        let count = stream.read(&mut byte).unwrap();
        assert!(count > 0, "closed after {}", String::from_utf8_lossy(&response));
        response.extend_from_slice(&byte[..count]);
    }
    stream
}

/// An upload over h2c (RFC 9113) that has sent one frame and half of another; the server has seen the first.
fn upload(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    // `:scheme: http` from the static table (RFC 7541 appendix A), the others as literals.
    let mut fields = vec![0x86];
    for (name, value) in [(2_u8, "PUT"), (4, "/1073741824"), (1, "a")] {
        fields.extend([name, u8::try_from(value.len()).unwrap()]);
        fields.extend_from_slice(value.as_bytes());
    }
    let mut bytes = client_preface(&[]);
    bytes.extend(frame(HEADERS, END_HEADERS, 1, &fields));
    bytes.extend(data(1, false, &[0; 16_384]));
    bytes.extend(frame(PING, 0, 0, &[7; 8]));
    let half = data(1, false, &[0; 16_384]);
    bytes.extend_from_slice(&half[..9 + HALF_FRAME]);
    stream.write_all(&bytes).unwrap();
    until(&mut stream, PING, 1);
    stream
}

/// The upload goes on as if nothing had been.
fn finish(stream: &mut TcpStream) {
    let mut bytes = vec![0; 16_384 - HALF_FRAME];
    bytes.extend(data(1, true, &[]));
    stream.write_all(&bytes).unwrap();
    until(stream, HEADERS, 4);
}

/// Reads frames until one of this kind with this flag comes.
fn until(stream: &mut TcpStream, kind: u8, flag: u8) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == kind && head[4] & flag != 0 {
            return;
        }
        assert!(![3, 7].contains(&head[3]), "reset or closed: {payload:?}");
    }
}

fn resident_bytes(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

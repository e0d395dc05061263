//! Memory that services and connections hold, as the system counts it.

use std::io::{Read, Write};
use std::net::TcpStream;

use bolide_launcher::skip;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::program::Program;

const CONNECTIONS: u64 = 1000;

/// A figure of `/proc/PID/status`, in bytes.
fn status(program: &Program, name: &str) -> u64 {
    let path = format!("/proc/{}/status", program.id());
    let text = std::fs::read_to_string(path).expect("the program runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a known figure");
    let kibibytes = line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB");
    kibibytes.parse::<u64>().expect("a number") * 1024
}

/// Opens so many connections, each of which has had one response and stays.
fn idle(program: &Program, count: u64) -> Vec<TcpStream> {
    let open = |_| {
        let mut socket = TcpStream::connect(&program.address).expect("it listens");
        socket.write_all(b"GET /ping HTTP/1.1\r\nhost: a\r\n\r\n").expect("it reads");
        let mut response = Vec::new();
        while !response.ends_with(b"pong") {
            let mut piece = [0; 512];
            let count = socket.read(&mut piece).expect("it responds");
            assert!(count > 0, "it closes");
            response.extend_from_slice(&piece[..count]);
        }
        socket
    };
    (0..count).map(open).collect()
}

/// Bytes for each of a thousand idle connections.
fn held_by_one(path: &str) -> u64 {
    let program = Program::start(path);
    // What is made once is there then, on each worker.
    let first = idle(&program, 50);
    let before = status(&program, "VmRSS");
    let more = idle(&program, CONNECTIONS);
    let after = status(&program, "VmRSS");
    drop((first, more));
    after.saturating_sub(before) / CONNECTIONS
}

#[test]
fn an_idle_connection_holds_what_it_holds_without_the_adapter() {
    let limit = getrlimit(Resource::Nofile);
    let enough = limit.maximum.is_none_or(|maximum| maximum >= 2 * CONNECTIONS);
    if !enough || setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).is_err() {
        return skip("too few file descriptors (an_idle_connection_holds)");
    }
    let bare = held_by_one(env!("CARGO_BIN_EXE_bare"));
    let adapted = held_by_one(env!("CARGO_BIN_EXE_axum"));
    assert!(adapted <= bare + 512, "{adapted} bytes each; {bare} without the adapter");
    // hyper holds about 28 KiB.
    assert!(adapted < 4096, "{adapted} bytes each");
}

#[test]
fn a_gigabyte_is_uploaded_through_bounded_memory() {
    const PIECES: usize = 16 * 1024;
    const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;
    let program = Program::start(env!("CARGO_BIN_EXE_upload"));
    let before = b"--B\r\ncontent-disposition: form-data; name=file; filename=f\r\n\r\n";
    let after = b"\r\n--B--\r\n";
    let piece: Vec<u8> = (0..64 * 1024_u32).map(|place| (place % 253) as u8).collect();
    let length = before.len() + PIECES * piece.len() + after.len();
    let head = format!(
        "POST /form HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\
         content-type: multipart/form-data; boundary=B\r\n\r\n"
    );
    let mut socket = TcpStream::connect(&program.address).expect("it listens");
    socket.write_all(&[head.as_bytes(), before].concat()).expect("it reads");
    let mut sum = 0_u32;
    for _ in 0..PIECES {
        socket.write_all(&piece).expect("it reads");
        sum = piece.iter().fold(sum, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte));
    }
    socket.write_all(after).expect("it reads");
    let mut response = String::new();
    socket.read_to_string(&mut response).expect("it responds");
    let told = format!("f: {} bytes, sum {sum:08x}\n", PIECES * piece.len());
    assert!(response.ends_with(&told), "{response}\nand not {told}");
    let most = status(&program, "VmHWM");
    assert!(most < MEMORY_BYTES_MAX, "{most} bytes were held at once");
}

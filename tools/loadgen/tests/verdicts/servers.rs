//! Servers that are limited by one thing each: blocking, a thread for each connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_connection::{Connection, Http2Limits, Limits, http2_limits};
use bolide_semantics::{Content, Context, End, ExchangeEvent, Head, Output, ResponseHead, Role};
use http::StatusCode;

/// Response over HTTP/1.1.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Before the kind of a server: the program is to be one.
pub(crate) const FLAG: &str = "--planted";

/// Limit of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Answers,
    /// One response at a time, each computed for a millisecond.
    Computes,
    /// One response a millisecond by the clock, however little of a processor it gets.
    Paces,
    /// Each response waits for 5 ms.
    Waits,
    /// Nothing: it counts the ends of heads and writes as many ready responses.
    Canned,
    /// Windows for uploads of a KiB.
    SmallWindows,
    /// Requests are read at 64 KiB a millisecond or two.
    ReadsSlowly,
}

const ALL: [Kind; 7] = [
    Kind::Answers,
    Kind::Computes,
    Kind::Paces,
    Kind::Waits,
    Kind::Canned,
    Kind::SmallWindows,
    Kind::ReadsSlowly,
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answers => "responses",
            Self::Computes => "computes",
            Self::Paces => "paces",
            Self::Waits => "waits",
            Self::Canned => "canned",
            Self::SmallWindows => "small-windows",
            Self::ReadsSlowly => "reads-slowly",
        }
    }

    pub(crate) fn of(name: &str) -> Self {
        ALL.into_iter().find(|kind| kind.name() == name).unwrap()
    }
}

/// Serves until the process is ended; says its address first.
pub(crate) fn serve(kind: Kind) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    let turn = Arc::new(Mutex::new(Instant::now()));
    for socket in listener.incoming().map_while(Result::ok) {
        let turn = Arc::clone(&turn);
        std::thread::spawn(move || {
            // The client ends connections as it likes.
            let _ = match kind {
                Kind::SmallWindows => http2(socket),
                Kind::Canned => canned(socket),
                _ => http1(socket, kind, &turn),
            };
        });
    }
}

/// The head of a request, and how many bytes of its body follow. `None`: the client has ended.
fn head(socket: &mut TcpStream, unread: &mut Vec<u8>) -> std::io::Result<Option<usize>> {
    loop {
        if let Some(at) = unread.windows(4).position(|end| end == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&unread[..at]).to_ascii_lowercase();
            unread.drain(..at + 4);
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            return Ok(Some(length.map_or(0, |length| length.parse().unwrap())));
        }
        let mut bytes = [0; 4096];
        match socket.read(&mut bytes)? {
            0 => return Ok(None),
            count => unread.extend_from_slice(&bytes[..count]),
        }
    }
}

fn http1(mut socket: TcpStream, kind: Kind, turn: &Mutex<Instant>) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let mut unread = Vec::new();
    while let Some(body) = head(&mut socket, &mut unread)? {
        let mut left = body.saturating_sub(std::mem::take(&mut unread).len());
        while left > 0 {
            let mut bytes = vec![0; left.min(64 * 1024)];
            socket.read_exact(&mut bytes)?;
            left -= bytes.len();
            std::thread::sleep(Duration::from_millis(1));
        }
        match kind {
            Kind::Computes => {
                let _one_at_a_time = turn.lock().unwrap();
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(1) {
                    std::hint::spin_loop();
                }
            }
            Kind::Paces => {
                let now = Instant::now();
                let due = {
                    let mut last = turn.lock().unwrap();
                    *last = now.max(*last) + Duration::from_millis(1);
                    *last
                };
                std::thread::sleep(due - now);
            }
            Kind::Waits => std::thread::sleep(Duration::from_millis(5)),
            _ => {}
        }
        socket.write_all(RESPONSE)?;
    }
    Ok(())
}

/// Responds without looking at what is asked.
fn canned(mut socket: TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let responses = RESPONSE.repeat(4096);
    let (mut bytes, mut kept) = ([0; 64 * 1024], 0);
    loop {
        let count = socket.read(&mut bytes[kept..])?;
        if count == 0 {
            return Ok(());
        }
        // Requests are all of one length; the first tells which.
        let all = &bytes[..kept + count];
        let Some(end) = all.windows(4).position(|end| end == b"\r\n\r\n") else {
            kept += count;
            continue;
        };
        let (requests, rest) = (all.len() / (end + 4), all.len() % (end + 4));
        socket.write_all(&responses[..requests * RESPONSE.len()])?;
        let read = all.len();
        bytes.copy_within(read - rest..read, 0);
        kept = rest;
    }
}

/// HTTP/2 by our own core, with windows of a KiB.
fn http2(mut socket: TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let h2 = Http2Limits {
        windows: http2_limits::Windows {
            stream_window_bytes: 1024,
            stream_window_bytes_max: 1024,
            ..http2_limits::Windows::DEFAULT
        },
        ..Http2Limits::default()
    };
    let limits = Limits { h2: Arc::new(h2), ..Limits::default() };
    let mut connection = Connection::new(Role::Server, None, Instant::now());
    let (mut input, mut output) = (ReceiveBuffer::new(64 * 1024), SendQueue::new());
    let (mut head, mut rest) = (Head::default(), Box::<[u8]>::default());
    loop {
        let mut bytes = [0; 16 * 1024];
        let count = socket.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        input.start(&rest);
        input.extend(&bytes[..count]);
        let mut cx = Context {
            input: &mut input,
            output: &mut output,
            output_limit: 1 << 20,
            head: &mut head,
            now: Instant::now(),
        };
        loop {
            let (id, length, end) = match connection.poll(&mut cx, &limits) {
                Output::Exchange(id, ExchangeEvent::Data(data, end)) => (id, data.len(), end),
                Output::Exchange(id, ExchangeEvent::Head(end)) => (id, 0, end),
                Output::Exchange(..) | Output::Connection(_) => continue,
                Output::Closed(_) | Output::Wait(_) => break,
            };
            connection.consumed(&mut cx, id, length);
            if end == End::Yes {
                let head = ResponseHead::new(StatusCode::OK, &[]);
                // A client that has gone meanwhile is noticed by the next read.
                let _ = connection.send_response(&mut cx, id, &head, Content::None);
            }
        }
        rest = input.take_rest();
        // A turn that takes a while, as a busy server's.
        std::thread::sleep(Duration::from_micros(200));
        connection.flush(&mut output, &mut socket)?;
    }
}

//! The planted server: this test program, started again with a part to play.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Variable that says what the planted server is to do; unset in the test's own process.
pub(super) const PART: &str = "BOLIDE_RACE_PLANTED";

/// The test that plays a part.
pub(super) const TEST: &str = "race::tests::planted::plays_a_part";

/// Requests that the mortal one answers.
const LIFE: u32 = 300;

/// Requests by which a server knows that it has been verified.
const VERIFIED: u32 = 30;

/// Requests after which a connection is one of the load: those that verify and those in the middle have fewer.
const LOADING: u32 = 15;

/// One in so many responses of the load has a wrong status: 0.08 %.
const SELDOM: u32 = 1250;

/// The forking one starts a child for one in so many requests of the load.
pub(super) const FORKING: u32 = 50;

/// CPU time that each child of the forking one uses.
pub(super) const BURNT: Duration = Duration::from_millis(20);

/// Not a test when it is started by a race: the planted server.
#[test]
fn plays_a_part() {
    let Ok(part) = std::env::var(PART) else { return };
    let (part, port) = part.split_once(':').unwrap();
    if part == "mute" {
        for number in 1..=12 {
            eprintln!("waiting for nothing, line {number}");
        }
        loop {
            std::thread::park();
        }
    }
    if part == "late" && std::fs::File::create_new("was-here").is_ok() {
        eprintln!("Address already in use");
        std::process::exit(1);
    }
    if part == "burning" {
        return burn(BURNT);
    }
    leave_the_tree(part);
    if part == "straying" {
        crate::process::pin_this_thread(&(0..64).collect::<Vec<_>>());
    }
    if part == "lazy" {
        std::fs::write("never", "").unwrap();
    }
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let counts = Arc::new([const { AtomicU32::new(0) }; 2]);
    for stream in listener.incoming().flatten() {
        let (part, counts) = (part.to_owned(), Arc::clone(&counts));
        std::thread::spawn(move || drop(serve(stream, &part, &counts)));
    }
}

/// Starts a process that works, and whose parent ends at once, so that it is in no tree.
fn leave_the_tree(part: &str) {
    let work = match part {
        "escaping" | "hiding" => "while :; do :; done",
        "halving" => {
            "while :; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; sleep 0.01; done"
        }
        _ => return,
    };
    let mut parent = std::process::Command::new("sh");
    if part == "hiding" {
        parent.env_clear();
    }
    parent.args(["-c", &format!("sh -c '{work}' &")]).spawn().unwrap().wait().unwrap();
}

/// Uses so much CPU time.
fn burn(time: Duration) {
    let used = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let end = used() + time;
    while used() < end {
        std::hint::spin_loop();
    }
}

/// A request: its first line and its body; `None` at the end of the connection.
fn request(reader: &mut impl BufRead) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut length = 0;
    loop {
        let mut field = String::new();
        if reader.read_line(&mut field)? == 0 {
            return Ok(None);
        }
        if let Some(value) = field.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if field.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((line, body)))
}

/// The right response's body.
fn right(line: &str, body: Vec<u8>) -> Vec<u8> {
    let size = line.split_once("size=").map(|(_, rest)| rest.split(' ').next().unwrap());
    match size {
        Some(size) => vec![b'x'; size.parse().unwrap()],
        None if line.contains(" /ping") => b"pong".to_vec(),
        None => body,
    }
}

fn serve(mut stream: TcpStream, part: &str, counts: &[AtomicU32; 2]) -> std::io::Result<()> {
    let [answered, loaded] = counts;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut learnt = Vec::new();
    if part == "scripted" && answered.load(Ordering::Relaxed) > VERIFIED {
        let pong = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npong";
        stream.write_all(&pong.repeat(1000))?;
    }
    for number in 1.. {
        let Some((line, body)) = request(&mut reader)? else { return Ok(()) };
        let is_post = line.starts_with("POST");
        if part == "diligent" {
            let file = std::fs::File::options().create(true).append(true).open("asked");
            file?.write_all(line.as_bytes())?;
        }
        let count = answered.fetch_add(1, Ordering::Relaxed);
        let is_load = number > LOADING;
        let in_load = if is_load { 1 + loaded.fetch_add(1, Ordering::Relaxed) } else { 0 };
        if part == "mortal" && count > LIFE {
            eprintln!("out of planted memory");
            std::process::exit(9);
        }
        if part == "forking" && is_load && in_load.is_multiple_of(FORKING) {
            // A child that works and has ended before the response comes.
            let mut child = std::process::Command::new(std::env::current_exe()?);
            child.args([TEST, "--exact"]).env(PART, "burning:").stdout(std::process::Stdio::null());
            assert!(child.status()?.success());
        }
        if part == "slow" && is_load {
            burn(Duration::from_micros(300));
        }
        let mut body = right(&line, body);
        match part {
            "constant" if !is_post => body = vec![b'x'; 64],
            "turncoat" if count > LIFE && !is_post => body.push(b'x'),
            "ponging" if count > VERIFIED => body = b"pong".to_vec(),
            // It tells connections that verify from those of the load, and reads nothing there.
            "pretending" if is_load => body = b"pong".to_vec(),
            "canned" if is_load => body.fill(b'x'),
            "garbling" if is_load => body.fill(b'?'),
            "shortening" if is_load => drop(body.pop()),
            "smudging" if is_load && in_load.is_multiple_of(20) => body[0] ^= 1,
            "learning" if is_load && learnt.len() == body.len() => {
                body.clone_from(&learnt);
            }
            _ => learnt.clone_from(&body),
        }
        let status = match part {
            "busy" if is_load && in_load.is_multiple_of(50) => "503 Busy",
            "seldom" if is_load && in_load.is_multiple_of(SELDOM) => "503 Busy",
            "missing" if is_load => "404 Not Found",
            _ => "200 OK",
        };
        if part == "hanging-up" && is_load && in_load.is_multiple_of(50) {
            break;
        }
        let is_last = part == "closing" && number % 10 == 0;
        let close = if is_last { "Connection: close\r\n" } else { "" };
        let kind = if part == "unlabelled" && is_load { "text/html" } else { "text/plain" };
        let length = body.len();
        let fields = format!("{close}Content-Type: {kind}\r\nContent-Length: {length}");
        let head = format!("HTTP/1.1 {status}\r\n{fields}\r\n\r\n");
        let response = [head.as_bytes(), &body].concat();
        let copies = match part {
            "gushing" => 1000,
            "doubling" if is_load => 2,
            _ => 1,
        };
        stream.write_all(&response.repeat(copies))?;
        if is_last {
            break;
        }
    }
    Ok(())
}

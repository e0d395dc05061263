//! ndt7-client-go 0.10.1, unmodified: both directions, with and without TLS, and compared with `bolide measure`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use bolide_launcher::{Server, find, program, run, scratch};
use serde_json::Value;

/// Runs both tests and gives the summary.
fn measure(scheme: &str, url: &str) -> Option<Value> {
    let client = find("ndt7-client", "ndt7_clients")?;
    let server = Server::authority(url);
    let options = ["-scheme", scheme, "-server", server, "-no-verify", "-format", "json"];
    let text = run(&client, options).well().text();
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON by line")).collect();
    let failed = lines.iter().any(|line| line["Key"] == "error");
    assert!(!failed, "{text}");
    lines.last().cloned()
}

#[test]
fn ndt7_clients() {
    let archive = scratch("ndt7");
    let directory = archive.display().to_string();
    let server = Server::start(&[
        "--http",
        "127.0.0.1:0",
        "--https",
        "127.0.0.1:0",
        "--ndt7-archive",
        &directory,
    ]);
    let [http, https] = server.both();
    // Two at a time would measure each other, and that is all the same here.
    let secure = {
        let https = https.to_owned();
        std::thread::spawn(move || measure("wss", &https))
    };
    let plain = measure("ws", http);
    let secure = secure.join().expect("it ended well");
    let (Some(plain), Some(secure)) = (plain, secure) else { return };
    for summary in [&plain, &secure] {
        for direction in ["Download", "Upload"] {
            let test = &summary[direction];
            assert_eq!(test["Throughput"]["Unit"], "Mbit/s", "{summary}");
            assert!(test["Throughput"]["Value"].as_f64() > Some(100.0), "{summary}");
            assert!(test["UUID"].as_str().is_some_and(|uuid| uuid.starts_with("bolide_")));
        }
        assert!(summary["Download"]["Latency"]["Value"].as_f64() > Some(0.0), "{summary}");
    }
    // They are written when the clients have gone, and nothing tells of it.
    let latest = Instant::now() + Duration::from_secs(20);
    loop {
        let names = names_in(&archive);
        let count = |kind: &str| {
            names.iter().filter(|name| name.starts_with(kind) && name.ends_with(".gz")).count()
        };
        let counts = (count("ndt7-download-"), count("ndt7-upload-"));
        if counts == (2, 2) {
            break;
        }
        assert!(Instant::now() < latest, "{names:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).expect("it is there");
    files.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect()
}

/// Rate of the relay in each direction, in bits per second.
const PATH_BITS: f64 = 40_000_000.0;

/// The relay makes up for so much of a delay: little compared with a test of ten seconds.
const CATCH_UP: Duration = Duration::from_millis(200);

/// Size of the relay's and its sockets' buffers: little compared with a test of ten seconds.
const RELAY_BUFFER_BYTES: usize = 32 * 1024;

/// Carries each connection to `server`, both ways at [`PATH_BITS`]: on a path of a known rate two clients can be
/// compared, whatever else the machine does. Gives where it listens; it ends with the test's process.
fn paced_path(server: &str) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = server.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("a connection");
            let server = TcpStream::connect(&server).expect("the server listens");
            for socket in [&client, &server] {
                rustix::net::sockopt::set_socket_recv_buffer_size(socket, RELAY_BUFFER_BYTES)
                    .expect("a buffer");
                rustix::net::sockopt::set_socket_send_buffer_size(socket, RELAY_BUFFER_BYTES)
                    .expect("a buffer");
            }
            let (up, down) = (pair(&client, &server), pair(&server, &client));
            std::thread::spawn(move || carry(up));
            std::thread::spawn(move || carry(down));
        }
    });
    address
}

fn pair(from: &TcpStream, to: &TcpStream) -> (TcpStream, TcpStream) {
    (from.try_clone().expect("a handle"), to.try_clone().expect("a handle"))
}

/// One direction of a connection, at its pace: what has been carried is not ahead of the clock, and makes up for the time in which
/// this thread had no core.
fn carry((mut from, mut to): (TcpStream, TcpStream)) {
    let mut block = [0; RELAY_BUFFER_BYTES / 2];
    let mut free_at = Instant::now();
    while let Ok(count @ 1..) = from.read(&mut block) {
        if to.write_all(&block[..count]).is_err() {
            break;
        }
        let earliest = Instant::now().checked_sub(CATCH_UP).unwrap_or(free_at);
        free_at = free_at.max(earliest) + Duration::from_secs_f64(count as f64 * 8.0 / PATH_BITS);
        std::thread::sleep(free_at.saturating_duration_since(Instant::now()));
    }
    // The other side may be gone already.
    drop(to.shutdown(Shutdown::Write));
}

#[test]
fn ndt7_clients_and_measure_agree_within_five_per_cent() {
    let server = Server::start(&["--http", "127.0.0.1:0"]);
    let path = || paced_path(Server::authority(server.http()));
    let (theirs, ours) = (path(), path());
    let theirs = std::thread::spawn(move || measure("ws", &format!("http://{theirs}")));
    let ours = ["download", "upload"].map(|way| {
        let url = format!("ws://{ours}/ndt/v7/{way}");
        let finished = run(program(), ["measure", url.as_str(), "--quiet", "--json", "-"]).well();
        let report: Value = serde_json::from_slice(&finished.stdout).expect("a report in JSON");
        report["goodput_bits_per_second"].as_f64().expect("a rate") / 1e6
    });
    let Some(theirs) = theirs.join().expect("it ended well") else { return };
    for (way, ours) in ["Download", "Upload"].into_iter().zip(ours) {
        let theirs = theirs[way]["Throughput"]["Value"].as_f64().expect("a rate");
        println!("{way}: ndt7-client {theirs:.2}, bolide measure {ours:.2} Mbit/s");
        assert!((ours / theirs - 1.0).abs() <= 0.05, "{way}: {ours} against {theirs} Mbit/s");
    }
}

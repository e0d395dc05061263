//! Output that a server has to write when it ends: nothing of it is lost.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use bolide_launcher::{Server, scratch};

const PATIENCE: Duration = Duration::from_secs(30);

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(Server::authority(server.http())).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Reads until these bytes have come.
fn until(stream: &mut TcpStream, wanted: &[u8]) {
    let (mut read, mut byte) = (Vec::new(), [0]);
    while !read.ends_with(wanted) {
        stream.read_exact(&mut byte).expect("it responds");
        read.push(byte[0]);
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).expect("it is there");
    files.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect()
}

/// Lines may wait for an hour here: only the end can have written them.
#[test]
fn the_last_lines_of_the_access_log_are_written() {
    const REQUESTS: usize = 300;
    let directory = scratch("the_last_lines_of_the_access_log_are_written");
    let (path, configuration) = (directory.join("access.log"), directory.join("bolide.toml"));
    let text = format!(
        "workers = 2\n[[listen]]\nhttp = \"127.0.0.1:0\"\n[access-log]\nfile = \"{}\"\nformat = \"json\"\ndelay = \"1h\"\n",
        path.display()
    );
    std::fs::write(&configuration, text).expect("a file");
    let server = Server::start(&["--config", &configuration.display().to_string()]);
    let mut clients: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    for client in &mut clients {
        for _ in 0..REQUESTS / 4 {
            client.write_all(b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
            until(client, b"pong");
        }
    }
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "", "they wait");
    server.terminate();
    assert!(server.wait().success());
    let text = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(text.lines().count(), REQUESTS);
    assert!(text.ends_with("}\n"));
}

/// Tests that end with the server are archived by threads, one for each.
#[test]
fn the_archive_files_of_the_last_speed_tests_are_written() {
    const TESTS: usize = 24;
    let archive = scratch("the_archive_files_of_the_last_speed_tests_are_written");
    let directory = archive.display().to_string();
    let server = Server::start(&[
        "--http",
        "127.0.0.1:0",
        "--no-https",
        "--drain",
        "50ms",
        "--ndt7-archive",
        &directory,
    ]);
    let clients: Vec<TcpStream> = (0..TESTS)
        .map(|_| {
            let mut client = connect(&server);
            let request = "GET /ndt/v7/upload HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
                           Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                           Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                           Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n";
            client.write_all(request.as_bytes()).expect("it reads");
            until(&mut client, b"\r\n\r\n");
            client
        })
        .collect();
    server.terminate();
    assert!(server.wait().success());
    let names = names_in(&archive);
    let whole = names.iter().filter(|name| name.ends_with(".json.gz")).count();
    assert_eq!((whole, names.len()), (TESTS, TESTS), "{names:?}");
    drop(clients);
}

//! `bolide serve --root`: a directory, and which of the built-in routes are left.

use std::io::{Read, Write};
use std::net::TcpStream;

use bolide_e2e::{assert_same, random_file};
use bolide_launcher::{Server, find, run, scratch};

/// The status, head and body of one response.
fn get(server: &Server, path: &str) -> (u16, String, String) {
    let address = Server::authority(server.http());
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_owned(), body.to_owned())
}

fn start(test: &str, options: &[&str]) -> Server {
    let directory = scratch(test);
    for (name, content) in [("index.html", "home"), ("ping", "a file"), ("echo", "a file")] {
        std::fs::write(directory.join(name), content).unwrap();
    }
    std::fs::create_dir(directory.join("empty")).unwrap();
    let root = directory.display().to_string();
    Server::start(&[&["--http", "127.0.0.1:0", "--root", &root], options].concat())
}

#[test]
fn a_root_leaves_ping_and_turns_the_others_off() {
    let server = start("a_root_leaves_ping", &[]);
    let body = |path: &str| get(&server, path).2;
    assert_eq!(body("/"), "home");
    assert_eq!(body("/ping"), "pong", "an exact route wins over a file");
    assert_eq!(body("/echo"), "a file");
    assert_eq!(get(&server, "/empty/").0, 404);
    assert_eq!(get(&server, "/missing").0, 404);
}

#[test]
fn a_file_wins_over_a_size() {
    let directory = scratch("a_file_wins_over_a_size");
    std::fs::write(directory.join("5"), "a file").unwrap();
    let root = directory.display().to_string();
    let server = Server::start(&["--http", "127.0.0.1:0", "--root", &root, "--builtin"]);
    assert_eq!(get(&server, "/5").2, "a file");
    assert_eq!(get(&server, "/4").2, "\0\0\0\0");
    assert_eq!(get(&server, "/4x").0, 400);
    assert_eq!(get(&server, "/x4").0, 404);
}

#[test]
fn a_directory_and_a_port_are_enough() {
    let directory = scratch("a_directory_and_a_port");
    std::fs::write(directory.join("index.html"), "home").unwrap();
    let root = directory.display().to_string();
    let server = Server::start(&[&root, "--http", "localhost:0", "--no-https"]);
    assert_eq!(get(&server, "/").2, "home");
}

#[test]
fn the_options_about_files_take_effect() {
    let rule = "*.html=max-age=60";
    let options = ["--builtin", "--listing", "--cache-control", rule, "--not-found", "index.html"];
    let server = start("the_options_about_files", &options);
    assert_eq!(get(&server, "/echo?size=3").2, "xxx", "it is back");
    assert!(get(&server, "/empty/").2.contains("<table>"));
    let (status, head, _) = get(&server, "/");
    assert_eq!(status, 200);
    assert!(head.contains("cache-control: max-age=60"), "{head}");
    let (status, _, body) = get(&server, "/missing");
    assert_eq!((status, body.as_str()), (404, "home"));
}

#[test]
fn a_large_file_arrives_in_every_version() {
    const BYTES: usize = 20_000_000;
    let Some(curl) = find("curl", "a_large_file_arrives_in_every_version") else { return };
    let directory = scratch("a_large_file_arrives");
    let file = random_file(&directory, BYTES);
    let name = file.file_name().unwrap().to_str().unwrap();
    let content = std::fs::read(&file).unwrap();
    let root = directory.display().to_string();
    let any = "127.0.0.1:0";
    let server = Server::start(&["--http", any, "--https", any, "--root", &root]);
    for (option, url) in [
        ("--http1.1", server.http()),
        ("--http2-prior-knowledge", server.http()),
        ("--http1.1", server.https()),
        ("--http2", server.https()),
    ] {
        let url = format!("{url}/{name}");
        let whole = run(&curl, ["-sSk", option, &url]).well().stdout;
        assert_same(&whole, &content, &url);
        let part = run(&curl, ["-sSk", option, "-r", "1000001-15000000", &url]).well().stdout;
        assert_same(&part, &content[1_000_001..=15_000_000], &url);
    }
}

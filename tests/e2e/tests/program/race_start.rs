//! `bolide race start`: a contender as a race starts it, until it is told to stop.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use bolide_launcher::{program, run};
use serde_json::Value;

#[test]
fn a_contender_is_started_and_stopped() {
    starts("engine", "/ping", "\r\n\r\npong");
}

#[test]
fn what_a_contender_asks_for_is_started_with_it() {
    starts("proxy-h1", "/6", "\r\n\r\nhello\n");
}

fn starts(table: &str, path: &str, end: &str) {
    let mut child = Command::new(program())
        .args(["race", "start", "bolide", "--table", table])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    let address: SocketAddr = started["address"].as_str().unwrap().parse().unwrap();
    assert_eq!((&started["name"], &started["path"]), (&"bolide".into(), &path.into()));
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with(end), "{text}");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    TcpStream::connect(address).unwrap_err();
}

#[test]
fn a_contender_that_is_not_there_is_named() {
    for (words, why) in [
        (["bolid", "engine"], "no contender `bolid`; did you mean `bolide`?"),
        (["bolide", "engin"], "did you mean `engine`?"),
        (["nginx-http3", "engine"], "nginx-http3 supports no workload of table `engine`"),
    ] {
        let [name, table] = words;
        let finished = run(program(), ["race", "start", name, "--table", table]);
        assert_eq!(finished.status.code(), Some(2));
        assert!(finished.both().contains(why), "{}", finished.both());
    }
}

//! Whatever is killed: after the next `up` nothing of it is left.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{Lab, PROGRAM, is_root, words};

fn kill(id: u64) {
    let pid = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

fn is_alive(id: u64) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[track_caller]
fn wait_until(what: &str, happened: impl Fn() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_keeper_leaves_nothing_after_the_next_start() {
    if !is_root("leftovers of a killed keeper") {
        return;
    }
    let (lab, described) = Lab::up("killed", "--no-verify --rtt 10ms");
    let mut child = Command::new(PROGRAM)
        .args(["net", "exec", "server", "--name", &lab.name, "--", "sh", "-c", "echo up; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let keeper = described["keeper"].as_u64().unwrap();
    kill(keeper);
    wait_until("the keeper ends", || !is_alive(keeper));
    assert_eq!(lab.namespaces().len(), 3);
    let status = lab.net(&format!("status --name {}", lab.name));
    assert!(String::from_utf8_lossy(&status.stdout).contains("stale"));
    let (next, _) = Lab::up("next", "--no-verify");
    assert!(lab.namespaces().is_empty() && !lab.directory().exists());
    assert_eq!(next.namespaces().len(), 3);
    // What ran in it was ended too: otherwise this would wait for ever.
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_killed_start_leaves_nothing_after_the_next_one() {
    if !is_root("leftovers of a killed start") {
        return;
    }
    let lab = Lab::named("half");
    let mut child = Command::new(PROGRAM)
        .args(["net", "up", "--name", &lab.name, "--rtt", "400ms"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("round trip") {}
    child.kill().unwrap();
    child.wait().unwrap();
    // Its keeper finds that nothing waits for it.
    wait_until("the keeper removes the namespaces", || lab.namespaces().is_empty());
    let (_next, _) = Lab::up("after", "--no-verify");
    wait_until("the record is removed", || {
        let output = lab.net(&format!("up --no-verify --name {}", lab.name));
        assert!(output.status.success() || words(&output).contains("up already"));
        output.status.success()
    });
    assert!(Path::new("/run/bolide/net").join(&lab.name).exists());
}

#[test]
fn an_interrupted_start_removes_its_lab() {
    if !is_root("a start that is interrupted") {
        return;
    }
    let lab = Lab::named("stopped");
    let mut child = Command::new(PROGRAM)
        .args(["net", "up", "--name", &lab.name, "--rtt", "400ms"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("round trip")));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<_> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert_eq!(rest.last().unwrap(), "bolide net: interrupted; the lab was removed");
    assert!(lab.namespaces().is_empty() && !lab.directory().exists());
}

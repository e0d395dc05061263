//! `bolide serve --profile`: where the CPU time goes, as the program shows it.

use std::io::{Read, Write};
use std::net::TcpStream;

use bolide_launcher::{Server, program, run, scratch};
use rustix::process::Signal;
use serde_json::Value;

/// Loads `/ping` with this many requests.
fn load(server: &Server, requests: &str) {
    let url = format!("{}/ping", server.http());
    let arguments = ["load", "--http2", "-c", "4", "-m", "8", "-n", requests, "--quiet", &url];
    run(program(), arguments).well();
}

#[test]
fn the_split_stands_in_a_table_in_json_and_in_top() {
    let directory = scratch("the_split_stands_in_a_table_in_json_and_in_top");
    let file = directory.join("profile.json").display().to_string();
    let server = Server::start(&[
        "--http",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--profile=4",
        "--profile-json",
        &file,
        "--server-timing",
    ]);
    load(&server, "20000");
    let top = std::thread::scope(|scope| {
        let admin = server.admin();
        let top = scope.spawn(move || run(program(), ["top", "--once", admin]).well().text());
        while !top.is_finished() {
            load(&server, "5000");
        }
        top.join().expect("it ends")
    });
    assert!(top.contains("CPU/req"), "{top}");
    server.signal(Signal::TERM);
    server.said("one turn in 4;");
    server.said("  |r");
    server.said("By the threads' own clocks:");
    assert!(server.wait().success());

    let text = std::fs::read_to_string(&file).expect("it was written");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert!(json["requests"].as_u64() > Some(1000), "{json}");
    let accounted = json["accounted"].as_f64().expect("a number");
    assert!((accounted - 1.0).abs() < 0.03, "{json}");
    let stages = json["stages"].as_array().expect("the stages");
    let share: f64 = stages.iter().filter_map(|stage| stage["share"].as_f64()).sum();
    assert!(stages.len() == 9 && (share - 1.0).abs() < 0.01, "{json}");
}

/// One client that waits for each response leaves the cores idle most of the time: nothing takes them away in the middle
/// of many turns.
#[test]
fn few_turns_are_dropped_on_a_quiet_load() {
    let file = scratch("few_turns_are_dropped").join("profile.json").display().to_string();
    let server = Server::start(&[
        "--http",
        "127.0.0.1:0",
        "--workers",
        "1",
        "--profile=1",
        "--profile-json",
        &file,
    ]);
    let url = format!("{}/ping", server.http());
    let load = ["load", "-c", "1", "-n", "2000", "--rate", "1000", "--quiet", &url];
    run(program(), load).well();
    server.terminate();
    let said = server.said("dropped");
    assert!(said.ends_with("dropped, in which they are off by more than 3 %"), "{said}");
    assert!(server.wait().success());
    let json: Value =
        std::fs::read_to_string(&file).expect("it was written").parse().expect("JSON");
    let count = |name: &str| json[name].as_u64().expect("a number");
    let (measured, dropped) = (count("turns"), count("dropped_turns"));
    // Other programs run on this machine, too: a tenth is for them.
    assert!(measured > 1000 && dropped * 10 <= measured, "{dropped} of {measured}: {json}");
}

/// A response of the server, head and all.
fn answer(url: &str, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(Server::authority(url)).expect("it listens");
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it responds");
    response
}

#[test]
fn a_reload_turns_the_profile_and_server_timing_on_and_off() {
    let path = scratch("a_reload_turns_the_profile_on_and_off").join("bolide.toml");
    let text = |first: &str, profile: &str| {
        format!(
            "{first}[[listen]]\nhttp = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n{profile}"
        )
    };
    std::fs::write(&path, text("", "")).unwrap();
    let server = Server::start(&["--config", &path.display().to_string()]);
    let reload = |first: &str, profile: &str| {
        std::fs::write(&path, text(first, profile)).unwrap();
        server.signal(Signal::HUP);
        let said = server.said("bolide: reloaded");
        assert!(said.ends_with("reloaded"), "nothing needs a restart: {said}");
    };
    let one_in = || {
        let shown = answer(server.admin(), "GET", "/profile");
        let json: Value =
            shown.split_once("\r\n\r\n").and_then(|it| it.1.parse().ok()).expect("JSON");
        json["one_in"].as_u64()
    };
    let tells = || answer(server.http(), "GET", "/ping").contains("server-timing: route;dur=");
    assert_eq!((one_in(), tells()), (Some(0), false));
    reload("server-timing = true\n", "[profile]\none-in = 1\n");
    assert_eq!((one_in(), tells()), (Some(1), true));
    load(&server, "1000");
    // What an operator has said stays, as long as the file says nothing new.
    answer(server.admin(), "PUT", "/profile?one-in=5");
    reload("drain = \"7s\"\nserver-timing = true\n", "[profile]\none-in = 1\n");
    assert_eq!((one_in(), tells()), (Some(5), true));
    reload("server-timing = true\n", "[profile]\none-in = 7\n");
    assert_eq!((one_in(), tells()), (Some(7), true));
    reload("", "");
    assert_eq!((one_in(), tells()), (Some(0), false));
    server.signal(Signal::TERM);
    server.said("  |r");
    assert!(server.wait().success(), "it was on for a while: there is a table");
}

#[test]
fn a_rate_that_cannot_be_is_refused() {
    for arguments in [["--profile=0"], ["--profile=often"]] {
        let finished = run(program(), ["serve"].iter().chain(&arguments));
        assert_eq!(finished.status.code(), Some(2), "{}", finished.both());
    }
    let finished = run(program(), ["serve", "--profile-json", "a"]);
    assert_eq!(finished.status.code(), Some(2), "{}", finished.both());
}

#[test]
fn a_profile_that_is_lost_is_a_failure() {
    let directory = scratch("a_profile_that_is_lost").join("there");
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("profile.json").display().to_string();
    let server = Server::start(&["--http", "127.0.0.1:0", "--profile", "--profile-json", &file]);
    std::fs::remove_dir(&directory).unwrap();
    server.terminate();
    let said = server.said("--profile-json");
    assert!(said.contains(&file) && said.contains("can't be written"), "{said}");
    assert_eq!(server.wait().code(), Some(1));
}

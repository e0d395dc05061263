//! `bolide serve --profile`: where the CPU time goes, as the program shows it.

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
    let folder = scratch("the_split_stands_in_a_table_in_json_and_in_top");
    let file = folder.join("profile.json").display().to_string();
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

#[test]
fn a_rate_that_cannot_be_is_refused() {
    for arguments in [["--profile=0"], ["--profile=often"]] {
        let finished = run(program(), ["serve"].iter().chain(&arguments));
        assert_eq!(finished.status.code(), Some(2), "{}", finished.both());
    }
    let finished = run(program(), ["serve", "--profile-json", "a"]);
    assert_eq!(finished.status.code(), Some(2), "{}", finished.both());
}

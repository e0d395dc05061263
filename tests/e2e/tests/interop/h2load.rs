//! h2load: many connections with many streams. What counts is that every request succeeds.

use std::path::Path;

use bolide_e2e::random_file;
use bolide_launcher::{Server, find, run, scratch};

fn load(h2load: &Path, requests: usize, options: &[&str], url: &str) {
    let count = format!("-n{requests}");
    let response = run(h2load, [count.as_str()].iter().chain(options).chain(&[url])).well();
    let text = response.text();
    let line = text.lines().find(|line| line.starts_with("requests:")).unwrap_or_default();
    let wanted = format!("{requests} succeeded, 0 failed, 0 errored, 0 timeout");
    assert!(line.contains(&wanted), "{options:?} {url}: {line}");
    let line = text.lines().find(|line| line.starts_with("status codes:")).unwrap_or_default();
    assert!(line.contains(&format!("{requests} 2xx")), "{options:?} {url}: {line}");
}

#[test]
fn h2load_over_h2() {
    let Some(h2load) = find("h2load", "h2load_over_h2") else { return };
    let server = Server::start_both();
    for url in server.both() {
        let ping = format!("{url}/ping");
        let echo = format!("{url}/echo?size=1024");
        for streams in ["-m1", "-m10", "-m100", "-m1000"] {
            load(&h2load, 20_000, &["-c10", streams], &ping);
            load(&h2load, 5_000, &["-c10", streams], &echo);
        }
    }
}

#[test]
fn h2load_over_h1() {
    let Some(h2load) = find("h2load", "h2load_over_h1") else { return };
    let server = Server::start_both();
    for url in server.both() {
        let ping = format!("{url}/ping");
        // With -m, requests are pipelined.
        for depth in ["-m1", "-m10", "-m100"] {
            load(&h2load, 20_000, &["--h1", "-c10", depth], &ping);
        }
    }
}

#[test]
fn h2load_posts() {
    let Some(h2load) = find("h2load", "h2load_posts") else { return };
    let directory = scratch("h2load_posts");
    let server = Server::start_both();
    for url in server.both() {
        let echo = format!("{url}/echo");
        for (size, requests) in [(4096, 5_000), (65_536, 1_000)] {
            let data = format!("--data={}", random_file(&directory, size).display());
            load(&h2load, requests, &["-c10", "-m10", &data], &echo);
            load(&h2load, requests, &["--h1", "-c10", &data], &echo);
        }
    }
}

#[test]
fn h2load_with_small_windows() {
    let Some(h2load) = find("h2load", "h2load_with_small_windows") else { return };
    let server = Server::start_both();
    for url in server.both() {
        let echo = format!("{url}/echo?size=100000");
        load(&h2load, 500, &["-c5", "-m10", "-w14", "-W15"], &echo);
    }
}

#[test]
fn h2load_with_many_connections() {
    let Some(h2load) = find("h2load", "h2load_with_many_connections") else { return };
    let server = Server::start_both();
    for url in server.both() {
        load(&h2load, 5_000, &["-c500", "-m2"], &format!("{url}/ping"));
    }
}

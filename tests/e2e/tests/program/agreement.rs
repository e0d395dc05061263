//! `bolide load` compared with wrk and h2load on a foreign server, whose rate is known: nginx lets so many
//! requests per second through. No core is full then, and all must say the same.

use std::path::Path;

use bolide_launcher::{Nginx, find, program, run, scratch};

/// Rate that nginx lets through, in requests per second.
const RATE: f64 = 400.0;

/// Requests in flight at once: more than nginx answers in a hundredth of a second, so that it
/// always has some to hold back.
const IN_FLIGHT: f64 = 20.0;

/// How far two tools may be apart. nginx counts in milliseconds, and a run of three seconds has a
/// first and a last request.
const TOLERANCE: f64 = 0.06;

/// Requests per second, and their mean latency in ms.
#[derive(Debug, Clone, Copy)]
struct Figures {
    rate: f64,
    mean_ms: f64,
}

impl Figures {
    #[track_caller]
    fn agrees_with(self, other: Self, what: &str) {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() <= TOLERANCE;
        assert!(
            near(self.rate, other.rate) && near(self.mean_ms, other.mean_ms),
            "{what}: {self:?} and {other:?}"
        );
    }
}

/// nginx with a limit for its one location, over HTTP/1.1 or h2c.
fn nginx(nginx: &Path, http2: &str) -> Nginx {
    let directory = scratch(&format!("agreement{}", http2.trim()));
    std::fs::write(directory.join("six"), "six").expect("target can be written");
    Nginx::start(nginx, &directory, |address| {
        format!(
            "keepalive_requests 1000000;\n\
             limit_req_zone $binary_remote_addr zone=all:1m rate={RATE}r/s;\n\
             server {{ listen {address}{http2}; location = /six {{ limit_req zone=all burst=1000;\n\
             try_files /six =404; root {}; }} }}",
            directory.display()
        )
    })
}

fn ours(arguments: &[&str], url: &str) -> Figures {
    let common = ["load", "-D", "3", "--warm-up", "1", "--quiet", "--json", "-"];
    let json = run(program(), [&common[..], arguments, &[url]].concat()).well().text();
    let report: serde_json::Value = serde_json::from_str(&json).expect("a report in JSON");
    let figure = |path: &str| {
        let found = report["phases"][0].pointer(path).and_then(serde_json::Value::as_f64);
        found.unwrap_or_else(|| panic!("no {path} in {json}"))
    };
    Figures {
        rate: figure("/counts/succeeded") / (figure("/elapsed_ns") / 1e9),
        mean_ms: figure("/latency/mean_ns") / 1e6,
    }
}

/// The figure that is the `index`-th word after `before`; times are in ms.
#[track_caller]
fn after(text: &str, before: &str, index: usize) -> f64 {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
    let word = rest.split_whitespace().nth(index).expect("a figure");
    for (unit, ms) in [("us", 0.001), ("ms", 1.0), ("s", 1000.0), ("", 1.0)] {
        if let Some(value) = word.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok()) {
            return value * ms;
        }
    }
    panic!("{word:?} after {before:?} is no figure")
}

#[test]
fn wrk_and_bolide_load_agree_over_http_1() {
    let name = "wrk_and_bolide_load_agree_over_http_1";
    let (Some(server), Some(wrk)) = (find("nginx", name), find("wrk", name)) else { return };
    let nginx = nginx(&server, "");
    let url = format!("{}/six", nginx.url());
    let own = ours(&["--http1", "-c", "20"], &url);
    let text = run(&wrk, ["-t1", "-c20", "-d4s", &url]).well().text();
    let theirs =
        Figures { rate: after(&text, "Requests/sec:", 0), mean_ms: after(&text, "Latency", 0) };
    own.agrees_with(theirs, "wrk");
    own.agrees_with(Figures { rate: RATE, mean_ms: IN_FLIGHT / RATE * 1e3 }, "what nginx was told");
}

#[test]
fn h2load_and_bolide_load_agree_over_h2c() {
    let name = "h2load_and_bolide_load_agree_over_h2c";
    let (Some(server), Some(h2load)) = (find("nginx", name), find("h2load", name)) else { return };
    let nginx = nginx(&server, " http2");
    let url = format!("{}/six", nginx.url());
    let own = ours(&["--http2", "-c", "4", "-m", "5"], &url);
    let text = run(&h2load, ["-t1", "-c4", "-m5", "-D", "4", &url]).well().text();
    // The smallest, the largest, the mean.
    let mean_ms = after(&text, "time for request:", 2);
    let theirs = Figures { rate: after(&text, "finished in", 1), mean_ms };
    own.agrees_with(theirs, "h2load");
    own.agrees_with(Figures { rate: RATE, mean_ms: IN_FLIGHT / RATE * 1e3 }, "what nginx was told");
}

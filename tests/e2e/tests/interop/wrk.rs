//! wrk: HTTP/1.1 as fast as it can.

use bolide_launcher::{Server, find, run};

#[test]
fn wrk_over_h1() {
    let Some(wrk) = find("wrk", "wrk_over_h1") else { return };
    let server = Server::start_both();
    for url in server.both() {
        for path in ["/ping", "/echo?size=100000"] {
            let url = format!("{url}{path}");
            let text = run(&wrk, ["-t1", "-c20", "-d1s", &url]).well().text();
            assert!(!text.contains("Non-2xx"), "{url}: {text}");
            assert!(!text.contains("Socket errors"), "{url}: {text}");
            let count = text
                .lines()
                .find_map(|line| line.trim().split(" requests in").next()?.parse::<u64>().ok());
            assert!(count.is_some_and(|count| count > 100), "{url}: {text}");
        }
    }
}

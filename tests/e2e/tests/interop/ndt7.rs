//! ndt7-client-go 0.10.1, unmodified: both directions, with and without TLS.

use bolide_launcher::{Server, find, run, scratch};
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
    let folder = archive.display().to_string();
    let server = Server::start(&[
        "--http",
        "127.0.0.1:0",
        "--https",
        "127.0.0.1:0",
        "--ndt7-archive",
        &folder,
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
    let files = std::fs::read_dir(&archive).expect("it is there");
    let names: Vec<_> =
        files.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect();
    let count = |kind: &str| names.iter().filter(|name| name.starts_with(kind)).count();
    assert_eq!((count("ndt7-download-"), count("ndt7-upload-")), (2, 2), "{names:?}");
}

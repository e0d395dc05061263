//! `/.well-known/nq` and what it names.

use bolide_measurement::Ndt7Settings;

use crate::served::Served;

#[test]
fn the_configuration_names_what_there_is() {
    let served = Served::new(Ndt7Settings::default());
    let get = |path: &str| {
        served.ask(&format!("GET {path} HTTP/1.1\r\nhost: a:1\r\nconnection: close\r\n\r\n"), 4096)
    };
    for path in ["/.well-known/nq", "/config"] {
        let response = get(path);
        assert!(response.contains("\r\ncontent-type: application/json\r\n"), "{response}");
        let (_, body) = response.split_once("\r\n\r\n").expect("a body");
        let config: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(config["version"], 1);
        for (new, old, path) in [
            ("small_download_url", "small_https_download_url", "small"),
            ("large_download_url", "large_https_download_url", "large"),
            ("upload_url", "https_upload_url", "slurp"),
        ] {
            let url = format!("http://a:1/{path}");
            assert_eq!(
                (&config["urls"][new], &config["urls"][old]),
                (&url.clone().into(), &url.into())
            );
        }
    }
    let small = get("/small");
    assert!(
        small.contains("\r\ncontent-length: 1\r\n") && small.ends_with("\r\n\r\n\0"),
        "{small}"
    );
    let large = get("/large");
    assert!(large.contains("\r\ncontent-length: 8589934592\r\n"), "{large}");
    assert!(large.ends_with('\0'));
}

#[test]
fn uploads_of_any_size_are_taken() {
    let served = Served::new(Ndt7Settings::default());
    let body = "x".repeat(3 << 20);
    let request = format!(
        "POST /slurp HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(served.ask(&request, 4096).starts_with("HTTP/1.1 200 "));
    let empty = "POST /slurp HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert!(served.ask(empty, 4096).starts_with("HTTP/1.1 200 "));
}

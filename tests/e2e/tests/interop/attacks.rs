//! Attacks on HTTP/3 that a client can only make with packets of its own: each ends as it must, keeps no memory, and
//! leaves the other clients served.

use bolide_launcher::{Server, root, run, scratch};
use serde_json::Value;

use crate::http3::python;

/// How the server ends the connections of an attack.
const ENDS: [(&str, &str); 11] = [
    ("NEW_CONNECTION_ID", "CONNECTION_ID_LIMIT_ERROR"),
    ("optimistic ACK", "PROTOCOL_VIOLATION"),
    ("ACK ranges", "PROTOCOL_VIOLATION"),
    ("CRYPTO gaps", "INTERNAL_ERROR"),
    ("unknown frame", "H3_EXCESSIVE_LOAD"),
    ("SETTINGS", "H3_FRAME_UNEXPECTED"),
    ("QPACK encoder stream", "QPACK_ENCODER_STREAM_ERROR"),
    ("rapid reset", "H3_EXCESSIVE_LOAD"),
    ("made you reset", "H3_EXCESSIVE_LOAD"),
    ("blocked sections", "QPACK_DECOMPRESSION_FAILED"),
    ("QPACK bomb", "H3_EXCESSIVE_LOAD"),
];

/// Most memory that an attack may make the server keep, in bytes.
const MEMORY_BYTES: i64 = 24 << 20;

/// Most that comes back to who sends first packets and says nothing more, for each byte (RFC 9000 §8.1).
const AMPLIFICATION: u64 = 3;

#[test]
fn attacks_over_http3_cost_the_others_nothing() {
    let Some(python) = python("attacks_over_http3_cost_the_others_nothing") else { return };
    let server = Server::start(&["--https", "127.0.0.1:0"]);
    let script = root().join("tests/e2e/clients/python/attacks.py").display().to_string();
    let address = server.https().strip_prefix("https://").unwrap().to_owned();
    let found = scratch("attacks_over_http3").join("found.json");
    let (pid, file) = (server.id().to_string(), found.display().to_string());
    let words = [&script, "--seconds", "0.3", "--json", &file, &address, "/ping", &pid];
    let text = run(&python, words).well().text();
    let found: Value = serde_json::from_str(&std::fs::read_to_string(found).unwrap()).unwrap();
    let attacks = found.as_object().unwrap();
    assert!(attacks.len() > 30, "{text}");
    for (name, attack) in attacks {
        let kept = attack["memory_bytes"].as_i64().unwrap();
        assert!(kept < MEMORY_BYTES, "{name} keeps {kept} bytes: {text}");
    }
    for (name, end) in ENDS {
        let count = attacks[name]["ends"][end].as_u64();
        assert!(count.is_some_and(|count| count > 0), "{name} does not end by {end}: {text}");
    }
    let first = &attacks["first packets"];
    let [sent, back] = ["sent_bytes", "received_bytes"].map(|bytes| first[bytes].as_u64().unwrap());
    assert!(sent > 0 && back <= AMPLIFICATION * sent, "{back} bytes for {sent}");
    assert_eq!(attacks["forged reset"]["ends"]["the victim is served"], 1, "{text}");
}

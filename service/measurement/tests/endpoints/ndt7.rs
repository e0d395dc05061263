//! `/ndt/v7/download` and `/ndt/v7/upload`, as a client of the protocol uses them.

use bolide_measurement::Ndt7Settings;
use serde_json::Value;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message};

use crate::served::Served;

const PROTOCOL: &str = "net.measurementlab.ndt.v7";

#[test]
fn what_is_asked_wrongly_is_refused_in_words() {
    let served = Served::new(Ndt7Settings::default());
    for path in ["/ndt/v7/download", "/ndt/v7/upload"] {
        let (status, text) = served.websocket(path, None).expect_err("no subprotocol");
        assert_eq!(status, 400);
        assert!(text.contains(PROTOCOL), "{text}");
        assert_eq!(served.websocket(path, Some("ndt")).expect_err("another one").0, 400);
        let path = format!("{path}?early_exit=1");
        assert_eq!(served.websocket(&path, Some(PROTOCOL)).expect_err("a wrong value").0, 400);
    }
}

#[test]
fn a_download_grows_its_messages_and_ends_when_enough_has_arrived() {
    let served = Served::new(Ndt7Settings::default());
    let path = "/ndt/v7/download?early_exit=250&client_name=test";
    let mut socket = served.websocket(path, Some(PROTOCOL)).expect("it is granted");
    let (mut bytes, mut sizes, mut measurements) = (0, Vec::new(), Vec::new());
    let close = loop {
        match socket.read().expect("a message in time") {
            Message::Binary(message) => {
                bytes += message.len();
                sizes.push(message.len());
                sizes.dedup();
            }
            Message::Text(text) => {
                measurements.push(serde_json::from_str::<Value>(text.as_str()).expect("JSON"));
            }
            Message::Close(close) => break close,
            other => panic!("{other:?}"),
        }
    };
    assert!(bytes >= 250_000_000, "{bytes}");
    assert_eq!(sizes, [1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20]);
    let reason = "Done sending".into();
    assert_eq!(close, Some(CloseFrame { code: CloseCode::Normal, reason }));
    assert!(matches!(socket.read(), Err(Error::ConnectionClosed)));
    let last = measurements.last().expect("one is sent at the end");
    assert_eq!((&last["Origin"], &last["Test"]), (&"server".into(), &"download".into()));
    assert!(last["AppInfo"]["NumBytes"].as_u64() >= Some(250_000_000), "{last}");
    assert!(last["TCPInfo"]["BytesAcked"].as_u64() >= Some(250_000_000), "{last}");
    assert!(last["TCPInfo"]["MinRTT"].as_u64() > Some(0), "{last}");
    assert_eq!(last["ConnectionInfo"]["Server"], served.address.to_string());
}

#[test]
fn an_upload_is_measured_by_the_server_and_archived() {
    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(Ndt7Settings { archive: Some(directory.path().to_owned()) });
    let path = "/ndt/v7/upload?client_name=test";
    let mut socket = served.websocket(path, Some(PROTOCOL)).expect("it is granted");
    let began = std::time::Instant::now();
    let mut sent = 0_u64;
    while began.elapsed() < std::time::Duration::from_millis(600) {
        socket.send(Message::binary(vec![0; 1 << 16])).expect("it is open");
        sent += 1 << 16;
    }
    socket.send(Message::text("{\"Origin\":\"client\"}")).expect("it is open");
    socket.close(None).expect("it is open");
    let mut measurements = Vec::new();
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => {
                measurements.push(serde_json::from_str::<Value>(text.as_str()).expect("JSON"));
            }
            Ok(Message::Close(_)) => {}
            Err(Error::ConnectionClosed) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(measurements.len() >= 2, "{measurements:?}");
    let (first, last) = (&measurements[0], &measurements[measurements.len() - 1]);
    for measurement in [first, last] {
        let received = measurement["TCPInfo"]["BytesReceived"].as_u64().expect("a number");
        assert!(received > 0 && measurement["TCPInfo"]["ElapsedTime"].as_u64() > Some(200_000));
        assert!(measurement["AppInfo"]["NumBytes"].as_u64() <= Some(sent + 100));
    }
    // The file is renamed once it is whole.
    let file = loop {
        let mut files = std::fs::read_dir(directory.path()).expect("it is there");
        let name = files.find_map(|file| file.ok()?.file_name().into_string().ok());
        match name {
            Some(name) if name.ends_with(".json.gz") => break name,
            _ => std::thread::yield_now(),
        }
        assert!(began.elapsed().as_secs() < 60, "no file was written");
    };
    assert!(file.starts_with("ndt7-upload-"), "{file}");
    let file = std::fs::File::open(directory.path().join(file)).expect("it is there");
    let document: Value =
        serde_json::from_reader(flate2::read::GzDecoder::new(file)).expect("JSON");
    assert_eq!(document["Upload"]["ClientMeasurements"][0]["Origin"], "client");
    assert_eq!(document["Upload"]["ClientMetadata"][0]["Value"], "test");
    assert_eq!(document["Upload"]["ServerMeasurements"][0], *first);
}

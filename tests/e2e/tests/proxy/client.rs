//! `bolide::client` before foreign servers.

use std::io::Read;

use bolide::client::{Client, Trust};
use bolide_e2e::{SIZES, assert_same, random};
use bolide_launcher::{find, scratch};

use crate::behind::{Behind, nginx_before};
use crate::pairs;

fn client(behind: &Behind) -> Client {
    let certificate = std::fs::read(&behind.certificate).expect("it was written");
    Client::builder().trust(Trust::Pem(certificate)).build().expect("a client")
}

/// Asks by every way with bodies of every size: kept ones, and those that a reader yields.
fn exercise(behind: &Behind) {
    let client = client(behind);
    for (url, version) in behind.urls.iter().zip(["1", "2", "2"]) {
        let hello = client.get(url).send().expect("a response").text().expect("text");
        assert!(hello.starts_with(&format!("hello from {version}")), "{url}: {hello}");
        for (seed, size) in SIZES.iter().enumerate() {
            let body = random(*size, seed as u64);
            let response =
                client.post(url).body(body.clone()).send().expect("a response").collect();
            assert_same(&response.expect("all of it"), &body, &format!("{url}, {size} bytes"));
            let reader = std::io::Cursor::new(body.clone());
            let response =
                client.post(url).body_reader(reader).send().expect("a response").collect();
            assert_same(&response.expect("all of it"), &body, &format!("{url}, {size} bytes read"));
        }
        // The server sends back what it reads, which must be read meanwhile.
        let body = random(20 << 20, 7);
        let mut upload = client.post(url).start().expect("it begins");
        upload.send(body[..100_000].to_vec()).expect("it is taken");
        let mut response = upload.response().expect("a response");
        let rest = body[100_000..].to_vec();
        let writing = std::thread::spawn(move || {
            for piece in rest.chunks(50_000) {
                upload.send(piece.to_vec()).expect("it is taken");
            }
            upload.close(None);
        });
        let mut echoed = Vec::new();
        response.read_to_end(&mut echoed).expect("all of it");
        writing.join().expect("all of it was taken");
        assert_same(&echoed, &body, &format!("{url}, streamed"));
    }
}

#[test]
fn a_client_asks_node() {
    let Some(behind) = pairs::node("a_client_asks_node") else { return };
    exercise(&behind);
}

#[test]
fn a_client_asks_go_and_reads_its_events() {
    let Some(behind) = pairs::go("a_client_asks_go") else { return };
    exercise(&behind);
    let client = client(&behind);
    for url in &behind.urls {
        let events = client.get(&format!("{url}/events")).events();
        let data: Vec<_> = events.map(|event| event.expect("an event").data).collect();
        assert_eq!(data, ["event 1", "event 2", "event 3"], "{url}");
    }
}

#[test]
fn a_client_asks_nginx() {
    let Some(nginx) = find("nginx", "a_client_asks_nginx") else { return };
    let origin = bolide_launcher::Server::start_both();
    let nginx = nginx_before(origin.http(), &nginx, &scratch("a_client_asks_nginx"));
    let client = Client::new().expect("a client");
    // nginx closes a connection after 1000 requests: the next goes over another.
    for _ in 0..1100 {
        let url = format!("{}/ping", nginx.url());
        assert_eq!(client.get(&url).send().expect("a response").text().expect("text"), "pong");
    }
    let mut response =
        client.get(&format!("{}/echo?size=10000000", nginx.url())).send().expect("one");
    let mut count = 0;
    while let Some(piece) = response.chunk().expect("more, or the end") {
        count += piece.len();
    }
    assert_eq!(count, 10_000_000);
}

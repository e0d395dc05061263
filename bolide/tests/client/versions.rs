//! Every version that a client speaks, and connections that are used again.

use bolide::client::{Client, ErrorKind, Trust, Versions};
use bolide::http::Version;

use crate::scene::{Ours, Scripted};

#[test]
fn each_way_speaks_its_version() {
    let ours = Ours::new();
    let client = ours.client().build().expect("a client");
    let expected = [
        ("HTTP/1.1", Version::HTTP_11),
        ("HTTP/2.0", Version::HTTP_2),
        ("HTTP/2.0", Version::HTTP_2),
    ];
    for (url, (text, version)) in ours.urls("/version").iter().zip(expected) {
        let mut response = client.get(url).send().expect("a response");
        assert_eq!((response.status().as_u16(), response.version()), (200, version), "{url}");
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(response.text().expect("text"), text, "{url}");
    }
}

#[test]
fn a_client_speaks_only_what_it_is_told_to() {
    let ours = Ours::new();
    let [http, _, https] = ours.urls("/version");
    for (versions, expected) in [(Versions::Http1, "HTTP/1.1"), (Versions::Http2, "HTTP/2.0")] {
        let client = ours.client().versions(versions).build().expect("a client");
        for url in [&http, &https] {
            let text = client.get(url).send().expect("a response").text().expect("text");
            assert_eq!(text, expected, "{url}");
        }
    }
}

#[test]
fn a_client_speaks_http3_if_it_is_told_to() {
    let ours = Ours::new();
    let [http, _, https] = ours.urls("/version");
    let client = ours.client().versions(Versions::Http3).build().expect("a client");
    for _ in 0..3 {
        let mut response = client.get(&https).send().expect("a response");
        assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_3));
        assert_eq!(response.text().expect("text"), "HTTP/3.0");
    }
    let url = https.replace("/version", "/pattern/100000");
    let open: Vec<_> = (0..50).map(|_| client.get(&url).send().expect("a response")).collect();
    for mut response in open {
        assert_eq!(response.collect().expect("all of it").len(), 100_000);
    }
    let error = client.get(&http).send().unwrap_err();
    assert!(error.to_string().contains("HTTP/3 needs a URL with https"), "{error}");
}

#[test]
fn a_certificate_that_is_not_trusted_is_refused_before_anything_is_asked() {
    let (ours, other) = (Ours::new(), Ours::new());
    let client = Client::builder().trust(Trust::Pem(other.certificate.clone())).build();
    let error = client.expect("a client").get(&ours.urls("/version")[2]).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls);
    assert!(error.is_retry_safe() && error.to_string().contains("certificate"), "{error}");
    let trusting = Client::builder().trust(Trust::Any).build().expect("a client");
    assert!(trusting.get(&ours.urls("/version")[2]).send().is_ok());
}

#[test]
fn connections_are_used_again_and_shared_by_threads() {
    let behind = Scripted::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let client = Client::new().expect("a client");
    for _ in 0..5 {
        assert_eq!(client.get(&behind.url("/")).send().unwrap().text().unwrap(), "ok");
    }
    assert_eq!(behind.connections(), 1);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (client, url) = (client.clone(), behind.url("/"));
            std::thread::spawn(move || {
                for _ in 0..50 {
                    assert_eq!(client.get(&url).send().unwrap().text().unwrap(), "ok");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("every response came");
    }
    assert!(behind.connections() <= 9, "{}", behind.connections());
}

#[test]
fn many_requests_share_one_connection_of_http2() {
    let ours = Ours::new();
    let client = ours.client().build().expect("a client");
    let url = &ours.urls("/pattern/100000")[1];
    let open: Vec<_> = (0..50).map(|_| client.get(url).send().expect("a response")).collect();
    for mut response in open {
        assert_eq!(response.collect().expect("all of it").len(), 100_000);
    }
}

#[test]
fn a_unix_socket_is_asked_by_its_path() {
    use std::io::{Read, Write};
    let path = std::env::temp_dir().join(format!("bolide-client-{}", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a path");
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = [0; 1024];
        let count = stream.read(&mut head).expect("a head");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nunix").expect("it reads");
        String::from_utf8_lossy(&head[..count]).into_owned()
    });
    let client = Client::new().expect("a client");
    let response = client.get("http://service/x").unix_socket(&path).send();
    let _ = std::fs::remove_file(&path);
    assert_eq!(response.expect("a response").text().expect("text"), "unix");
    let head = serving.join().expect("it was asked");
    assert!(head.starts_with("GET /x HTTP/1.1\r\nhost: service\r\n"), "{head}");
}

#[test]
fn of_several_addresses_the_one_that_answers_is_used() {
    let behind = Scripted::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::new().expect("a client");
    let via = [gone, behind.address].map(bolide::client::Destination::Inet);
    assert_eq!(client.get("http://a/").via(via).send().unwrap().text().unwrap(), "ok");
}

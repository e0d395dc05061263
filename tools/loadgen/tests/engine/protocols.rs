//! TLS, ALPN, resumption, trust, Unix sockets, and what an HTTP/2 server may cost.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime};

use bolide_connection::{Identity, ServerTls, WallClock};
use bolide_probe::engine::Engine;
use bolide_probe::plan::{Load, Phase, Plan, ServerAddress, Timeouts, TlsTrust, Version};
use bolide_probe::progress::{Control, Runner};
use bytes::Bytes;

use crate::plans::{Free, h2_plan, lasting, plan, prepare, requests, run};
use crate::planted::{Behaviour, Planted};

/// A server that speaks TLS, and the certificate that it shows.
fn tls_server() -> (Planted, Bytes) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let pem = certificate.pem();
    let identity = Identity::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let tls = ServerTls::new(&identity, WallClock(SystemTime::now)).unwrap();
    (Planted::start(Behaviour { tls: Some(tls), ..Behaviour::default() }), Bytes::from(pem))
}

fn https(server: &Planted, version: Version) -> Plan {
    let mut plan = plan(server.address);
    plan.origin.is_https = true;
    plan.origin.authority = format!("localhost:{}", server.address.port());
    plan.version = version;
    plan
}

#[test]
fn alpn_decides_unless_one_version_is_asked_for() {
    let (server, pem) = tls_server();
    for (version, expected) in
        [(Version::Negotiated, "h2"), (Version::Http1, "http/1.1"), (Version::Http2, "h2")]
    {
        let mut plan = https(&server, version);
        plan.tls.trust = TlsTrust::Roots(pem.clone());
        let mut engine = prepare(&plan);
        assert_eq!(engine.protocol(), expected);
        let tls = engine.tls().unwrap();
        assert_eq!(
            (tls.version.as_str(), tls.cipher_suite.as_str()),
            ("TLSv1.3", "TLS_AES_128_GCM_SHA256")
        );
        let report = engine.run(&requests(200), &mut |_| Control::Continue);
        assert_eq!((report.counts.succeeded, report.counts.failed), (200, 0));
        assert_eq!((report.times.handshake.count, report.handshakes.resumed_count), (4, 0));
    }
}

#[test]
fn sessions_are_resumed_only_when_asked_for() {
    let (server, _) = tls_server();
    for resume in [false, true] {
        let mut plan = https(&server, Version::Http2);
        plan.tls.resume = resume;
        plan.connections = 1;
        let phase = Phase { load: Load::Connect, ..requests(20) };
        let report = run(&plan, &phase);
        assert_eq!(report.counts.succeeded, 20);
        let resumed = report.handshakes.resumed_count;
        assert!(if resume { resumed >= 18 } else { resumed == 0 }, "{resumed}");
    }
}

#[test]
fn a_certificate_that_nobody_trusts_is_a_mistake_with_a_way_out() {
    let (server, _) = tls_server();
    let (other, _) = tls_server();
    let (_, foreign) = tls_server();
    let mut plan = https(&server, Version::Negotiated);
    plan.tls.trust = TlsTrust::Roots(foreign);
    let mistake = Engine::prepare(&plan, Box::new(Free)).unwrap_err().to_string();
    assert!(mistake.contains("the TLS handshake failed: "), "{mistake}");
    assert!(mistake.contains("--insecure"), "{mistake}");
    assert_eq!(server.requests() + other.requests(), 0);
}

#[test]
fn tls_with_somebody_who_does_not_speak_it_is_a_mistake() {
    let server = Planted::start(Behaviour::default());
    let mut plan = https(&server, Version::Negotiated);
    plan.timeouts.connect_timeout = Duration::from_millis(300);
    let mistake = Engine::prepare(&plan, Box::new(Free)).unwrap_err().to_string();
    assert!(mistake.contains("no connection to 127.0.0.1:"), "{mistake}");
}

#[test]
fn unix_sockets_are_asked_like_others() {
    let directory = std::env::temp_dir().join(format!("bolide-load-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("socket");
    // What an earlier run left there.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                // One request at a time is in flight, and it is short: each read is one.
                while socket.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                    socket
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nplanted")
                        .unwrap();
                }
            });
        }
    });
    let mut plan = plan("127.0.0.1:1".parse().unwrap());
    plan.origin.addresses = vec![ServerAddress::Unix(path)];
    let report = run(&plan, &requests(200));
    assert_eq!((report.counts.succeeded, report.counts.failed), (200, 0));
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_server_that_does_not_read_the_responses_to_its_pings_is_given_up() {
    const PINGS: usize = 4_000_000;
    const BLOCK: usize = 1000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"\0\0\0\x04\0\0\0\0\0").unwrap();
        let pings = b"\0\0\x08\x06\0\0\0\0\0pingping".repeat(BLOCK);
        drop(listener);
        (0..PINGS / BLOCK).take_while(|_| socket.write_all(&pings).is_ok()).count() * BLOCK
    });
    let connect_timeout = Duration::from_millis(500);
    let plan = Plan {
        connections: 1,
        threads: 1,
        timeouts: Timeouts { connect_timeout, ..h2_plan(address).timeouts },
        ..h2_plan(address)
    };
    // It may be given up before a request can be sent.
    if let Ok(mut engine) = Engine::prepare(&plan, Box::new(Free)) {
        let report = engine.run(&lasting(Load::Closed, 300), &mut |_| Control::Continue);
        assert_eq!(report.counts.succeeded, 0);
    }
    let taken = serving.join().unwrap();
    assert!(taken < PINGS, "as many were answered as it sent");
}

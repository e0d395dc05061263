//! Health checks beyond a GET: gRPC's protocol for them, and WebSocket's opening handshake (RFC 6455 §4).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bolide_reverse_proxy::{HealthCheck, HealthKind, ProxySettings};
use bolide_server::{HeaderMap, HeaderValue, Method, Response, Router, Server, collect};

use crate::scene::{Behind, Proxy, settings};
use crate::watch::{SHORT, until};

fn checked(url: &str, kind: HealthKind) -> ProxySettings {
    let check = HealthCheck::of(kind).interval(SHORT).fall(1).rise(1);
    settings(&[url]).health_check(check).expect("a check")
}

#[test]
fn a_grpc_service_is_up_while_it_says_that_it_is_serving() {
    let status = Arc::new(AtomicU8::new(1));
    let says = Arc::clone(&status);
    let router = move || {
        let says = Arc::clone(&says);
        let call = collect(move |_, body| {
            assert_eq!(&body[..], b"\0\0\0\0\x05\x0a\x03a.B");
            let mut trailers = HeaderMap::new();
            let (code, status) = match says.load(Ordering::SeqCst) {
                0 => ("5", vec![]),
                status => ("0", vec![0, 0, 0, 0, 2, 8, status]),
            };
            trailers.insert("grpc-status", HeaderValue::from_static(code));
            Response::from(bolide_server::Bytes::from(status)).trailers(None, trailers)
        });
        Router::new().handle(Method::POST, "/grpc.health.v1.Health/Check", call)
    };
    let server = Server::new().workers(1).http("127.0.0.1:0").start(router).expect("a server");
    let url = format!("h2c://{}", server.addresses()[0].expect("an address"));
    let proxy = Proxy::with(checked(&url, HealthKind::Grpc("a.B".to_owned())));
    until(&proxy.settings, 0, |stats| stats.health_checks > 2 && !stats.is_down);
    for ill in [2, 0] {
        status.store(ill, Ordering::SeqCst);
        until(&proxy.settings, 0, |stats| stats.is_down);
        status.store(1, Ordering::SeqCst);
        until(&proxy.settings, 0, |stats| !stats.is_down);
    }
    server.shut_down();
    server.join().expect("an orderly end");
}

/// Grants each WebSocket, with the right proof while `is_right` is 1.
fn upgrading(is_right: &Arc<AtomicU8>) -> Behind {
    let is_right = Arc::clone(is_right);
    Behind::new(move |talk, _| {
        let head = talk.head();
        let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: "));
        let Some(key) = key.filter(|_| head.starts_with("GET /chat ")) else { return };
        let proof = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
        let proof = BASE64_STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, proof.as_bytes()));
        let (status, proof) = match is_right.load(Ordering::SeqCst) {
            0 => ("200 OK", String::new()),
            1 => ("101 Switching Protocols", proof),
            _ => ("101 Switching Protocols", "wrong".to_owned()),
        };
        talk.send(&format!(
            "HTTP/1.1 {status}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {proof}\r\n\r\n"
        ));
        // Until the check gives the connection up.
        let _ = talk.rest();
    })
}

#[test]
fn a_server_of_websockets_is_up_while_handshakes_succeed() {
    let is_right = Arc::new(AtomicU8::new(1));
    let behind = upgrading(&is_right);
    let kind = HealthKind::WebSocket("/chat".to_owned());
    let proxy = Proxy::with(checked(&behind.url(), kind));
    until(&proxy.settings, 0, |stats| stats.health_checks > 2 && !stats.is_down);
    for wrong in [0, 2] {
        is_right.store(wrong, Ordering::SeqCst);
        until(&proxy.settings, 0, |stats| stats.is_down);
        is_right.store(1, Ordering::SeqCst);
        until(&proxy.settings, 0, |stats| !stats.is_down);
    }
}

#[test]
fn checks_that_cannot_be_are_refused() {
    for kind in [
        HealthKind::WebSocket("chat".to_owned()),
        HealthKind::Grpc("é".to_owned()),
        HealthKind::Grpc("x".repeat(128)),
    ] {
        assert!(settings(&["http://127.0.0.1:1"]).health_check(HealthCheck::of(kind)).is_err());
    }
}

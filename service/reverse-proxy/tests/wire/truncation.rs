//! RFC 9112 §9.8: a response over TLS that was cut off.

use std::net::Shutdown;
use std::sync::Arc;

use bolide_reverse_proxy::{ProxySettings, Trust, Upstream};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::scene::{Behind, Proxy, Talk};

/// A foreign server's TLS, which agrees to no protocol by ALPN, and its certificate in PEM.
fn foreign_tls() -> (Arc<ServerConfig>, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("one");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a certificate");
    (Arc::new(config), made.cert.pem())
}

/// What a client gets of a response whose server then ends the connection, saying so before or not.
fn passed_on(response: &'static str, says_so: bool) -> String {
    let (config, certificate) = foreign_tls();
    let behind = Behind::new(move |talk, _| {
        let socket = talk.stream.try_clone().expect("a socket");
        let connection = ServerConnection::new(Arc::clone(&config)).expect("settings that can be");
        let mut sealed = Talk::new(StreamOwned::new(connection, socket));
        sealed.head();
        sealed.send(response);
        if says_so {
            sealed.stream.conn.send_close_notify();
            sealed.stream.conn.write_tls(&mut sealed.stream.sock).expect("the proxy reads");
        }
        talk.stream.shutdown(Shutdown::Write).expect("it is open");
        talk.rest();
    });
    let upstream = Upstream::parse(&format!("https://{}", behind.address)).expect("an upstream");
    let trust = Trust::Pem(certificate.into_bytes());
    let settings = ProxySettings::trusting(vec![upstream], &trust).expect("settings");
    let proxy = Proxy::with(settings);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    client.rest()
}

#[test]
fn a_response_that_was_cut_off_over_tls_gets_no_last_chunk() {
    const UNFRAMED: &str = "HTTP/1.1 200 OK\r\n\r\nhello";
    let whole = passed_on(UNFRAMED, true);
    assert!(whole.ends_with("hello\r\n0\r\n\r\n"), "{whole}");
    let cut = passed_on(UNFRAMED, false);
    assert!(!cut.is_empty() && !cut.contains("\r\n0\r\n"), "{cut}");
    let framed = passed_on("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", false);
    assert!(framed.starts_with("HTTP/1.1 200") && framed.ends_with("hello"), "{framed}");
}

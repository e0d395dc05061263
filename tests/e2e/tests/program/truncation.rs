//! RFC 9112 §9.6 and §9.8: servers over TLS that end the connection before a response is complete.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bolide::client::{Client, ErrorKind, Trust};
use bolide_launcher::{Server, scratch};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const PATIENCE: Duration = Duration::from_secs(20);

/// A foreign server's TLS, which agrees to no protocol by ALPN, and its certificate in PEM.
fn foreign_tls() -> (Arc<ServerConfig>, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (Arc::new(config), made.cert.pem())
}

/// Answers one request, and ends the connection, saying so before or not.
fn answer(config: &Arc<ServerConfig>, socket: TcpStream, response: &str, says_so: bool) {
    let connection = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut sealed = StreamOwned::new(connection, socket);
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        sealed.read_exact(&mut byte).unwrap();
        request.push(byte[0]);
    }
    sealed.write_all(response.as_bytes()).unwrap();
    sealed.flush().unwrap();
    if says_so {
        sealed.conn.send_close_notify();
        sealed.conn.write_tls(&mut sealed.sock).unwrap();
    }
    sealed.sock.shutdown(Shutdown::Write).unwrap();
    // Until the other end closes the connection, too.
    let _ = sealed.sock.read_to_end(&mut Vec::new());
}

/// A server over TLS, each connection of which ends after one response.
struct Behind {
    url: String,
    certificate: String,
    connections: Arc<AtomicUsize>,
}

impl Behind {
    fn new(response: &'static str, says_so: bool) -> Self {
        let (config, certificate) = foreign_tls();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        thread::spawn(move || {
            for socket in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let config = Arc::clone(&config);
                thread::spawn(move || answer(&config, socket.unwrap(), response, says_so));
            }
        });
        Self { url, certificate, connections }
    }

    /// Returns how many connections there have been since the last call.
    fn connections(&self) -> usize {
        self.connections.swap(0, Ordering::SeqCst)
    }

    fn proxy(&self, test: &str) -> Server {
        let directory = scratch(test);
        std::fs::write(directory.join("ca.pem"), &self.certificate).unwrap();
        let text = format!(
            "[[listen]]\nhttp = \"127.0.0.1:0\"\n[[route]]\nproxy = \"one\"\n[[upstream]]\nname = \"one\"\n\
             servers = [\"{}\"]\nca = \"ca.pem\"\n",
            self.url
        );
        let file = directory.join("bolide.toml");
        std::fs::write(&file, text).unwrap();
        Server::start(&["--config", &file.display().to_string()])
    }
}

/// Returns what a client of the proxy gets.
fn ask(proxy: &Server, method: &str) -> String {
    let mut client = TcpStream::connect(Server::authority(proxy.http())).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let request =
        format!("{method} / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut seen = Vec::new();
    // The proxy may reset the connection of a response that it can't complete.
    let _ = client.read_to_end(&mut seen);
    String::from_utf8(seen).unwrap()
}

/// Returns what a client of the proxy gets of a response whose server then ends the connection.
fn passed_on(test: &str, response: &'static str, says_so: bool) -> String {
    ask(&Behind::new(response, says_so).proxy(test), "GET")
}

#[test]
fn a_response_that_was_cut_off_over_tls_gets_no_last_chunk() {
    const UNFRAMED: &str = "HTTP/1.1 200 OK\r\n\r\nhello";
    const FRAMED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    let test = "a_response_that_was_cut_off_over_tls_gets_no_last_chunk";
    let whole = passed_on(test, UNFRAMED, true);
    assert!(whole.ends_with("hello\r\n0\r\n\r\n"), "{whole}");
    let cut = passed_on(test, UNFRAMED, false);
    assert!(!cut.contains("\r\n0\r\n"), "{cut}");
    let framed = passed_on(test, FRAMED, false);
    assert!(framed.starts_with("HTTP/1.1 200") && framed.ends_with("hello"), "{framed}");
}

#[test]
fn a_connection_over_tls_that_ends_before_the_response_is_no_timeout() {
    let test = "a_connection_over_tls_that_ends_before_the_response_is_no_timeout";
    for (response, says_so) in [("", true), ("", false), ("HTTP/1.1 200", true)] {
        let behind = Behind::new(response, says_so);
        let proxy = behind.proxy(test);
        for (method, connections) in [("POST", 1), ("GET", 3)] {
            let failed = ask(&proxy, method);
            assert!(failed.starts_with("HTTP/1.1 502 "), "{method}: {failed}");
            assert!(failed.contains("error=http_response_incomplete"), "{method}: {failed}");
            assert_eq!(behind.connections(), connections, "GET is asked for again, twice");
        }
        let trust = Trust::Pem(behind.certificate.clone().into_bytes());
        let client = Client::builder().trust(trust).build().unwrap();
        for (request, connections) in [(client.post(&behind.url), 1), (client.get(&behind.url), 2)]
        {
            let error = request.send().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            assert_eq!(behind.connections(), connections, "GET is asked for again, once");
        }
    }
}

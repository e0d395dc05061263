//! Tunnels to a foreign server whose HTTP/2 takes none.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bolide_launcher::Server;

use crate::pairs::{go, proxy};

#[test]
fn an_upgrade_goes_by_http1_to_a_server_of_http2_over_tls() {
    let Some(behind) = go("an_upgrade_goes_by_http1") else { return };
    let certificate = behind.certificate.display().to_string();
    let server = proxy(&[&behind.urls[2]], &["--proxy-ca", &certificate]);
    for _ in 0..2 {
        let stream = TcpStream::connect(Server::authority(server.http()));
        let mut stream = stream.expect("the proxy listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let request =
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("it reads");
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            assert_eq!(stream.read(&mut byte).expect("a head"), 1);
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        stream.write_all(b"there and back").expect("it reads");
        let mut echo = [0; 14];
        stream.read_exact(&mut echo).expect("an echo");
        assert_eq!(&echo, b"there and back");
    }
}

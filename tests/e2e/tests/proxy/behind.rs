//! Foreign servers that echo.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bolide_launcher::{Nginx, free_address};

/// A server that runs; it is killed when this goes out of scope.
pub(crate) struct Behind {
    child: Child,
    /// HTTP/1.1, h2c and TLS, as the proxy names them.
    pub(crate) urls: Vec<String>,
    /// The certificate of the last.
    pub(crate) certificate: PathBuf,
    /// A Unix socket on which it speaks HTTP/1.1, as the proxy names it; Go alone has one.
    pub(crate) unix: String,
}

impl Drop for Behind {
    fn drop(&mut self) {
        // It may have ended on its own: then there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Behind {
    /// Starts a server that takes a key, a certificate and the path of a socket, and prints its three ports.
    pub(crate) fn start(program: &Path, arguments: &[&str], directory: &Path) -> Self {
        let (key, certificate) = identity(directory, Ipv4Addr::LOCALHOST.into());
        let socket = directory.join("socket");
        let mut child = Command::new(program)
            .args(arguments)
            .args([&key, &certificate, &socket])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server can be started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the server says its ports");
        let urls = ["http", "h2c", "https"].iter().zip(line.split_whitespace());
        let urls: Vec<_> =
            urls.map(|(scheme, port)| format!("{scheme}://127.0.0.1:{port}")).collect();
        assert_eq!(urls.len(), 3, "the server said {line:?}");
        Self { child, urls, certificate, unix: format!("unix:{}", socket.display()) }
    }
}

/// An nginx before another server: what it is asked, it asks `backend`.
pub(crate) fn nginx_before(backend: &str, program: &Path, directory: &Path) -> Nginx {
    Nginx::start(program, directory, |address| {
        format!(
            "server {{ listen {address}; client_max_body_size 0;\n\
             location / {{ proxy_pass {backend}; proxy_http_version 1.1; }} }}"
        )
    })
}

/// The same, asked over HTTP/1.1, h2c, TLS with HTTP/2, and a Unix socket: as the proxy names them.
pub(crate) fn nginx_of_each_version(
    backend: &str,
    program: &Path,
    directory: &Path,
) -> (Nginx, [String; 4]) {
    let (clear, secure) = (free_address(), free_address());
    let (key, certificate) = identity(directory, secure.ip());
    let socket = directory.join("socket");
    let nginx = Nginx::start(program, directory, |address| {
        format!(
            "ssl_certificate {}; ssl_certificate_key {};\n\
             server {{ listen {address}; listen unix:{}; listen {clear} http2; listen {secure} ssl http2;\n\
             client_max_body_size 0;\n\
             location / {{ proxy_pass {backend}; proxy_http_version 1.1; }} }}",
            certificate.display(),
            key.display(),
            socket.display()
        )
    });
    let urls = [
        nginx.url(),
        format!("h2c://{clear}"),
        format!("https://{secure}"),
        format!("unix:{}", socket.display()),
    ];
    (nginx, urls)
}

/// A key and a certificate for it, in files.
fn identity(directory: &Path, address: IpAddr) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(vec![address.to_string()]).unwrap();
    let (key, certificate) = (directory.join("key.pem"), directory.join("certificate.pem"));
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    (key, certificate)
}

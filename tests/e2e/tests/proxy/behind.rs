//! Foreign servers that echo.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bolide_launcher::Nginx;

/// A server that runs; it is killed when this goes out of scope.
pub(crate) struct Behind {
    child: Child,
    /// HTTP/1.1, h2c and TLS, as the proxy names them.
    pub(crate) urls: Vec<String>,
    /// The certificate of the last.
    pub(crate) certificate: PathBuf,
}

impl Drop for Behind {
    fn drop(&mut self) {
        // It may have ended on its own: then there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Behind {
    /// Starts a server that takes a key and a certificate, and prints its three ports.
    pub(crate) fn start(program: &Path, arguments: &[&str], folder: &Path) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let (key, certificate) = (folder.join("key.pem"), folder.join("certificate.pem"));
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        let mut child = Command::new(program)
            .args(arguments)
            .args([&key, &certificate])
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
        Self { child, urls, certificate }
    }
}

/// An nginx before another server: what it is asked, it asks `backend`.
pub(crate) fn nginx_before(backend: &str, program: &Path, folder: &Path) -> Nginx {
    Nginx::start(program, folder, |address| {
        format!(
            "server {{ listen {address}; client_max_body_size 0;\n\
             location / {{ proxy_pass {backend}; proxy_http_version 1.1; }} }}"
        )
    })
}

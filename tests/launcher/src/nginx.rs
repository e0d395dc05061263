//! nginx, as a server for tests.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// How long nginx may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// A free TCP address for a server that binds it by itself. It is on a loopback address of its own: a free port of
/// 127.0.0.1 could go to another server, or to a client's connection, before the server binds it.
pub fn free_address() -> SocketAddr {
    static COUNT: AtomicU8 = AtomicU8::new(0);
    let [.., high, low] = std::process::id().to_be_bytes();
    let second = 1 + COUNT.fetch_add(1, Ordering::Relaxed) % 200;
    let listener = TcpListener::bind((Ipv4Addr::new(127, second, high, low), 0));
    listener.and_then(|listener| listener.local_addr()).expect("a free port")
}

/// An nginx that runs; it is killed when this goes out of scope.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    address: String,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended on its own: then there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Nginx {
    /// Starts nginx in the foreground, as one process, with all of its files in `directory`. `http` gives
    /// what stands in its `http` block, for the address to listen on.
    pub fn start(program: &Path, directory: &Path, http: impl Fn(&str) -> String) -> Self {
        let address = free_address().to_string();
        let configuration = directory.join("nginx.conf");
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log error.log crit;\n\
             events {{ worker_connections 2048; }}\n\
             http {{ access_log off; default_type text/plain; client_body_temp_path body;\n\
             proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;\n\
             scgi_temp_path scgi;\n{}\n}}\n",
            http(&address)
        );
        std::fs::write(&configuration, text).expect("target can be written");
        let child = Command::new(program)
            .arg("-p")
            .arg(directory)
            .arg("-c")
            .arg(&configuration)
            .args(["-e", "error.log"])
            .stdin(Stdio::null())
            .spawn()
            .expect("nginx can be started");
        let nginx = Self { child, address };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&nginx.address).is_err() {
            assert!(Instant::now() < deadline, "nginx doesn't listen");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        nginx
    }

    /// Returns where it listens: an IP address and a port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The same as an origin of `http`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

//! The routes of `bolide serve`, by nginx; another server echoes for it.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The version whose deviations are listed.
pub(crate) const VERSION: &str = "nginx/1.22.";

/// A running nginx.
pub(crate) struct Nginx {
    pub(crate) address: String,
    child: Child,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended on its own: then there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts nginx in the foreground, as one process, with all of its files under `target`.
pub(crate) fn start(program: &Path, backend: &str) -> Nginx {
    let folder = bolide_launcher::scratch("nginx");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = port.expect("a free port").to_string();
    let configuration = folder.join("nginx.conf");
    let files = bolide_conformance::folder("nginx").display().to_string();
    std::fs::write(&configuration, configured(&address, backend, &files))
        .expect("target can be written");
    let child = Command::new(program)
        .arg("-p")
        .arg(&folder)
        .arg("-c")
        .arg(&configuration)
        .args(["-e", "error.log"])
        .stdin(Stdio::null())
        .spawn()
        .expect("nginx can be started");
    let nginx = Nginx { address, child };
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(&nginx.address).is_err() {
        assert!(Instant::now() < deadline, "nginx doesn't listen");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    nginx
}

fn configured(address: &str, backend: &str, files: &str) -> String {
    format!(
        r#"
daemon off;
master_process off;
pid nginx.pid;
error_log error.log crit;
events {{}}
http {{
    access_log off;
    default_type text/plain;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen {address};
        client_max_body_size 0;
        location = /ping {{
            if ($request_method !~ "^(GET|HEAD)$") {{
                add_header Allow "GET, HEAD" always;
                return 405;
            }}
            return 200 pong;
        }}
        location = /echo {{
            proxy_pass http://{backend};
            proxy_http_version 1.1;
        }}
        location /files/ {{
            root {files};
            disable_symlinks on from={files};
        }}
        location / {{
            return 404;
        }}
    }}
}}
"#
    )
}

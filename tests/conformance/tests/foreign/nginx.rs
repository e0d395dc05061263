//! The routes of `bolide serve`, by nginx; another server echoes for it.

use std::path::Path;

use bolide_launcher::Nginx;

/// The version whose deviations are listed.
pub(crate) const VERSION: &str = "nginx/1.22.";

/// Starts nginx; what is to be echoed, it passes on to `backend`.
pub(crate) fn start(program: &Path, backend: &str) -> Nginx {
    let files = bolide_conformance::directory("nginx").display().to_string();
    Nginx::start(program, &bolide_launcher::scratch("nginx"), |address| {
        configured(address, backend, &files)
    })
}

fn configured(address: &str, backend: &str, files: &str) -> String {
    format!(
        r#"
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
"#
    )
}

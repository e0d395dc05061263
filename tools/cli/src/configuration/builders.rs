//! Check that a file can set what a program can set by builders.

use super::print;

/// A builder, its source, and each of its settings: the key or section that stands for it in the file, if any.
type Builder = (&'static str, &'static str, &'static [(&'static str, Option<&'static str>)]);

const BUILDERS: &[Builder] = &[
    (
        "Server",
        include_str!("../../../../service/server/src/server.rs"),
        &[
            ("http", Some("http =")),
            ("https", Some("https =")),
            // None: a socket that is open has no place in a file.
            ("listener", None),
            ("http3", Some("http3 =")),
            ("congestion", Some("http3-congestion =")),
            ("workers", Some("workers =")),
            ("proxy_protocol", Some("proxy-protocol =")),
            ("ingress", Some("trusted =")),
            ("limits", Some("[limits]")),
            ("drain", Some("drain =")),
            // None: the time of day is the system's.
            ("wall_clock", None),
            ("metrics", Some("[admin]")),
            ("access_log", Some("[access-log]")),
            ("profile", Some("[profile]")),
            ("server_timing", Some("server-timing =")),
            // None: the program has given its servers names.
            ("name", None),
            // None: code.
            ("around_workers", None),
        ],
    ),
    (
        "StaticFiles",
        include_str!("../../../../service/static-files/src/site.rs"),
        &[
            ("under", Some("path =")),
            ("index", Some("index =")),
            ("precompressed", Some("precompressed =")),
            ("compress", Some("compress =")),
            ("listing", Some("listing =")),
            ("hidden", Some("hidden =")),
            ("sendfile", Some("sendfile =")),
            ("not_found", Some("not-found =")),
            ("fallback", Some("fallback =")),
            ("cache_control", Some("cache-control =")),
            ("cache", Some("cache-bytes =")),
            ("fresh", Some("fresh =")),
            ("waiting", Some("waiting-bytes =")),
            ("cached_file", Some("cached-file-bytes =")),
            ("offload", Some("offload-threads-count =")),
        ],
    ),
    (
        "ProxySettings",
        include_str!("../../../../service/reverse-proxy/src/settings.rs"),
        &[
            ("balance", Some("balance =")),
            ("sticky", Some("sticky =")),
            ("identity", Some("for servers that request one")),
            ("server_name", Some("server-name =")),
            ("proxy_protocol", Some("belong to one client: \"v1\"")),
            ("origin", Some("origin =")),
            ("rewrites_host", Some("rewrite-host =")),
            ("dot_segments", Some("dot-segments =")),
            // None: a random name does as well.
            ("pseudonym", None),
            ("limits", Some("connect-timeout =")),
            ("health_check", Some("health =")),
            // None: code.
            ("resolver", None),
        ],
    ),
    (
        "HealthCheck",
        include_str!("../../../../service/reverse-proxy/src/health.rs"),
        &[
            ("statuses", Some("health-statuses =")),
            ("interval", Some("health-interval =")),
            ("timeout", Some("health-timeout =")),
            ("rise", Some("health-rise-count =")),
            ("fall", Some("health-fall-count =")),
        ],
    ),
    (
        "StickyCookie",
        include_str!("../../../../service/reverse-proxy/src/affinity.rs"),
        &[
            ("path", Some("sticky =")),
            ("same_site", Some("same-site =")),
            ("max_age", Some("max-age =")),
            ("secret", Some("secret =")),
        ],
    ),
    (
        "Upstream",
        include_str!("../../../../service/reverse-proxy/src/upstream.rs"),
        &[("weight", Some("weight =")), ("http1_tunnels", Some("http1-tunnels ="))],
    ),
];

/// The methods that take a builder and return it.
fn settings(source: &str) -> Vec<&str> {
    let mut names: Vec<&str> = source
        .split("\n    pub fn ")
        .skip(1)
        .filter_map(|method| {
            let (name, rest) = method.split_once(['(', '<'])?;
            let (head, _) = rest.split_once(" {\n")?;
            let takes_itself = head.contains("mut self,") || head.starts_with("self,");
            (takes_itself && head.contains("Self")).then_some(name)
        })
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn every_setting_of_a_builder_has_its_key() {
    let printed = print();
    for (name, source, known) in BUILDERS {
        let mut listed: Vec<&str> = known.iter().map(|(setting, _)| *setting).collect();
        listed.sort_unstable();
        assert_eq!(settings(source), listed, "{name}: a builder or this table has changed");
        for (setting, key) in *known {
            if let Some(key) = key {
                assert!(printed.contains(key), "{name}::{setting}: --print-config has no `{key}`");
            }
        }
    }
}

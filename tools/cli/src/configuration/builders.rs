//! What a program can set by builders, a file can set too.

use super::print;

/// A builder's source, and each of its settings: what stands for it in the file, or why nothing does.
type Builder = (&'static str, &'static str, &'static [(&'static str, Setting)]);

enum Setting {
    /// A key, or a section.
    Key(&'static str),
    /// Why a file has no use for it.
    None(#[allow(dead_code, reason = "said to who reads this")] &'static str),
}

use Setting::{Key, None};

const BUILDERS: &[Builder] = &[
    (
        "Server",
        include_str!("../../../../service/server/src/server.rs"),
        &[
            ("http", Key("http =")),
            ("https", Key("https =")),
            ("listener", None("a socket that is open has no place in a file")),
            ("workers", Key("workers =")),
            ("limits", Key("[limits]")),
            ("drain", Key("drain =")),
            ("wall_clock", None("the time of day is the system's")),
            ("metrics", Key("[admin]")),
            ("access_log", Key("[access-log]")),
            ("profile", Key("[profile]")),
            ("server_timing", Key("server-timing =")),
            ("around_workers", None("code")),
        ],
    ),
    (
        "StaticFiles",
        include_str!("../../../../service/static-files/src/site.rs"),
        &[
            ("under", Key("path =")),
            ("index", Key("index =")),
            ("precompressed", Key("precompressed =")),
            ("compress", Key("compress =")),
            ("listing", Key("listing =")),
            ("hidden", Key("hidden =")),
            ("not_found", Key("not-found =")),
            ("cache_control", Key("cache-control =")),
            ("cache", Key("cache-bytes =")),
            ("fresh", Key("fresh =")),
            ("waiting", Key("waiting-bytes =")),
            ("offload", None("code: a pool of threads that several folders share")),
        ],
    ),
    (
        "ProxySettings",
        include_str!("../../../../service/reverse-proxy/src/settings.rs"),
        &[
            ("balance", Key("balance =")),
            ("origin", Key("origin =")),
            ("rewrites_host", Key("rewrite-host =")),
            ("limits", Key("connect-timeout =")),
            ("health_check", Key("health =")),
            ("resolver", None("code")),
        ],
    ),
    (
        "HealthCheck",
        include_str!("../../../../service/reverse-proxy/src/health.rs"),
        &[
            ("statuses", Key("health-statuses =")),
            ("interval", Key("health-interval =")),
            ("timeout", Key("health-timeout =")),
            ("rise", Key("health-rise-count =")),
            ("fall", Key("health-fall-count =")),
        ],
    ),
    (
        "Upstream",
        include_str!("../../../../service/reverse-proxy/src/upstream.rs"),
        &[("weight", Key("weight =")), ("http1_tunnels", Key("http1-tunnels ="))],
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
            if let Key(key) = key {
                assert!(printed.contains(key), "{name}::{setting}: --print-config has no `{key}`");
            }
        }
    }
}

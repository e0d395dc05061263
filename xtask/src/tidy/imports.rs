//! An arrow between our crates only ever points down: this table is the architecture.

use super::Finding;
use crate::manifest::{Kind, Package};

/// The rule's name.
pub(super) const NAME: &str = "imports";

/// Each crate with those of ours that it may name. A crate may only name crates above its own line.
const TABLE: &[(&str, &[&str])] = &[
    ("bolide-buffers", &[]),
    ("bolide-limits", &[]),
    ("bolide-semantics", &["bolide-buffers"]),
    ("bolide-hpack", &["bolide-buffers", "bolide-semantics"]),
    ("bolide-qpack", &["bolide-hpack", "bolide-semantics"]),
    ("bolide-h1", &["bolide-buffers", "bolide-limits", "bolide-semantics"]),
    ("bolide-h2", &["bolide-buffers", "bolide-hpack", "bolide-limits", "bolide-semantics"]),
    ("bolide-h3", &["bolide-buffers", "bolide-limits", "bolide-qpack", "bolide-semantics"]),
    ("bolide-websocket", &["bolide-buffers", "bolide-limits", "bolide-semantics"]),
    ("bolide-tls", &["bolide-buffers"]),
    ("bolide-quic", &["bolide-buffers", "bolide-h3", "bolide-semantics", "bolide-tls"]),
    (
        "bolide-connection",
        &[
            "bolide-buffers",
            "bolide-h1",
            "bolide-h2",
            "bolide-h3",
            "bolide-limits",
            "bolide-quic",
            "bolide-semantics",
            "bolide-tls",
            "bolide-websocket",
        ],
    ),
    ("bolide-eventloop", &["bolide-buffers", "bolide-limits"]),
    (
        "bolide-observability",
        &["bolide-connection", "bolide-eventloop", "bolide-limits", "bolide-semantics"],
    ),
    (
        "bolide-server",
        &[
            "bolide-buffers",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-limits",
            "bolide-observability",
            "bolide-semantics",
            "bolide-websocket",
        ],
    ),
    (
        "bolide-client",
        &[
            "bolide-buffers",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-limits",
            "bolide-semantics",
        ],
    ),
    ("bolide-measurement", &["bolide-semantics", "bolide-server"]),
    ("bolide-access", &["bolide-client", "bolide-semantics", "bolide-server"]),
    ("bolide-acme", &["bolide-client", "bolide-connection", "bolide-limits"]),
    ("bolide-compression", &["bolide-semantics", "bolide-server"]),
    ("bolide-site", &["bolide-compression", "bolide-semantics", "bolide-server"]),
    (
        "bolide-static-files",
        &[
            "bolide-compression",
            "bolide-eventloop",
            "bolide-limits",
            "bolide-semantics",
            "bolide-server",
        ],
    ),
    (
        "bolide-reverse-proxy",
        &[
            "bolide-buffers",
            "bolide-client",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-limits",
            "bolide-semantics",
            "bolide-server",
        ],
    ),
    ("bolide-tower-adapter", &["bolide-server"]),
    (
        "bolide",
        &[
            "bolide-client",
            "bolide-measurement",
            "bolide-reverse-proxy",
            "bolide-server",
            "bolide-static-files",
            "bolide-tower-adapter",
        ],
    ),
    ("bolide-units", &[]),
    (
        "bolide-probe",
        &[
            "bolide-buffers",
            "bolide-client",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-semantics",
            "bolide-units",
            "bolide-websocket",
        ],
    ),
    (
        "bolide-loadgen",
        &[
            "bolide-probe",
            "bolide-buffers",
            "bolide-client",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-semantics",
            "bolide-server",
            "bolide-units",
            "bolide-websocket",
        ],
    ),
    ("bolide-netlab", &["bolide-units"]),
    (
        "bolide-measure",
        &[
            "bolide-buffers",
            "bolide-client",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-probe",
            "bolide-netlab",
            "bolide-semantics",
            "bolide-server",
            "bolide-units",
            "bolide-websocket",
        ],
    ),
    (
        "bolide-race",
        &[
            "bolide-buffers",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-probe",
            "bolide-loadgen",
            "bolide-netlab",
            "bolide-semantics",
            "bolide-server",
            "bolide-units",
        ],
    ),
    (
        "bolide-cli",
        &[
            "bolide",
            "bolide-access",
            "bolide-acme",
            "bolide-compression",
            "bolide-eventloop",
            "bolide-limits",
            "bolide-loadgen",
            "bolide-measure",
            "bolide-measurement",
            "bolide-netlab",
            "bolide-probe",
            "bolide-race",
            "bolide-reverse-proxy",
            "bolide-server",
            "bolide-site",
            "bolide-static-files",
            "bolide-units",
        ],
    ),
    (
        "bolide-simnet",
        &[
            "bolide-buffers",
            "bolide-client",
            "bolide-eventloop",
            "bolide-semantics",
            "bolide-server",
        ],
    ),
    (
        "bolide-memory",
        &[
            "bolide-access",
            "bolide-eventloop",
            "bolide-h3",
            "bolide-measurement",
            "bolide-reverse-proxy",
            "bolide-semantics",
            "bolide-server",
        ],
    ),
    (
        "bolide-growth",
        &[
            "bolide-buffers",
            "bolide-client",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-h3",
            "bolide-measurement",
            "bolide-reverse-proxy",
            "bolide-semantics",
            "bolide-server",
        ],
    ),
    (
        "bolide-proxied",
        &[
            "bolide-buffers",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-reverse-proxy",
            "bolide-semantics",
            "bolide-server",
        ],
    ),
    ("bolide-launcher", &[]),
    ("bolide-frames", &[]),
    (
        "bolide-quic-pair",
        &["bolide-buffers", "bolide-h3", "bolide-quic", "bolide-semantics", "bolide-tls"],
    ),
    (
        "bolide-instructions",
        &["bolide-buffers", "bolide-connection", "bolide-launcher", "bolide-semantics"],
    ),
    ("bolide-conformance", &["bolide-launcher", "bolide-semantics", "bolide-websocket"]),
    ("bolide-e2e", &["bolide", "bolide-launcher"]),
    ("bolide-tower-tests", &["bolide"]),
    ("bolide-examples", &["bolide"]),
    ("contender-program", &[]),
    (
        "bolide-fuzz",
        &[
            "bolide-buffers",
            "bolide-client",
            "bolide-connection",
            "bolide-eventloop",
            "bolide-h1",
            "bolide-h2",
            "bolide-h3",
            "bolide-hpack",
            "bolide-measurement",
            "bolide-qpack",
            "bolide-quic",
            "bolide-reverse-proxy",
            "bolide-semantics",
            "bolide-server",
            "bolide-site",
            "bolide-tls",
            "bolide-websocket",
            "bolide-simnet",
            "bolide-frames",
        ],
    ),
    ("axum-contender", &["contender-program"]),
    ("axum-on-bolide", &["bolide", "contender-program"]),
    ("floor-contender", &["contender-program"]),
    ("hyper-contender", &["contender-program"]),
    ("tonic-contender", &["contender-program"]),
    ("tonic-on-bolide", &["bolide", "contender-program"]),
    ("xtask", &[]),
];

/// The packages that only test: any package's tests may name them.
const TEST_PACKAGES: &[&str] =
    &["bolide-frames", "bolide-launcher", "bolide-quic-pair", "bolide-simnet"];

/// Checks what the manifests name.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let ours = |name: &str| packages.iter().any(|package| package.name == name);
    let mut findings = Vec::new();
    for package in packages {
        let mut find = |message: String| {
            findings.push(Finding::new(NAME, "Cargo.toml", 0, message));
        };
        let Some((_, allowed)) = TABLE.iter().find(|(name, _)| *name == package.name) else {
            find(format!(
                "`{}` is not in the table of xtask/src/tidy/imports.rs: say what it may name",
                package.name
            ));
            continue;
        };
        for (dependency, kind) in &package.dependencies {
            let name = dependency.as_str();
            let only_tests = *kind == Kind::Development && TEST_PACKAGES.contains(&name);
            if ours(name) && !only_tests && !allowed.contains(&name) {
                find(format!("`{}` may not name `{name}`: arrows point down", package.name));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        Package {
            name: name.to_owned(),
            version: String::new(),
            licence: None,
            source: None,
            dependencies: dependencies.iter().map(|(name, kind)| ((*name).into(), *kind)).collect(),
        }
    }

    #[test]
    fn the_table_itself_points_down() {
        for (row, (name, allowed)) in TABLE.iter().enumerate() {
            for dependency in *allowed {
                let above = TABLE[..row].iter().any(|(name, _)| name == dependency);
                assert!(above, "{name} names {dependency}, which is not above it");
            }
        }
    }

    #[test]
    fn an_arrow_up_is_found() {
        let found = check(&[
            package("bolide-buffers", &[("bolide-h1", Kind::Normal), ("bytes", Kind::Normal)]),
            package("bolide-h1", &[("bolide-buffers", Kind::Normal)]),
            package("bolide-eventloop", &[("bolide-simnet", Kind::Development)]),
            package("bolide-simnet", &[("bolide-eventloop", Kind::Normal)]),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].message.contains("`bolide-buffers` may not name `bolide-h1`"));
    }

    #[test]
    fn a_crate_that_nobody_placed_is_found() {
        let found = check(&[package("bolide-drawer", &[])]);
        assert!(found[0].message.contains("not in the table"));
    }
}

//! Kinds of ends, by a connection's close reason.

/// The classes of close reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// An orderly end, or an error that no limit answers.
    Orderly,
    /// A limit or a deadline.
    Limit,
    /// A budget for what a peer may cost was spent.
    Abuse,
}

const LIMITS: &[&str] = &[
    "body-timeout",
    "head-timeout",
    "ping-timeout",
    "preface-timeout",
    "proxy-header",
    "proxy-header-timeout",
    "settings-timeout",
    "tls-timeout",
    "write-stall",
    "write-timeout",
    "zero-window",
];

const ABUSE: &[&str] = &[
    "continuation-flood",
    "glitches",
    "header-block",
    "hpack-bomb",
    "made-you-reset",
    "rapid-reset",
    "settings-flood",
    "small-data",
    "tunnel-data",
    "unread-control-frames",
];

impl Class {
    pub(super) fn of(name: &str) -> Self {
        if LIMITS.contains(&name) {
            Self::Limit
        } else if ABUSE.contains(&name) {
            Self::Abuse
        } else {
            Self::Orderly
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The first string after each `mark` in the sources of a crate.
    fn names_after(mark: &str, directory: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut names = Vec::new();
        let mut directories = vec![root.join(directory).join("src")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                // Not this file, which has the marks.
                if path.ends_with("observe/reasons.rs") {
                    continue;
                }
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                for call in text.split(mark).skip(1) {
                    let argument = call.split(';').next().unwrap_or_default();
                    names.extend(argument.split('"').nth(1).map(str::to_owned));
                }
            }
        }
        names.sort();
        names.dedup();
        names
    }

    /// The rows of a table in docs/operate.md, by the first cell of its head.
    fn documented(head: &str) -> Vec<String> {
        let page = include_str!("../../../../docs/operate.md");
        let table =
            page.lines().skip_while(|line| !line.starts_with(&format!("| {head} |"))).skip(2);
        let rows = table.take_while(|line| line.starts_with('|'));
        let mut names: Vec<String> = rows
            .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    }

    /// Every name under which an exchange can be said to have been aborted, from the sources.
    fn aborts() -> Vec<String> {
        let mut names = Vec::new();
        for (mark, directory) in [
            ("AbortReason::new(Blame::Peer,", "protocol/h2"),
            ("AbortReason::new(Blame::Circumstance,", "protocol/h2"),
            ("Role::Server => by_peer(", "protocol/h2"),
            ("AbortReason::new(Blame::Peer,", "protocol/h3"),
            ("AbortReason::new(Blame::Circumstance,", "protocol/h3"),
            ("Role::Server => by_peer(", "protocol/h3"),
            ("CloseReason::circumstance(", "protocol/quic"),
            ("CloseReason::peer(", "protocol/quic"),
            ("CloseReason::orderly(", "protocol/quic"),
            // Those of HTTP/1.1 are those of its connection.
            ("Failure::timeout(", "protocol/h1"),
            ("Failure::orderly(", "protocol/h1"),
            ("CloseReason::peer(", "protocol/h1"),
            ("CloseReason::circumstance(", "protocol/h1"),
            ("AbortReason::new(", "service/server"),
            ("aborted = Some(", "service/server"),
            ("aborted.get_or_insert(", "service/server"),
            ("let name = if answered {", "service/server"),
            ("exchange-timeout\" } else {", "service/server"),
        ] {
            names.extend(names_after(mark, directory));
        }
        let only_of_clients =
            ["early-data-ignored", "not-needed", "not-served", "quic-version", "refused"];
        names.retain(|name| !only_of_clients.contains(&name.as_str()));
        names.sort();
        names.dedup();
        names
    }

    #[test]
    fn every_reason_of_an_abort_is_short_and_documented() {
        let documented = documented("`reason` of an abort");
        for name in aborts() {
            let is_short = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            assert!(is_short, "{name}");
            assert!(
                documented.contains(&name),
                "docs/operate.md has no row {name}: {documented:?}"
            );
        }
        assert!(documented.len() >= 10, "{documented:?}");
    }

    #[test]
    fn every_budget_of_http2_is_known_as_one() {
        let names = names_after("Fault::abuse(", "protocol/h2");
        assert!(names.len() >= 5, "{names:?}");
        for name in names {
            assert_eq!(Class::of(&name), Class::Abuse, "{name}");
        }
    }

    #[test]
    fn every_timeout_is_known_as_a_limit() {
        for (mark, directory) in [
            ("Failure::timeout(", "protocol/h1"),
            ("Fault::circumstance(", "protocol/h2"),
            ("CloseReason::circumstance(\"", "protocol/connection"),
        ] {
            for name in names_after(mark, directory) {
                // A mark with its quote is followed by the name itself.
                if name.ends_with("-timeout") {
                    assert_eq!(Class::of(&name), Class::Limit, "{name}");
                }
            }
        }
        assert_eq!(Class::of("head-timeout"), Class::Limit);
        assert_eq!(Class::of("eof"), Class::Orderly);
    }
}

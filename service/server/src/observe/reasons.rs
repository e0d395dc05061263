//! What kind of end a connection's close reason is.

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
    fn names_after(mark: &str, folder: &str) -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder).join("src");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for call in text.split(mark).skip(1) {
                let argument = call.split(';').next().unwrap_or_default();
                names.extend(argument.split('"').nth(1).map(str::to_owned));
            }
        }
        names.sort();
        names.dedup();
        names
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
        for (mark, folder) in [
            ("Failure::timeout(", "protocol/h1"),
            ("Fault::circumstance(", "protocol/h2"),
            ("CloseReason::circumstance(\"", "protocol/connection"),
        ] {
            for name in names_after(mark, folder) {
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

//! Known deviations of foreign servers, and their reasons.

use std::collections::BTreeMap;

use toml::Table;

/// The known deviations of one server: the name of a case and the reason.
#[derive(Debug, Default)]
pub struct Expected {
    deviations: BTreeMap<String, String>,
}

impl Expected {
    /// Reads `expected/NAME.toml`.
    pub fn of(server: &str) -> Self {
        let directory = bolide_launcher::root().join("tests/conformance/expected");
        let path = directory.join(format!("{server}.toml"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::read(&text)
    }

    fn read(text: &str) -> Self {
        let table: Table = text.parse().expect("the file is TOML");
        let deviations: BTreeMap<String, String> = table
            .iter()
            .map(|(case, reason)| (case.clone(), reason.as_str().unwrap_or_default().to_owned()))
            .collect();
        let known: Vec<&str> = crate::rfc9112::all()
            .iter()
            .chain(&crate::rfc9110::all())
            .chain(&crate::rfc9110::of_files())
            .map(|case| case.name)
            .collect();
        for (case, reason) in &deviations {
            assert!(known.contains(&case.as_str()), "there is no case {case}");
            assert!(!reason.is_empty(), "{case} has no reason");
        }
        Self { deviations }
    }

    /// Why the server is known to answer this case otherwise.
    pub fn reason(&self, case: &str) -> Option<&str> {
        self.deviations.get(case).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_have_names_and_reasons() {
        let expected = Expected::read("missing-host = \"left to the application\"\n");
        assert_eq!(expected.reason("missing-host"), Some("left to the application"));
        assert_eq!(expected.reason("another"), None);
        assert!(std::panic::catch_unwind(|| Expected::read("missing-host = 1\n")).is_err());
        assert!(std::panic::catch_unwind(|| Expected::read("no-case = \"a\"\n")).is_err());
    }
}

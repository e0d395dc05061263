//! RFC 9110 §7.6.3: the name of a proxy in `Via`, by which it knows requests that have come back to it.

use std::hash::{BuildHasher, RandomState};

use bolide_semantics::{FieldName, Head, is_token};
use bolide_server::Version;

/// Name of a proxy in `Via`.
#[derive(Debug, Clone)]
pub(crate) struct Pseudonym {
    name: Box<str>,
    /// With the version of a request before it: 1.0, 1.1 and 2.
    via: [Box<str>; 4],
}

impl Pseudonym {
    /// A name that no other proxy has.
    pub(crate) fn random() -> Self {
        // No secret: each value differs from all others, in this process and elsewhere.
        let number = RandomState::new().hash_one(());
        Self::with(&format!("bolide-{number:016x}"))
    }

    /// This name, if it can be one.
    pub(crate) fn new(name: &str) -> Option<Self> {
        is_token(name.as_bytes()).then(|| Self::with(name))
    }

    fn with(name: &str) -> Self {
        let via = ["1.0", "1.1", "2", "3"].map(|version| format!("{version} {name}").into());
        Self { name: name.into(), via }
    }

    /// Returns what the proxy adds to `Via` of a request that came in this version.
    pub(crate) fn via(&self, version: Version) -> &[u8] {
        let [http_1_0, http_1_1, http_2, http_3] = &self.via;
        let via = match version {
            Version::HTTP_10 => http_1_0,
            Version::HTTP_2 => http_2,
            Version::HTTP_3 => http_3,
            _ => http_1_1,
        };
        via.as_bytes()
    }

    /// Returns whether a request has passed this proxy before.
    pub(crate) fn is_in(&self, head: &Head) -> bool {
        let received_by = |member: &[u8]| {
            let mut words = member.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            words.nth(1).is_some_and(|word| word == self.name.as_bytes())
        };
        head.get_all(FieldName::Via).any(|value| value.split(|byte| *byte == b',').any(received_by))
    }
}

#[cfg(test)]
mod tests {
    use bolide_semantics::HeadKind;

    use super::*;

    #[test]
    fn a_proxy_finds_its_own_name_among_others() {
        let own = Pseudonym::new("bolide-1").unwrap();
        assert!(Pseudonym::new("two words").is_none() && Pseudonym::new("").is_none());
        assert_ne!(Pseudonym::random().name, Pseudonym::random().name);
        for (via, is_in) in [
            ("1.1 bolide-1", true),
            ("1.0 fred, 2 bolide-1", true),
            ("HTTP/1.1  bolide-1 (a comment), 1.1 b", true),
            ("1.1\tbolide-1,", true),
            ("1.1 bolide-12", false),
            ("bolide-1", false),
            ("1.1 fred (bolide-1)", false),
            ("", false),
        ] {
            let mut head = Head::default();
            head.clear(HeadKind::Request, Version::HTTP_11);
            head.push_field(FieldName::Via, b"1.1 first");
            head.push_field(FieldName::Via, via.as_bytes());
            assert_eq!(own.is_in(&head), is_in, "{via}");
        }
    }
}

//! RFC 6066 §3, RFC 6125 §6.4: which certificate a client gets, by the name that it asks for.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::Identity;

/// A server's certificates.
#[derive(Debug)]
pub(crate) struct Certificates {
    all: Vec<Arc<CertifiedKey>>,
    /// The names in lower case, each with the place of its certificate; sorted. A wildcard is kept as it is
    /// written.
    names: Vec<(Box<str>, usize)>,
}

impl Certificates {
    /// The certificates of `identities`, of which there is at least one.
    pub(crate) fn new(identities: &[Identity]) -> Self {
        let all: Vec<_> =
            identities.iter().map(|identity| Arc::clone(&identity.certified)).collect();
        let mut names: Vec<(Box<str>, usize)> = Vec::new();
        for (place, identity) in identities.iter().enumerate() {
            names.extend(identity.dns_names().into_iter().map(|name| (name.into(), place)));
        }
        names.sort();
        Self { all, names }
    }

    /// The certificates of a name, which is in lower case.
    fn of(&self, name: &str) -> impl Iterator<Item = &Arc<CertifiedKey>> + use<'_> {
        let first = self.names.partition_point(|(known, _)| **known < *name);
        let count = self.names[first..].iter().take_while(|(known, _)| **known == *name).count();
        self.names[first..first + count].iter().map(|(_, place)| &self.all[*place])
    }

    /// The certificate for `name` that `suits`; else the first.
    fn find(
        &self,
        name: Option<&str>,
        suits: impl Fn(&CertifiedKey) -> bool,
    ) -> Option<&Arc<CertifiedKey>> {
        let default = self.all.first();
        let Some(name) = name.filter(|_| self.all.len() > 1) else { return default };
        let name = name.to_ascii_lowercase();
        let wildcard = name.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        let exact = self.of(&name).find(|certified| suits(certified));
        let by_wildcard = || {
            let wildcard = wildcard.as_deref()?;
            self.of(wildcard).find(|certified| suits(certified))
        };
        match exact {
            Some(exact) => Some(exact),
            None => by_wildcard().or(default),
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let suits = |certified: &CertifiedKey| certified.key.choose_scheme(schemes).is_some();
        self.find(hello.server_name(), suits).map(Arc::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = made.signing_key.serialize_pem();
        Identity::from_pem(made.cert.pem().as_bytes(), key.as_bytes()).unwrap()
    }

    #[test]
    fn the_exact_name_wins_over_the_wildcard_and_the_first_is_for_all_others() {
        let identities = [
            identity(&["default.org"]),
            identity(&["*.example.org", "example.org"]),
            identity(&["A.example.org"]),
            identity(&["a.example.org"]),
        ];
        let certificates = Certificates::new(&identities);
        let place = |name: Option<&str>| {
            let found = certificates.find(name, |_| true).unwrap();
            certificates.all.iter().position(|one| Arc::ptr_eq(one, found)).unwrap()
        };
        for (name, expected) in [
            (None, 0),
            (Some("default.org"), 0),
            (Some("elsewhere.org"), 0),
            (Some("b.example.org"), 1),
            (Some("EXAMPLE.ORG"), 1),
            (Some("a.b.example.org"), 0),
            (Some("a.example.org"), 2),
            (Some("org"), 0),
        ] {
            assert_eq!(place(name), expected, "{name:?}");
        }
        let third = &identities[3].certified;
        let found = certificates.find(Some("a.example.org"), |one| std::ptr::eq(one, &**third));
        assert!(Arc::ptr_eq(found.unwrap(), third), "the first that the client can check");
    }
}

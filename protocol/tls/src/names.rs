//! RFC 6066 §3, RFC 6125 §6.4: which certificate a client gets, by the name that it asks for.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::{Identity, IssuedNames};

/// A server's certificates.
#[derive(Debug)]
pub(crate) struct Certificates {
    all: Vec<Arc<CertifiedKey>>,
    /// The names in lower case, each with the place of its certificate; sorted. A wildcard is kept as it is
    /// written.
    names: Vec<(Box<str>, usize)>,
    issued: Option<IssuedNames>,
}

impl Certificates {
    /// The certificates of `identities`, and those that are issued while the server runs.
    pub(crate) fn new(identities: &[Identity], issued: Option<IssuedNames>) -> Self {
        let all: Vec<_> =
            identities.iter().map(|identity| Arc::clone(&identity.certified)).collect();
        let mut names: Vec<(Box<str>, usize)> = Vec::new();
        for (place, identity) in identities.iter().enumerate() {
            names.extend(identity.dns_names().into_iter().map(|name| (name.into(), place)));
        }
        names.sort();
        Self { all, names, issued }
    }

    /// The certificates of a name, which is in lower case.
    fn of(&self, name: &str) -> impl Iterator<Item = &Arc<CertifiedKey>> + use<'_> {
        let first = self.names.partition_point(|(known, _)| **known < *name);
        let count = self.names[first..].iter().take_while(|(known, _)| **known == *name).count();
        self.names[first..first + count].iter().map(|(_, place)| &self.all[*place])
    }

    /// The certificate for `name` that `suits`; else the first. A name whose certificate is yet to be issued has none: the
    /// first is for another name.
    fn find(
        &self,
        name: Option<&str>,
        suits: impl Fn(&CertifiedKey) -> bool,
    ) -> Option<Arc<CertifiedKey>> {
        let first = || self.all.first().cloned();
        let default = || first().or_else(|| self.issued.as_ref()?.default());
        let Some(name) = name.filter(|_| self.all.len() > 1 || self.issued.is_some()) else {
            return default();
        };
        let name = name.to_ascii_lowercase();
        let issued = self.issued.as_ref().and_then(|issued| issued.of(&name));
        let wildcard = name.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        let exact = || self.of(&name).find(|certified| suits(certified)).cloned();
        let by_wildcard = || {
            let wildcard = wildcard.as_deref()?;
            self.of(wildcard).find(|certified| suits(certified)).cloned()
        };
        let found = issued.filter(|certified| suits(certified)).or_else(exact).or_else(by_wildcard);
        match found {
            None if self.issued.as_ref().is_some_and(|issued| issued.has(&name)) => None,
            found => found.or_else(default),
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if let Some(validation) = self.issued.as_ref().and_then(|issued| issued.validation(&hello))
        {
            return validation;
        }
        let schemes = hello.signature_schemes();
        let suits = |certified: &CertifiedKey| certified.key.choose_scheme(schemes).is_some();
        self.find(hello.server_name(), suits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Issued;

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
        let certificates = Certificates::new(&identities, None);
        let place = |name: Option<&str>| {
            let found = certificates.find(name, |_| true).unwrap();
            certificates.all.iter().position(|one| Arc::ptr_eq(one, &found)).unwrap()
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
        assert!(Arc::ptr_eq(&found.unwrap(), third), "the first that the client can check");
    }

    #[test]
    fn a_name_whose_certificate_is_awaited_gets_none_and_never_anothers() {
        let identities = [identity(&["default.org"]), identity(&["*.files.org"])];
        let table = Issued::default();
        let names = ["a.org", "b.org", "c.files.org"].map(str::to_owned).to_vec();
        let issued = IssuedNames { table: table.clone(), names: names.clone() };
        let certificates = Certificates::new(&identities, Some(issued.clone()));
        let find = |name: Option<&str>| certificates.find(name, |_| true);
        let is = |name: Option<&str>, expected: &Identity| {
            Arc::ptr_eq(&find(name).unwrap(), &expected.certified)
        };
        assert!(find(Some("A.org")).is_none() && find(Some("b.org")).is_none());
        assert!(is(Some("c.files.org"), &identities[1]), "a wildcard from a file fits it");
        assert!(is(Some("elsewhere.org"), &identities[0]) && is(None, &identities[0]));
        let (first, other) = (identity(&["a.org"]), identity(&["other.org"]));
        table.set("a.org", &first);
        table.set("other.org", &other);
        assert!(is(Some("A.ORG"), &first) && find(Some("b.org")).is_none());
        assert!(is(Some("other.org"), &identities[0]), "no name of this listener");
        assert!(
            certificates.find(Some("a.org"), |one| !std::ptr::eq(one, &*first.certified)).is_none()
        );
        // Where there is no file, the first certificate that was issued is the default.
        let alone = Certificates::new(&[], Some(issued));
        assert!(Arc::ptr_eq(&alone.find(None, |_| true).unwrap(), &first.certified));
        let none = Certificates::new(&[], Some(IssuedNames { table: Issued::default(), names }));
        assert!(
            none.find(None, |_| true).is_none() && none.find(Some("x.org"), |_| true).is_none()
        );
    }
}

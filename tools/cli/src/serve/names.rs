//! Hosts of routes and names of certificates, compared by `--check`.

/// The hosts that none of these certificates' names fits.
pub(super) fn without_certificate<'h>(hosts: &[&'h str], names: &[String]) -> Vec<&'h str> {
    let fits = |host: &str| names.iter().any(|name| fits(name, host));
    hosts.iter().filter(|host| !fits(host)).copied().collect()
}

/// Returns whether one of a certificate's names fits one of the hosts, of which some may be wildcards.
pub(super) fn fit_one(names: &[String], hosts: &[&str]) -> bool {
    let is_one = |name: &String| hosts.iter().any(|host| fits(name, host) || fits(host, name));
    names.iter().any(is_one)
}

/// Returns whether a name fits a host, or all hosts of a wildcard (RFC 9525 §6.3: a `*` stands for one label).
fn fits(name: &str, host: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let below = |host: &str| host.split_once('.').map(|(_, parent)| parent.to_owned());
    name == host
        || name.strip_prefix("*.").is_some_and(|parent| below(host).as_deref() == Some(parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_stands_for_one_label() {
        let names = ["Example.org", "*.example.org"].map(str::to_owned);
        let hosts = ["example.org", "a.example.org", "*.example.org", "a.b.example.org", "b.org"];
        assert_eq!(without_certificate(&hosts, &names), ["a.b.example.org", "b.org"]);
    }
}

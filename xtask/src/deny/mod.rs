//! `deny.toml`: licences, sources, and crates that only some may name. It reads the parts of
//! cargo-deny's format that we use, so that the check needs no tool that takes minutes to build.

mod licence;

use toml::{Table, Value};

use crate::manifest::{self, Package};

/// The registry that everybody uses, as cargo writes it.
const REGISTRY: &str = "crates.io-index";

/// Checks the graph of the lock file, as far as one of the platforms of `deny.toml` needs it.
pub(crate) fn check(root: &std::path::Path) -> Vec<String> {
    let rules = std::fs::read_to_string(root.join("deny.toml"))
        .map_err(|error| format!("deny.toml can't be read: {error}"))
        .and_then(|text| text.parse().map_err(|error| format!("deny.toml: {error}")));
    let checked = rules.and_then(|rules: Table| {
        let targets = strings(rules.get("graph").and_then(|graph| graph.get("targets")));
        if targets.is_empty() {
            return Err("deny.toml: graph.targets names no platform".to_owned());
        }
        Ok(findings(&rules, &manifest::all(root, &targets)?))
    });
    match checked {
        Ok(findings) => findings,
        Err(error) => vec![error],
    }
}

fn findings(rules: &Table, packages: &[Package]) -> Vec<String> {
    let mut findings = licences(rules, packages);
    findings.extend(sources(packages));
    findings.extend(bans(rules, packages));
    findings
}

fn licences(rules: &Table, packages: &[Package]) -> Vec<String> {
    let section = rules.get("licenses");
    let allowed = strings(section.and_then(|section| section.get("allow")));
    let exceptions = entries(section, "exceptions");
    let mut findings = Vec::new();
    for package in packages {
        let Package { name, version, licence, .. } = package;
        let own = exceptions.iter().filter(|entry| crate_of(entry) == Some(name));
        let own: Vec<&str> = own.flat_map(|entry| strings(entry.get("allow"))).collect();
        match licence {
            None => findings.push(format!("{name} {version} states no licence")),
            Some(text) => {
                let fits = |one: &str| allowed.contains(&one) || own.contains(&one);
                if !licence::satisfied(text, &fits) {
                    findings
                        .push(format!("{name} {version} is under {text}, which is not allowed"));
                }
            }
        }
    }
    for entry in exceptions {
        let name = crate_of(entry).unwrap_or_default();
        if !packages.iter().any(|package| package.name == name) {
            findings.push(format!("deny.toml excepts `{name}`, which no package depends on"));
        }
    }
    findings
}

fn sources(packages: &[Package]) -> Vec<String> {
    let foreign = packages.iter().filter(|package| {
        package.source.as_ref().is_some_and(|source| {
            !source.starts_with("registry+") || !source.trim_end_matches('/').ends_with(REGISTRY)
        })
    });
    foreign
        .map(|package| {
            let source = package.source.as_deref().unwrap_or_default();
            format!("{} {} comes from {source}, not from crates.io", package.name, package.version)
        })
        .collect()
}

fn bans(rules: &Table, packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    for entry in entries(rules.get("bans"), "deny") {
        let Some(banned) = crate_of(entry) else {
            findings.push(format!("deny.toml: an entry names no crate: {entry:?}"));
            continue;
        };
        let wrappers = strings(entry.get("wrappers"));
        let reason = entry.get("reason").and_then(Value::as_str).unwrap_or("see deny.toml");
        if wrappers.is_empty() && packages.iter().any(|package| package.name == banned) {
            findings.push(format!("no package may depend on `{banned}`: {reason}"));
        }
        for package in packages.iter().filter(|package| !wrappers.contains(&package.name.as_str()))
        {
            if package.dependencies.iter().any(|(name, _)| name == banned) {
                findings.push(format!("`{}` may not name `{banned}`: {reason}", package.name));
            }
        }
    }
    findings
}

fn entries<'a>(section: Option<&'a Value>, key: &str) -> Vec<&'a Value> {
    let list = section.and_then(|section| section.get(key)).and_then(Value::as_array);
    list.into_iter().flatten().collect()
}

fn crate_of(entry: &Value) -> Option<&str> {
    entry.get("crate").and_then(Value::as_str)
}

fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Kind;

    const RULES: &str = r#"
        [licenses]
        allow = ["MIT"]
        exceptions = [{ crate = "odd", allow = ["Odd-1.0"] }]
        [bans]
        deny = [
            { crate = "mio", wrappers = ["bolide-eventloop"], reason = "sockets" },
            { crate = "ring", reason = "one provider" },
        ]
    "#;

    fn package(name: &str, licence: &str, source: Option<&str>, needs: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: Some(licence.to_owned()),
            source: source.map(str::to_owned),
            dependencies: needs.iter().map(|name| ((*name).into(), Kind::Normal)).collect(),
        }
    }

    fn found(mut packages: Vec<Package>) -> Vec<String> {
        packages.push(package("odd", "Odd-1.0", None, &[]));
        findings(&RULES.parse().unwrap(), &packages)
    }

    #[test]
    fn what_is_allowed_is_no_finding() {
        let registry = Some("registry+https://example/crates.io-index");
        let mio = package("mio", "MIT OR Other", registry, &[]);
        let eventloop = package("bolide-eventloop", "MIT", None, &["mio"]);
        assert!(found(vec![mio, eventloop]).is_empty());
    }

    #[test]
    fn a_licence_is_found() {
        assert_eq!(found(vec![package("a", "GPL-3.0", None, &[])]).len(), 1);
        let mut none = package("a", "", None, &[]);
        none.licence = None;
        assert_eq!(found(vec![none]), ["a 1.0.0 states no licence"]);
    }

    #[test]
    fn a_foreign_source_is_found() {
        let git = package("a", "MIT", Some("git+https://example/a"), &[]);
        assert!(found(vec![git])[0].contains("not from crates.io"));
    }

    #[test]
    fn a_banned_edge_is_found() {
        let server = package("bolide-server", "MIT", None, &["mio"]);
        assert_eq!(found(vec![server]), ["`bolide-server` may not name `mio`: sockets"]);
        let ring = package("ring", "MIT", None, &[]);
        assert_eq!(found(vec![ring]), ["no package may depend on `ring`: one provider"]);
    }
}

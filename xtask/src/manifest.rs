//! Cargo's knowledge of the workspace: packages and who depends on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Why a package depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To work, or to be built.
    Normal,
    /// To be tested.
    Development,
}

/// One package of the graph.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// An SPDX expression, if it states one.
    pub(crate) licence: Option<String>,
    /// Source of the package; `None` for our own.
    pub(crate) source: Option<String>,
    /// The names of the packages that it names in its manifest, with the reason.
    pub(crate) dependencies: Vec<(String, Kind)>,
}

/// Our own packages, with what their manifests name.
pub(crate) fn ours(root: &Path) -> Result<Vec<Package>, String> {
    let metadata = output(root, &["metadata", "--format-version", "1", "--no-deps"])?;
    parse(&metadata)
}

/// All packages that something of ours is built or tested with, on any of `targets`.
pub(crate) fn all(root: &Path, targets: &[&str]) -> Result<Vec<Package>, String> {
    let for_each = |option| targets.iter().flat_map(move |target| [option, *target]);
    let metadata = ["metadata", "--format-version", "1"].into_iter();
    let metadata: Vec<_> = metadata.chain(for_each("--filter-platform")).collect();
    let mut packages = parse(&output(root, &metadata)?)?;
    // The metadata also have optional packages that no feature switches on; the tree has not.
    let tree = ["tree", "--workspace", "--edges", "all", "--prefix", "none"].into_iter();
    let tree: Vec<_> = tree.chain(for_each("--target")).collect();
    let tree = output(root, &tree)?;
    let used: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    packages.retain(|package| used.contains(package.name.as_str()));
    for package in &mut packages {
        package.dependencies.retain(|(name, _)| used.contains(name.as_str()));
    }
    Ok(packages)
}

/// Returns what cargo prints.
fn output(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(cargo())
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo can't be run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo printed no text: {error}"))
}

fn parse(metadata: &str) -> Result<Vec<Package>, String> {
    let value: Value = serde_json::from_str(metadata)
        .map_err(|error| format!("cargo metadata is no JSON: {error}"))?;
    Ok(read(&value))
}

/// The cargo that runs us.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// The graph if there is one, for it has only the edges in use; else what the manifests name.
fn read(metadata: &Value) -> Vec<Package> {
    let names: BTreeMap<&str, &str> = array(&metadata["packages"])
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = array(&metadata["resolve"]["nodes"])
        .filter_map(|node| Some((node["id"].as_str()?, &node["deps"])))
        .collect();
    array(&metadata["packages"])
        .map(|package| {
            let id = text(&package["id"]).unwrap_or_default();
            let dependencies = match nodes.get(id.as_str()) {
                Some(edges) => array(edges).filter_map(|edge| resolved(edge, &names)).collect(),
                None => array(&package["dependencies"]).filter_map(named).collect(),
            };
            Package {
                name: text(&package["name"]).unwrap_or_default(),
                version: text(&package["version"]).unwrap_or_default(),
                licence: text(&package["license"]),
                source: text(&package["source"]),
                dependencies,
            }
        })
        .collect()
}

fn resolved(edge: &Value, names: &BTreeMap<&str, &str>) -> Option<(String, Kind)> {
    let name = names.get(edge["pkg"].as_str()?)?;
    let all_development = array(&edge["dep_kinds"]).all(|kind| kind["kind"] == "dev");
    let kind = if all_development { Kind::Development } else { Kind::Normal };
    Some(((*name).to_owned(), kind))
}

fn named(dependency: &Value) -> Option<(String, Kind)> {
    let kind = if dependency["kind"] == "dev" { Kind::Development } else { Kind::Normal };
    Some((text(&dependency["name"])?, kind))
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_and_graphs_are_read() {
        let json = r#"{
            "packages": [
                {"id": "a#1", "name": "a", "version": "1.0.0", "license": "MIT", "source": null,
                 "dependencies": [{"name": "b", "kind": null}, {"name": "c", "kind": "dev"}]},
                {"id": "b#1", "name": "b", "version": "2.0.0", "license": null,
                 "source": "registry+x", "dependencies": [{"name": "off", "kind": null}]}],
            "resolve": {"nodes": [
                {"id": "b#1", "deps": [{"pkg": "a#1", "dep_kinds": [{"kind": "dev"}]}]}]}}"#;
        let packages = read(&serde_json::from_str(json).unwrap());
        assert_eq!(
            packages[0].dependencies,
            [("b".to_owned(), Kind::Normal), ("c".to_owned(), Kind::Development)]
        );
        assert_eq!(packages[1].dependencies, [("a".to_owned(), Kind::Development)]);
        assert_eq!(packages[1].source.as_deref(), Some("registry+x"));
    }
}

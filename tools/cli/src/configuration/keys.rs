//! The list that the table of keys in docs/configuration.md is written from is what the parser knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::Configuration;
use super::document::asked::{self, Asked};

const LIST: &str = include_str!("keys.txt");

/// Files that ask for every key: each action, and each table that is the value of a key.
const FILES: [&str; 3] = [
    r#"
[[listen]]
http = "127.0.0.1:1"
[[listen]]
https = "127.0.0.1:2"
acme = ["a.example"]
alpn = ["h2"]
[acme]
directory = "letsencrypt-staging"
storage = "acme"
[profile]
[admin]
listen = "127.0.0.1:3"
[access-log]
file = "-"
[[route]]
path = "/files/"
root = "."
hsts = { max-age = "1h" }
cors = { origins = "*" }
request-headers = { set = { x-a = "{user}" } }
response-headers = { set = { x-a = "b" } }
rate-limit = { requests = "1/s" }
bandwidth = { bytes-per-second = 1, burst = "1KiB" }
upload-bandwidth = { bytes-per-second = 1 }
concurrent-requests = { count = 1 }
basic-auth = { users = { a = "$argon2id$v=19$m=19456,t=2,p=1$HxrNemr5pkZMe0t8H3v7Ew$5ykw8YzilFREPYM5JQOtdnoqy+4b9EMrvTRpn/Xd4F8" } }
forward-auth = { url = "http://127.0.0.1:4" }
[[route]]
path = "/from"
redirect = { from = "a", to = "/b" }
[[route]]
path = "/page"
respond = { file = "page.html" }
[[route]]
path = "/api/"
proxy = "a"
compress = { types = ["text/*"] }
rewrite = { from = "a", to = "/b" }
[[upstream]]
name = "a"
servers = [{ url = "http://127.0.0.1:5" }]
sticky = { cookie = "a" }
"#,
    "[[route]]\nbuiltin = true\n",
    "",
];

/// Returns what the parser asks for while it reads the files.
fn known() -> Asked {
    let directory = std::env::temp_dir().join(format!("bolide-keys-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("page.html"), "page").unwrap();
    asked::take();
    for text in FILES {
        let file = directory.join("a.toml");
        fs::write(&file, text).unwrap();
        Configuration::read(&file, true).unwrap();
    }
    fs::remove_dir_all(directory).unwrap();
    asked::take()
}

/// The sections of the list with their rows: a key, and its cells if it is no limit.
fn listed() -> BTreeMap<&'static str, Vec<(&'static str, Vec<&'static str>)>> {
    let mut sections: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut section = "";
    for line in LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("@ ") {
            section = name;
            continue;
        }
        let (key, cells) = match line.split_once(" | ") {
            Some((key, cells)) => (key, cells.split(" | ").collect()),
            None => (line.split_once(" = ").expect("a limit").0, Vec::new()),
        };
        sections.entry(section).or_default().push((key, cells));
    }
    sections
}

#[test]
fn the_list_is_what_the_parser_knows() {
    let (known, listed) = (known(), listed());
    // The names of their keys are the user's.
    const FREE: [&str; 7] =
        ["[log.targets]", "`users`", "`set`", "`add`", "`header`", "`query`", "`error-pages`"];
    let section_of = |name: &str| match name {
        "" => "the file itself".to_owned(),
        "`request-headers`" | "`response-headers`" => {
            "`request-headers` and `response-headers`".to_owned()
        }
        "`bandwidth`" | "`upload-bandwidth`" => "`bandwidth` and `upload-bandwidth`".to_owned(),
        name => name.to_owned(),
    };
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, keys) in known.iter().filter(|(name, _)| !FREE.contains(&name.as_str())) {
        let section = section_of(name);
        let rows = listed.get(section.as_str()).map_or(&[][..], Vec::as_slice);
        let rows: BTreeSet<&str> = rows.iter().map(|(key, _)| *key).collect();
        let keys: BTreeSet<&str> = keys.iter().map(String::as_str).collect();
        wrong.extend(keys.difference(&rows).map(|key| format!("{section} lacks {key}")));
        wrong.extend(rows.difference(&keys).map(|key| format!("{section} has no {key}")));
        seen.insert(section);
    }
    wrong.extend(
        listed.keys().filter(|section| !seen.contains(**section)).map(|one| format!("no {one}")),
    );
    assert!(wrong.is_empty(), "keys.txt: {wrong:#?}");
}

#[test]
fn every_example_is_toml_with_its_key() {
    for (section, rows) in listed() {
        for (key, cells) in rows.into_iter().filter(|(_, cells)| !cells.is_empty()) {
            let [_, _, example] = cells[..] else { panic!("{section} {key}: {cells:?}") };
            let table = toml::de::DeTable::parse(example);
            let table = table.unwrap_or_else(|error| panic!("{example}: {error}")).into_inner();
            assert!(table.keys().any(|known| known.get_ref() == key), "{section}: {example}");
        }
    }
}

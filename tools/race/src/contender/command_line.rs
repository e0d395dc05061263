//! A contender from the command line: `name=mine;cmd=./mine --port {port}`.

use std::collections::BTreeMap;

use bolide_probe::nearest::suggestion;

use super::{Account, Contender, Detect, Ready, Start};
use crate::catalogue::{Protocol, Route};

const KEYS: [&str; 9] = ["name", "cmd", "proxycmd", "h1", "h2c", "tls", "h3", "routes", "order"];

/// Reads `key=value` pairs, separated by `;`. A doubled `;;` stands for one in a value.
///
/// `h1=no`, `h2c=no` and `tls=no` (or `tls=h1`, `tls=h2`) take protocols away, `h3=yes` adds HTTP/3; `routes` is a list
/// such as `ping,static-6:/six.txt`, and ping, echo and post if it is not given.
pub(crate) fn from_command_line(text: &str) -> Result<Contender, String> {
    let wrong = |what: String| format!("--contender '{text}': {what}");
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    let parts = text.replace(";;", "\0");
    for part in parts.split(';').filter(|part| !part.trim().is_empty()) {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| wrong(format!("`{}` is not key=value", part.trim())))?;
        let Some(key) = KEYS.iter().find(|known| **known == key.trim()) else {
            let key = key.trim();
            return Err(wrong(format!("no key `{key}`; {}", suggestion(key, &KEYS))));
        };
        values.insert(key, value.trim().replace('\0', ";"));
    }
    let take = |key: &str| values.get(key).map(String::as_str);
    let name = take("name").ok_or_else(|| wrong("`name=` is missing".to_owned()))?;
    let words = |key: &str| -> Result<Vec<String>, String> {
        take(key)
            .map(|text| split_words(text).map_err(&wrong))
            .transpose()
            .map(Option::unwrap_or_default)
    };
    let (command, proxy_command) = (words("cmd")?, words("proxycmd")?);
    if command.is_empty() && proxy_command.is_empty() {
        return Err(wrong("`cmd=` is missing: the program and its arguments".to_owned()));
    }
    let (mut routes, mut paths) = (Vec::new(), BTreeMap::new());
    let usual = if command.is_empty() { "" } else { "ping,echo,post" };
    for entry in take("routes").unwrap_or(usual).split(',').filter(|entry| !entry.is_empty()) {
        let (route, path) = entry.split_once(':').unwrap_or((entry, ""));
        let route = route.trim();
        if !Route::NAMES.contains(&route) {
            return Err(wrong(format!("no route `{route}`; {}", suggestion(route, &Route::NAMES))));
        }
        routes.push(route.to_owned());
        if !path.is_empty() {
            paths.insert(route.to_owned(), path.trim().to_owned());
        }
    }
    if !proxy_command.is_empty() && !routes.iter().any(|route| route == "proxy") {
        routes.push("proxy".to_owned());
    }
    let contender = Contender {
        name: name.to_owned(),
        title: String::new(),
        order: take("order").and_then(|order| order.parse().ok()).unwrap_or(0),
        against: None,
        protocols: protocols(&take),
        routes,
        paths,
        detect: Detect::default(),
        build: None,
        start: Start {
            files: BTreeMap::new(),
            site_command: command.clone(),
            command,
            tls_command: Vec::new(),
            proxy_command,
            proxy_tls_command: Vec::new(),
            profile: Vec::new(),
            writes: Vec::new(),
            site_writes: Vec::new(),
            env: BTreeMap::new(),
            single: BTreeMap::new(),
        },
        ready: Ready::default(),
        account: Account::default(),
    };
    contender.check("--contender").map(|()| contender)
}

fn protocols<'a>(take: &impl Fn(&str) -> Option<&'a str>) -> Vec<Protocol> {
    let refused = |key: &str| matches!(take(key), Some("no" | "0" | "false"));
    let mut protocols = Vec::new();
    if !refused("h1") {
        protocols.push(Protocol::H1);
    }
    if !refused("h2c") {
        protocols.push(Protocol::H2c);
    }
    match take("tls") {
        _ if refused("tls") => {}
        Some("h1") => protocols.push(Protocol::H1s),
        Some("h2") => protocols.push(Protocol::H2),
        _ => protocols.extend([Protocol::H1s, Protocol::H2]),
    }
    if matches!(take("h3"), Some("yes" | "1" | "true")) {
        protocols.push(Protocol::H3);
    }
    protocols
}

/// Splits a command at white space; quotes hold words together.
fn split_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a {open} is opened and not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_enough() {
        let mine = from_command_line("name=mine;cmd=./mine -p {port} 'a b';;c").unwrap();
        assert_eq!(mine.start.command, ["./mine", "-p", "{port}", "a b;c"]);
        assert_eq!(mine.protocols.len(), 4);
        assert_eq!(mine.routes, ["ping", "echo", "post"]);
    }

    #[test]
    fn protocols_and_routes_can_be_narrowed() {
        let mine = "name=m;cmd=m;h2c=no;tls=h2;h3=yes;routes=ping,static-6:/six.txt";
        let mine = from_command_line(mine).unwrap();
        assert_eq!(mine.protocols, [Protocol::H1, Protocol::H2, Protocol::H3]);
        assert_eq!(mine.paths["static-6"], "/six.txt");
        let proxy = from_command_line("name=p;proxycmd=p {backend}").unwrap();
        assert_eq!(proxy.routes, ["proxy"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("cmd=a", "`name=` is missing"),
            ("name=a", "`cmd=` is missing"),
            ("name=a;comd=b", "did you mean `cmd`?"),
            ("name=a;cmd=b;routes=pong", "did you mean `ping`?"),
            ("name=a;cmd='b", "not closed"),
            ("name=a;b", "`b` is not key=value"),
            ("name=a b;cmd=c", "`name` must be"),
        ] {
            let error = from_command_line(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}

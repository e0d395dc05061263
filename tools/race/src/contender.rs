//! A contender: how a server is found, built, started and asked. Data only, from a TOML file.

mod command_line;
mod sources;

use std::collections::BTreeMap;

use bolide_probe::nearest::suggestion;
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub(crate) use command_line::from_command_line;
pub(crate) use sources::Sources;

use crate::catalogue::{Cell, EVENT_BYTES, EVENTS_COUNT, EVENTS_GAP_MS, Protocol, Route};
use crate::differing::{LARGE_FILE_BYTES, Requests};

/// The contender that responds without reading what is asked: shown for what the kernel costs.
pub(crate) const FLOOR: &str = "floor";

/// The name of this program as a contender.
pub(crate) const OWN: &str = "bolide";

/// A server that may race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// Unique; what tables say.
    pub name: String,
    /// Title in the report.
    #[serde(default)]
    pub title: String,
    /// Its position in tables.
    #[serde(default = "last")]
    pub order: i64,
    /// The contender that it is, but for how it is run: tables compare the two.
    #[serde(default)]
    pub against: Option<String>,
    /// Protocols that it can use.
    pub protocols: Vec<Protocol>,
    /// Routes that it serves, by the names of [`Route::NAMES`]; besides, for [`bulk`](crate::bulk): `bulk` and
    /// `bulk-put`, downloads and uploads of any size, `bulk-proxy`, both of them through it, and `ndt7`.
    pub routes: Vec<String>,
    /// Paths that differ from the usual ones, by the route's name.
    #[serde(default)]
    pub paths: BTreeMap<String, String>,
    /// Test of whether it is there.
    #[serde(default)]
    pub detect: Detect,
    /// How it is built.
    pub build: Option<Build>,
    /// How it is started.
    pub start: Start,
    /// When it is ready.
    #[serde(default)]
    pub ready: Ready,
    /// Processes that are accounted.
    #[serde(default)]
    pub account: Account,
}

/// Test of whether a contender is on this machine. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detect {
    /// Programs that are in `PATH`.
    pub programs: Vec<String>,
    /// An environment variable that names the program; `{binary}` is its value.
    pub env: Option<String>,
    /// A command whose first line of output is the version.
    pub version: Vec<String>,
    /// The command that installs it.
    pub install: Option<String>,
}

/// How a contender is built from sources of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// A directory next to the TOML file.
    pub sources: String,
    /// Files and directories that the build takes from elsewhere, as seen from the TOML file's directory:
    /// it is done again when they change. Only a checkout has them, not a program that carries the
    /// contenders.
    #[serde(default)]
    pub beside: Vec<String>,
    /// The command, run in that directory; `{out}` is where to put what it makes, `{contenders}` the directory of the TOML file. None:
    /// it is a package.
    #[serde(default)]
    pub command: Vec<String>,
    /// The package of the checkout's workspace of which the program `{out}/bin/…` is. Its profile is the one that this program was
    /// built with (`release` or `dist`).
    #[serde(default)]
    pub package: Option<String>,
    /// Programs that it needs.
    #[serde(default)]
    pub needs: Vec<String>,
    /// How long it takes on two cores, about: only for what is said meanwhile.
    #[serde(default = "build_seconds")]
    pub seconds: u32,
}

const fn build_seconds() -> u32 {
    30
}

/// How a contender is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Files that are made from templates: name in `{run}`, and the template next to the TOML file.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Program and arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// The same for TLS, where a server needs a process of its own for it.
    #[serde(default)]
    pub tls_command: Vec<String>,
    /// The same as a proxy in front of `{backend}`.
    #[serde(default)]
    pub proxy_command: Vec<String>,
    /// The same as a proxy over TLS.
    #[serde(default)]
    pub proxy_tls_command: Vec<String>,
    /// The same as the site of the table `site`, in front of `{backend}`.
    #[serde(default)]
    pub site_command: Vec<String>,
    /// Arguments that are added to the command so that the contender writes where its CPU time goes to
    /// `{run}/profile.json` when it ends: an object with `stages`, each with `stage` and `us_per_request`.
    #[serde(default)]
    pub profile: Vec<String>,
    /// Files in `{run}` that it has to write in each run, such as a log; they are emptied after it.
    #[serde(default)]
    pub writes: Vec<String>,
    /// The same of `site_command`.
    #[serde(default)]
    pub site_writes: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Placeholders with other values than usual when the server has one core.
    #[serde(default)]
    pub single: BTreeMap<String, Scalar>,
}

/// A value of a placeholder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

impl Scalar {
    /// As it stands in a command.
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// When a contender is ready.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ready {
    /// Seconds until it must take connections.
    pub within_s: f64,
}

impl Default for Ready {
    fn default() -> Self {
        Self { within_s: 10.0 }
    }
}

/// Processes that count as the contender's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// The whole process tree, not only the process that was started.
    pub tree: bool,
}

impl Default for Account {
    fn default() -> Self {
        Self { tree: true }
    }
}

const fn last() -> i64 {
    1000
}

/// Routes whose responses depend on the request, the least predictable first.
const SURPRISING: [Route; 9] = [
    Route::Post,
    Route::Grpc,
    Route::Echo,
    Route::Static4k,
    Route::Static6,
    Route::Proxy4k,
    Route::Proxy6,
    Route::SiteAsset,
    Route::SiteApi,
];

/// Most bytes of a response that the server can't know beforehand.
const SURPRISE_BYTES_MAX: usize = 1000;

/// Routes that `routes` may name.
const ROUTES: [&str; 20] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = Route::NAMES;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, "bulk", "bulk-put", "bulk-proxy", "ndt7"]
};

/// Keys of a contender's file by table.
const KEYS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "name",
            "title",
            "order",
            "against",
            "protocols",
            "routes",
            "paths",
            "detect",
            "build",
            "start",
            "ready",
            "account",
        ],
    ),
    ("detect", &["programs", "env", "version", "install"]),
    ("build", &["sources", "beside", "command", "package", "needs", "seconds"]),
    (
        "start",
        &[
            "files",
            "command",
            "tls_command",
            "proxy_command",
            "proxy_tls_command",
            "site_command",
            "profile",
            "writes",
            "site_writes",
            "env",
            "single",
        ],
    ),
    ("ready", &["within_s"]),
    ("account", &["tree"]),
];

impl Contender {
    /// Reads a contender's file; `origin` is what errors call it.
    ///
    /// # Errors
    ///
    /// One sentence: where, what, and what would be right.
    pub fn parse(text: &str, origin: &str) -> Result<Self, String> {
        let table: Table =
            text.parse().map_err(|error| format!("{origin}: {}", one_line(&error)))?;
        check_keys(&table, origin)?;
        check_words(&table, "protocols", &Protocol::NAMES, origin)?;
        check_words(&table, "routes", &ROUTES, origin)?;
        let contender: Self =
            toml::from_str(text).map_err(|error| format!("{origin}: {}", one_line(&error)))?;
        contender.check(origin)?;
        Ok(contender)
    }

    fn check(&self, origin: &str) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{origin}: {what}"));
        let named = !self.name.is_empty()
            && self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
        if !named {
            return wrong("`name` must be letters, digits, `-`, `_`, `.` and `+`");
        }
        if self.protocols.is_empty() || self.routes.is_empty() {
            return wrong("`protocols` and `routes` must name at least one each");
        }
        let start = &self.start;
        let is_proxy = |route: &String| route == "proxy" || route == "bulk-proxy";
        let is_site = |route: &String| route.starts_with("site-");
        if !self.routes.iter().all(|route| is_proxy(route) || is_site(route))
            && start.command.is_empty()
            && start.tls_command.is_empty()
        {
            return wrong("`start.command` is missing: the program and its arguments");
        }
        if let Some(route) = self.routes.iter().find(|route| is_proxy(route))
            && start.proxy_command.is_empty()
            && start.proxy_tls_command.is_empty()
        {
            return wrong(&format!("the route `{route}` needs `start.proxy_command`"));
        }
        if let Some(route) = self.routes.iter().find(|route| is_site(route))
            && start.site_command.is_empty()
        {
            return wrong(&format!("the route `{route}` needs `start.site_command`"));
        }
        if let Some(build) = &self.build
            && build.command.is_empty() == build.package.is_none()
        {
            return wrong("`build` needs either `command` or `package`");
        }
        if !(self.ready.within_s > 0.0 && self.ready.within_s <= 600.0) {
            return wrong("`ready.within_s` must be more than 0 and at most 600");
        }
        for path in self.paths.values() {
            if !path.starts_with('/') {
                return wrong(&format!("the path `{path}` must begin with `/`"));
            }
        }
        Ok(())
    }

    /// Returns what the report calls it.
    pub fn shown(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }

    /// Returns whether it can run in `cell`.
    pub fn plays(&self, cell: &Cell) -> bool {
        self.protocols.contains(&cell.protocol)
            && self.routes.iter().any(|route| route == cell.route.name())
            && !self.command(cell).is_empty()
    }

    /// Returns whether it can run in any of `cells`, or behind one.
    pub fn is_needed(&self, cells: &[Cell]) -> bool {
        let plays = |cell: Cell| self.plays(&cell);
        cells.iter().any(|cell| self.plays(cell) || cell.behind().is_some_and(plays))
    }

    /// A cell like `cell` that the same process serves, whose response can't be known beforehand: random bytes that
    /// come back, a random size, one of many files. `None` if it serves none.
    pub(crate) fn surprising(&self, cell: &Cell, random: &mut Rng) -> Option<Cell> {
        let size = 1 + random.usize(..SURPRISE_BYTES_MAX);
        let cells = SURPRISING.map(|route| {
            let is_one_of_many = route.is_file() || route == Route::SiteApi;
            let requests = if is_one_of_many { Requests::Distinct } else { cell.requests };
            Cell { route, size, requests, ..cell.clone() }
        });
        cells
            .into_iter()
            .find(|other| self.plays(other) && self.command(other) == self.command(cell))
    }

    /// Returns whether there is such a cell.
    pub(crate) fn can_be_surprised(&self, cell: &Cell) -> bool {
        self.surprising(cell, &mut Rng::with_seed(0)).is_some()
    }

    /// Returns what starts it for `cell`; empty if nothing does.
    pub fn command(&self, cell: &Cell) -> &[String] {
        let start = &self.start;
        if cell.route.is_site() {
            return &start.site_command;
        }
        let (plain, tls) = if cell.route.is_proxy() {
            (&start.proxy_command, &start.proxy_tls_command)
        } else {
            (&start.command, &start.tls_command)
        };
        if cell.protocol.is_tls() && !tls.is_empty() { tls } else { plain }
    }

    /// Returns what starts it for `cell` with so many cores, the other placeholders not filled in: equal for
    /// those that differ in name only.
    pub fn command_on(&self, cell: &Cell, cores: usize) -> String {
        let workers = match self.start.single.get("workers") {
            Some(value) if cores == 1 => value.text(),
            _ => cores.to_string(),
        };
        let mut words: Vec<&str> = vec![self.build.as_ref().map_or("", |build| &build.sources)];
        words.extend(self.start.env.iter().flat_map(|(name, value)| [name.as_str(), value]));
        words.extend(self.command(cell).iter().map(String::as_str));
        // Without a path into that directory, its files are for other cells.
        if words.iter().any(|word| word.contains("{run}")) {
            words.extend(self.start.files.values().map(String::as_str));
        }
        words.join("\n").replace("{workers}", &workers)
    }

    /// The path that is asked for in `cell`, with its query.
    pub fn path(&self, cell: &Cell) -> String {
        let (name, usual) = match cell.route {
            Route::Ping | Route::Logged => ("ping", "/ping".to_owned()),
            Route::Echo => ("echo", "/echo?size={size}".to_owned()),
            Route::Post => ("post", "/echo".to_owned()),
            Route::Grpc => ("grpc", "/bolide.Echo/Unary".to_owned()),
            Route::Static6 | Route::Proxy6 => ("static-6", "/6".to_owned()),
            Route::Static4k | Route::Proxy4k => ("static-4k", "/4096".to_owned()),
            Route::Events | Route::ProxyEvents => (
                "events",
                format!("/events?n={EVENTS_COUNT}&gap={EVENTS_GAP_MS}&size={EVENT_BYTES}"),
            ),
            Route::Static16m => ("static-16m", format!("/{LARGE_FILE_BYTES}")),
            Route::SiteAsset => ("site-asset", "/assets/app.js".to_owned()),
            Route::SitePage => ("site-page", "/account".to_owned()),
            Route::SiteApi => ("site-api", "/api/items.json".to_owned()),
            Route::SiteLimited => ("site-limited", "/limited/6".to_owned()),
            Route::SiteRedirect => ("site-redirect", "/old/page".to_owned()),
        };
        let path = self.paths.get(name).cloned().unwrap_or(usual);
        path.replace("{size}", &cell.size.to_string())
    }
}

/// The first thing that an error of the TOML reader says, with its line.
fn one_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let place = text.lines().next().and_then(|line| line.strip_prefix("TOML parse error at "));
    match place {
        Some(place) => format!("{place}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

/// Every key must be known; the nearest is named.
fn check_keys(table: &Table, origin: &str) -> Result<(), String> {
    for (section, known) in KEYS {
        let inner = if section.is_empty() {
            Some(table)
        } else {
            table.get(*section).and_then(Value::as_table)
        };
        for key in inner.into_iter().flatten().map(|(key, _)| key) {
            if !known.contains(&key.as_str()) {
                let place =
                    if section.is_empty() { String::new() } else { format!(" in [{section}]") };
                let hint = suggestion(key, known);
                return Err(format!("{origin}: no key `{key}`{place}; {hint}"));
            }
        }
    }
    Ok(())
}

/// Every word of a list must be known; the nearest is named.
fn check_words(table: &Table, key: &str, known: &[&str], origin: &str) -> Result<(), String> {
    for word in table.get(key).and_then(Value::as_array).into_iter().flatten() {
        let word = word.as_str().unwrap_or_default();
        if !known.contains(&word) {
            let hint = suggestion(word, known);
            return Err(format!("{origin}: `{key}` has no `{word}`; {hint}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Certificate, Cores, Kind};

    const TEXT: &str = r#"
name = "nginx"
title = "nginx 1.22"
order = 40
protocols = ["h1", "h2c", "h1s", "h2"]
routes = ["ping", "static-6", "proxy"]
paths = { "static-6" = "/six.txt" }
[detect]
programs = ["nginx"]
install = "apt-get install -y nginx-light"
[start]
files = { "nginx.conf" = "nginx/nginx.conf.in" }
command = ["nginx", "-p", "{run}"]
proxy_command = ["nginx", "-p", "{run}", "-g", "{backend}"]
single = { workers = 1 }
"#;

    fn cell(route: Route) -> Cell {
        Cell {
            protocol: Protocol::H2,
            route,
            connections: 1,
            depth: 1,
            size: 64,
            window: None,
            load: Kind::Closed,
            cores: Cores::One,
            certificate: Certificate::default(),
            requests: Requests::default(),
        }
    }

    #[test]
    fn a_file_says_what_there_is() {
        let nginx = Contender::parse(TEXT, "nginx.toml").unwrap();
        assert_eq!(nginx.shown(), "nginx 1.22");
        assert!(nginx.plays(&cell(Route::Ping)) && !nginx.plays(&cell(Route::Echo)));
        assert!(nginx.is_needed(&[cell(Route::Echo), cell(Route::Ping)]));
        assert!(!nginx.is_needed(&[cell(Route::Echo), cell(Route::Grpc)]));
        assert_eq!(nginx.command(&cell(Route::Proxy6))[3], "-g");
        assert_eq!(nginx.path(&cell(Route::Proxy6)), "/six.txt");
        assert_eq!(nginx.path(&cell(Route::Echo)), "/echo?size=64");
        assert!(nginx.account.tree && (nginx.ready.within_s - 10.0).abs() < 1e-9);
    }

    #[test]
    fn one_worker_and_a_worker_for_each_core_are_the_same_on_one_core() {
        let of = |name: &str, workers: &str| {
            let text = format!(
                "name = '{name}'\nprotocols = ['h2']\nroutes = ['ping']\n[start]\n\
                 command = ['b', '{{port}}', '{workers}']\n"
            );
            Contender::parse(&text, name).unwrap()
        };
        let (one, all) = (of("one", "1"), of("all", "{workers}"));
        let cell = cell(Route::Ping);
        assert_eq!(one.command_on(&cell, 1), all.command_on(&cell, 1));
        assert_ne!(one.command_on(&cell, 2), all.command_on(&cell, 2));
        // As those that are raced by default: one has files for a table that the other is not in.
        let one = include_str!("../../../contenders/bolide.toml");
        let all = include_str!("../../../contenders/bolide-all.toml");
        let (one, all) = (Contender::parse(one, "one"), Contender::parse(all, "all"));
        assert_eq!(one.unwrap().command_on(&cell, 1), all.unwrap().command_on(&cell, 1));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_sentence() {
        for (from, to, expected) in [
            ("order", "ordre", "no key `ordre`; did you mean `order`?"),
            ("programs =", "program =", "no key `program` in [detect]; did you mean `programs`?"),
            ("\"h1s\"", "\"https\"", "`protocols` has no `https`; known: h1, h2c, h1s, h2, h3"),
            ("\"static-6\", \"p", "\"static6\", \"p", "`routes` has no `static6`; did you mean"),
            ("name = \"nginx\"", "name = \"a b\"", "`name` must be letters"),
            ("name = \"nginx\"", "", "missing field `name`"),
            ("proxy_command =", "tls_command =", "needs `start.proxy_command`"),
            ("\"/six.txt\"", "\"six\"", "must begin with `/`"),
            ("order = 40", "order = ", "line 4"),
        ] {
            let text = TEXT.replace(from, to);
            assert_ne!(text, TEXT, "{from}");
            let error = Contender::parse(&text, "nginx.toml").unwrap_err();
            assert!(error.starts_with("nginx.toml: ") && error.contains(expected), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}

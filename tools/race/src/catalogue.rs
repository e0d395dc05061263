//! The workloads, as data: tables, and the cells that they are made of.

mod route;

use std::fmt;

use bolide_probe::nearest::suggestion;
use http::Version;
use serde::{Deserialize, Serialize};

use crate::differing::Requests;

pub use route::Route;
pub(crate) use route::{EVENT_BYTES, EVENTS_COUNT, EVENTS_GAP_MS};

/// The catalogue's text.
const TEXT: &str = include_str!("catalogue.toml");

/// Protocol in which a contender is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1 over cleartext.
    H1,
    /// HTTP/2 over cleartext, by prior knowledge.
    H2c,
    /// HTTP/1.1 over TLS.
    H1s,
    /// HTTP/2 over TLS.
    H2,
    /// HTTP/3 over QUIC.
    H3,
}

impl Protocol {
    /// All of them, by the names of the TOML files.
    pub const NAMES: [&'static str; 5] = ["h1", "h2c", "h1s", "h2", "h3"];

    /// Over TLS, or over QUIC with the TLS in it.
    pub fn is_tls(self) -> bool {
        matches!(self, Self::H1s | Self::H2 | Self::H3)
    }

    /// The version that responses have.
    pub fn version(self) -> Version {
        match self {
            Self::H1 | Self::H1s => Version::HTTP_11,
            Self::H2c | Self::H2 => Version::HTTP_2,
            Self::H3 => Version::HTTP_3,
        }
    }

    /// HTTP/2.
    pub fn is_http2(self) -> bool {
        matches!(self, Self::H2c | Self::H2)
    }

    /// Returns what people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::H1 => "HTTP/1.1",
            Self::H2c => "h2c",
            Self::H1s => "HTTPS/1.1",
            Self::H2 => "HTTPS/2",
            Self::H3 => "HTTP/3",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(Self::NAMES[*self as usize])
    }
}

/// How a cell is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// As fast as the responses come.
    #[default]
    Closed,
    /// A new connection with a full TLS handshake for each request.
    Handshake,
    /// A new connection for each request, with TLS sessions resumed.
    HandshakeResumed,
    /// Connections that do nothing: memory.
    Idle,
    /// As fast as the responses come, then by the clock at 50 % and 80 % of that.
    Latency,
    /// By the clock, at one rate for all, half of what the slowest of them does as fast as the responses come.
    Rate,
}

/// How many cores the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cores {
    /// One, and the generator has the others.
    #[default]
    One,
    /// All, and the generator uses the same.
    All,
}

/// Key with which the server proves itself, over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certificate {
    /// ECDSA on the curve P-256.
    #[default]
    EcdsaP256,
    /// RSA with 2,048 bits.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
}

/// Workload of a run: cells that are equal are run once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// Protocol.
    pub protocol: Protocol,
    /// Route that is asked for.
    pub route: Route,
    /// Connections.
    pub connections: usize,
    /// Requests in flight on each.
    pub depth: usize,
    /// Bytes of the body that goes either way; 0 where the route says it.
    pub size: usize,
    /// The generator's receive windows are 2^n - 1 bytes; `None`: its own default.
    pub window: Option<u32>,
    /// How it is loaded.
    pub load: Kind,
    /// Cores of the server.
    pub cores: Cores,
    /// The server's certificate. Results stored without it are of ECDSA.
    #[serde(default)]
    pub certificate: Certificate,
    /// How requests differ. Results stored without it repeat one request.
    #[serde(default)]
    pub requests: Requests,
}

impl Cell {
    /// A short name that tells cells apart, such as `h2c-echo-1024-c100-m10`.
    pub fn key(&self) -> String {
        let route = serde_name(&self.route);
        let mut key = format!("{}-{route}", self.protocol);
        if self.size > 0 {
            key += &format!("-{}", self.size);
        }
        key += &format!("-c{}", self.connections);
        if self.depth > 1 {
            key += &format!("-m{}", self.depth);
        }
        if let Some(window) = self.window {
            key += &format!("-w{window}");
        }
        key += self.requests.suffix();
        if self.load != Kind::Closed {
            key += &format!("-{}", serde_name(&self.load));
        }
        if self.cores == Cores::All {
            key += "-all";
        }
        if self.certificate == Certificate::Rsa2048 {
            key += "-rsa";
        }
        key
    }

    /// Fields of each request, with placeholders of `bolide load`.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let own: &[(&str, &str)] = match self.route {
            Route::Grpc => &[("content-type", "application/grpc"), ("te", "trailers")],
            // The calls of clients have a type of their own.
            Route::Post if self.requests != Requests::Rpc => {
                &[("content-type", "application/octet-stream")]
            }
            // A coding that all contenders have.
            Route::SiteApi => &[("accept-encoding", "gzip")],
            _ => &[],
        };
        let others = self.requests.fields().iter();
        own.iter().chain(others.filter(|(name, _)| own.iter().all(|(own, _)| own != name)))
    }

    /// Returns what the backend of a proxy is asked; `None`: there is no backend.
    pub fn behind(&self) -> Option<Self> {
        let route = match self.route {
            Route::Proxy6 => Route::Static6,
            Route::Proxy4k => Route::Static4k,
            Route::ProxyEvents => Route::Events,
            // Each part of the site is served by all of it.
            site if site.is_site() => Route::Static6,
            _ => return None,
        };
        Some(Self { protocol: Protocol::H1, route, ..self.clone() })
    }

    /// Returns what people read.
    pub fn title(&self) -> String {
        self.title_with(match self.load {
            Kind::Latency => ", and by the clock",
            Kind::Rate => ", at a fixed rate",
            _ => "",
        })
    }

    /// The same in few words, for a table: `h2c GET /ping, 100 × 10, distinct`.
    pub(crate) fn short_title(&self) -> String {
        let long = self.title();
        let load = match self.load {
            Kind::Rate => ", set rate",
            _ => "",
        };
        let long = long.strip_suffix(", at a fixed rate").unwrap_or(&long);
        let short = long.replacen(" connections", "", 1);
        let short = short.replace(self.requests.title(), self.requests.short_title());
        short + load
    }

    /// The same, with what is said of the load.
    pub(crate) fn title_with(&self, load: &str) -> String {
        let what = match self.route {
            Route::Ping => "GET /ping".to_owned(),
            Route::Echo => format!("GET /echo, {}", bytes_text(self.size)),
            Route::Post => format!("POST /echo, {}", bytes_text(self.size)),
            Route::Grpc => format!("gRPC unary, {}", bytes_text(self.size)),
            Route::Static6 => "static file, 6 B".to_owned(),
            Route::Static4k => "static file, 4 KiB".to_owned(),
            Route::Static16m => "static file, 16 MiB".to_owned(),
            Route::Proxy6 => "proxied file, 6 B".to_owned(),
            Route::Proxy4k => "proxied file, 4 KiB".to_owned(),
            Route::Events | Route::ProxyEvents => {
                let kind = if self.route == Route::Events { "stream" } else { "proxied stream" };
                format!(
                    "{kind} of {EVENTS_COUNT} events of {EVENT_BYTES} B, {EVENTS_GAP_MS} ms apart"
                )
            }
            Route::Logged => "GET /ping, access logs off and on".to_owned(),
            Route::SiteAsset => "site, asset of 4 KiB".to_owned(),
            Route::SitePage => "site, page by fallback".to_owned(),
            Route::SiteApi => "site, proxied JSON of 20 KiB by gzip".to_owned(),
            Route::SiteLimited => "site, file of 6 B with a rate limit".to_owned(),
            Route::SiteRedirect => "site, redirect".to_owned(),
        };
        let how = match self.load {
            Kind::Closed | Kind::Latency | Kind::Rate => "",
            Kind::Handshake => ", a full handshake each",
            Kind::HandshakeResumed => ", a resumed handshake each",
            Kind::Idle => ", idle",
        };
        let depth = if self.depth > 1 { format!(" × {}", self.depth) } else { String::new() };
        let window = self.window.map(|n| format!(", window 2^{n}")).unwrap_or_default();
        let cores = if self.cores == Cores::All { ", all cores" } else { "" };
        let certificate = if self.certificate == Certificate::Rsa2048 { ", RSA-2048" } else { "" };
        let connections = self.connections;
        format!(
            "{} {what}, {connections} connections{depth}{window}{how}{certificate}{cores}{}{load}",
            self.protocol.title(),
            self.requests.title()
        )
    }
}

/// The name that serde gives to a value of an enum without fields.
pub(crate) fn serde_name(value: &impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// `64 B`, `4 KiB`.
fn bytes_text(size: usize) -> String {
    if size >= 1024 && size.is_multiple_of(1024) {
        return format!("{} KiB", size / 1024);
    }
    format!("{size} B")
}

/// A cell in its table.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its place on the table's axis: `100`, `4 KiB`.
    pub x: String,
    /// Cell that is run.
    pub cell: Cell,
    /// The seed's figures (req/s) in the order of the columns; 0: it failed there.
    pub seed: Vec<f64>,
    /// Belongs to a quick race.
    pub quick: bool,
}

/// Table as a reader sees it.
#[derive(Debug, Clone)]
pub struct Table {
    /// `T1`, `idle` …
    pub name: String,
    /// Title of the table.
    pub title: String,
    /// Quantity in which the rows differ.
    pub x: String,
    /// Source of the seed's figures; empty: there are none.
    pub source: String,
    /// The seed's names, each with the contender that stands for it here.
    pub columns: Vec<(String, String)>,
    /// Name of the last cell over the first, if that is what the table is about.
    pub gain: Option<String>,
    /// The cells.
    pub rows: Vec<Row>,
}

impl Table {
    /// Returns whether it is one of the tables that others have published.
    pub fn is_seed(&self) -> bool {
        !self.source.is_empty()
    }
}

#[derive(Deserialize)]
struct RawTable {
    name: String,
    title: String,
    x: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    columns: Vec<(String, String)>,
    gain: Option<String>,
    #[serde(flatten)]
    defaults: RawCell,
    cells: Vec<RawRow>,
}

#[derive(Deserialize, Clone, Default)]
struct RawCell {
    protocol: Option<Protocol>,
    route: Option<Route>,
    connections: Option<usize>,
    depth: Option<usize>,
    size: Option<usize>,
    window: Option<u32>,
    load: Option<Kind>,
    cores: Option<Cores>,
    certificate: Option<Certificate>,
    requests: Option<Requests>,
}

#[derive(Deserialize)]
struct RawRow {
    x: String,
    #[serde(default)]
    seed: Vec<f64>,
    #[serde(default)]
    quick: bool,
    #[serde(flatten)]
    cell: RawCell,
}

#[derive(Deserialize)]
struct RawCatalogue {
    table: Vec<RawTable>,
}

/// All tables, in their order.
///
/// # Errors
///
/// What is wrong in the catalogue; the one that is built in has nothing wrong.
pub fn tables() -> Result<Vec<Table>, String> {
    parse(TEXT)
}

fn parse(text: &str) -> Result<Vec<Table>, String> {
    let raw: RawCatalogue = toml::from_str(text).map_err(|error| format!("catalogue: {error}"))?;
    raw.table.into_iter().map(table).collect()
}

fn table(raw: RawTable) -> Result<Table, String> {
    let name = raw.name;
    let mut rows = Vec::new();
    for row in raw.cells {
        let missing = |what: &str| format!("{name}: the cell {} has no {what}", row.x);
        let (own, all) = (&row.cell, &raw.defaults);
        if !row.seed.is_empty() && row.seed.len() != raw.columns.len() {
            return Err(format!("{name}: the cell {} needs a figure for each column", row.x));
        }
        let cell = Cell {
            protocol: own.protocol.or(all.protocol).ok_or_else(|| missing("protocol"))?,
            route: own.route.or(all.route).ok_or_else(|| missing("route"))?,
            connections: own
                .connections
                .or(all.connections)
                .ok_or_else(|| missing("connections"))?,
            depth: own.depth.or(all.depth).unwrap_or(1),
            size: own.size.or(all.size).unwrap_or(0),
            window: own.window.or(all.window),
            load: own.load.or(all.load).unwrap_or_default(),
            cores: own.cores.or(all.cores).unwrap_or_default(),
            certificate: own.certificate.or(all.certificate).unwrap_or_default(),
            requests: own.requests.or(all.requests).unwrap_or_default(),
        };
        rows.push(Row { x: row.x, cell, seed: row.seed, quick: row.quick });
    }
    Ok(Table {
        name,
        title: raw.title,
        x: raw.x,
        source: raw.source,
        columns: raw.columns,
        gain: raw.gain,
        rows,
    })
}

/// Which part of the catalogue is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// One cell of each protocol, with requests that differ.
    Quick,
    /// Everything that others have published.
    Seeds,
    /// All of it.
    Everything,
    /// These tables.
    Named(Vec<String>),
}

impl Selection {
    /// The tables with the rows that are selected.
    ///
    /// # Errors
    ///
    /// An unknown name, with the nearest.
    pub fn tables(&self) -> Result<Vec<Table>, String> {
        let mut all = tables()?;
        match self {
            Self::Everything => {}
            Self::Seeds => all.retain(Table::is_seed),
            Self::Quick => {
                for table in &mut all {
                    table.rows.retain(|row| row.quick);
                }
                all.retain(|table| !table.rows.is_empty());
            }
            Self::Named(names) => {
                let known: Vec<&str> = all.iter().map(|table| table.name.as_str()).collect();
                for name in names {
                    if is_bulk(name) {
                        continue;
                    }
                    if !known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                        return Err(format!("no table `{name}`; {}", suggestion(name, &known)));
                    }
                }
                all.retain(|table| names.iter().any(|name| name.eq_ignore_ascii_case(&table.name)));
            }
        }
        Ok(all)
    }
}

/// Returns whether a table is that of bulk transfers through a lab: it has rounds of its own.
pub fn is_bulk(table: &str) -> bool {
    table.eq_ignore_ascii_case("T11") || table.eq_ignore_ascii_case("bulk")
}

/// The cells of `tables`, each once, in their order.
pub fn cells(tables: &[Table]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for row in tables.iter().flat_map(|table| &table.rows) {
        if !cells.contains(&row.cell) {
            cells.push(row.cell.clone());
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_the_seeds_is_there_but_the_labs() {
        let names: Vec<String> = tables().unwrap().into_iter().map(|table| table.name).collect();
        for number in (1..=22).filter(|number| *number != 11) {
            assert!(names.contains(&format!("T{number}")), "T{number}");
        }
        for own in
            ["engine", "files-h1", "proxy-h1", "depth", "handshakes", "idle", "latency", "cores"]
        {
            assert!(names.iter().any(|name| name == own), "{own}");
        }
    }

    #[test]
    fn keys_tell_cells_apart_and_shared_cells_are_run_once() {
        let tables = tables().unwrap();
        let cells = cells(&tables);
        let mut keys: Vec<String> = cells.iter().map(Cell::key).collect();
        let rows: usize = tables.iter().map(|table| table.rows.len()).sum();
        assert!(cells.len() < rows, "T4 stands on cells of T1 and T20");
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), cells.len());
        assert!(keys.contains(&"h2-post-65536-c100-m10".to_owned()), "{keys:?}");
        assert!(keys.contains(&"h2c-static-4k-c500-m100-w16".to_owned()));
    }

    #[test]
    fn a_quick_race_has_one_cell_of_each_protocol() {
        let cells = cells(&Selection::Quick.tables().unwrap());
        let mut keys: Vec<String> = cells.iter().map(Cell::key).collect();
        keys.sort();
        let expected =
            ["h1-ping-c100-distinct", "h2-ping-c100-m10-distinct", "h2c-ping-c100-m10-distinct"];
        assert_eq!(keys, expected);
    }

    #[test]
    fn an_unknown_table_names_the_nearest() {
        let named = |name: &str| Selection::Named(vec![name.to_owned()]).tables();
        assert!(named("lattency").unwrap_err().contains("did you mean `latency`"));
        assert!(named("T11").unwrap().is_empty(), "bulk transfer has no cells");
        assert_eq!(named("t6").unwrap()[0].name, "T6");
    }

    #[test]
    fn what_is_missing_in_a_cell_is_named() {
        let text = "[[table]]\nname='a'\ntitle='b'\nx='c'\ncells=[{x='1', protocol='h1'}]";
        assert_eq!(parse(text).unwrap_err(), "a: the cell 1 has no route");
        let text = "[[table]]\nname='a'\ntitle='b'\nx='c'\ncells=[{x='1', protocol='h4'}]";
        assert!(parse(text).unwrap_err().contains("h4"));
    }
}

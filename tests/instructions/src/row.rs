//! The rows: who asks what.

use std::io;
use std::path::Path;

use Carrier::{H2c, Http1, Http3};
use Content::{Builtin, Files, Upstream};

use crate::request::{Request, browser, echo, file, file_content, file_name, rpc, same_ping};

/// How many connections a row has.
pub(crate) const CONNECTIONS: usize = 10;

/// How many files the row of many files has.
pub(crate) const FILES: usize = 200;

/// How many heads the row of many heads has.
pub(crate) const HEADS: usize = 64;

/// Looks at the disk come by the clock, and threads for them by luck: as slow as the server is under callgrind, both
/// would be a part of the count.
const CONFIGURATION: &str = "\
[[listen]]
http = \"127.0.0.1:0\"

[[route]]
root = \"files\"
fresh = \"1h\"
offload-threads-count = 1
";

/// Requests that a connection has under way at once over HTTP/2 and HTTP/3.
const STREAMS: usize = 10;

/// How requests reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// HTTP/1.1 over cleartext.
    Http1,
    /// HTTP/2 over cleartext, with prior knowledge.
    H2c,
    /// HTTP/3, by `bolide load`: what a datagram carries is a matter of time, so counts differ by some percent.
    Http3,
}

/// Content of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The built-in routes.
    Builtin,
    /// Files.
    Files,
    /// Those files, of another server over HTTP/1.1.
    Upstream,
}

/// One way to load the server.
#[derive(Debug)]
pub struct Row {
    /// Its name, which the baseline has it by.
    pub name: &'static str,
    /// How requests reach the server.
    pub carrier: Carrier,
    /// Content of the server.
    pub content: Content,
    /// The request that a connection sends as its `n`th; both count from 0.
    pub request: fn(connection: usize, n: usize) -> Request,
}

/// Every row, in the order of the table.
pub const ROWS: &[Row] = &[
    row("h2c-distinct-browser", H2c, |connection, n| browser(connection, query(connection, n))),
    row("h2c-same-ping", H2c, |_, _| same_ping()),
    row("h2c-rpc-post", H2c, |connection, _| rpc(connection)),
    row("h2c-post-1k", H2c, |_, _| echo()),
    Row { content: Files, ..row("h2c-one-file", H2c, |_, _| file(0)) },
    Row { content: Files, ..row("h2c-200-files", H2c, one_of_many) },
    Row { content: Upstream, ..row("h2c-proxied-files", H2c, one_of_many) },
    row("h1-same-ping", Http1, |_, _| same_ping()),
    row("h1-64-browser", Http1, |connection, n| {
        let head = (connection * HEADS / CONNECTIONS + n) % HEADS;
        browser(head, query(head, 0))
    }),
    row("h1-distinct-browser", Http1, |connection, n| browser(connection, query(connection, n))),
    row("h3-same-ping", Http3, |_, _| same_ping()),
];

const fn row(name: &'static str, carrier: Carrier, request: fn(usize, usize) -> Request) -> Row {
    Row { name, carrier, content: Builtin, request }
}

/// One of the files after the other; no two connections in step.
fn one_of_many(connection: usize, n: usize) -> Request {
    file((connection * FILES / CONNECTIONS + n) % FILES)
}

/// A number that no two requests of a row have in common.
fn query(connection: usize, n: usize) -> u64 {
    (n * HEADS.max(CONNECTIONS) + connection) as u64
}

impl Row {
    /// The row of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// How many requests a connection has under way at once.
    pub fn requests_at_once(&self) -> usize {
        if self.carrier == Http1 { 1 } else { STREAMS }
    }

    /// How many requests all connections send before one of them sends the next.
    pub fn requests_per_round(&self) -> usize {
        CONNECTIONS * self.requests_at_once()
    }

    /// The arguments of `bolide serve` in front of the server at `upstream`, if the row has one.
    ///
    /// # Errors
    ///
    /// What keeps a file from being written.
    pub(crate) fn arguments(
        &self,
        directory: &Path,
        upstream: Option<&str>,
    ) -> io::Result<Vec<String>> {
        if self.content == Files {
            return file_server(directory);
        }
        let listener = if self.carrier == Http3 { "--https" } else { "--http" };
        let mut arguments = vec!["--workers", "1", listener, "127.0.0.1:0"];
        arguments.extend(upstream.into_iter().flat_map(|url| ["--proxy", url]));
        Ok(arguments.into_iter().map(str::to_owned).collect())
    }
}

/// The arguments of `bolide serve` for a server of files; what they name is written to `directory`.
pub(crate) fn file_server(directory: &Path) -> io::Result<Vec<String>> {
    let files = directory.join("files");
    std::fs::create_dir_all(&files)?;
    for number in 0..FILES {
        std::fs::write(files.join(file_name(number)), file_content(number))?;
    }
    let configuration = directory.join("bolide.toml");
    std::fs::write(&configuration, CONFIGURATION)?;
    let configuration = configuration.display().to_string();
    Ok(["--workers", "1", "--config", &configuration].map(str::to_owned).into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns what all connections of a row send as their first requests.
    fn requests(name: &str, each: usize) -> Vec<Vec<Request>> {
        let row = Row::named(name).unwrap();
        let one = |connection| (0..each).map(|n| (row.request)(connection, n)).collect();
        (0..CONNECTIONS).map(one).collect()
    }

    fn paths<'a>(requests: impl IntoIterator<Item = &'a Request>) -> BTreeSet<&'a str> {
        requests.into_iter().map(|request| request.path.as_str()).collect()
    }

    fn heads<'a>(requests: impl IntoIterator<Item = &'a Request>) -> BTreeSet<String> {
        requests
            .into_iter()
            .map(|request| format!("{} {:?}", request.path, request.fields))
            .collect()
    }

    #[test]
    fn no_two_requests_of_a_distinct_row_are_alike() {
        for name in ["h2c-distinct-browser", "h1-distinct-browser"] {
            let requests = requests(name, 2000);
            assert_eq!(paths(requests.iter().flatten()).len(), CONNECTIONS * 2000, "{name}");
            for field in ["cookie", "referer", "user-agent"] {
                let values: BTreeSet<_> = requests
                    .iter()
                    .map(|of_one| {
                        let values: BTreeSet<_> =
                            of_one.iter().map(|request| request.value(field).unwrap()).collect();
                        assert_eq!(values.len(), 1, "{name}: {field} of one connection");
                        values.into_iter().next()
                    })
                    .collect();
                assert_eq!(values.len(), CONNECTIONS, "{name}: {field}");
            }
        }
    }

    #[test]
    fn a_browser_sends_twelve_fields_of_about_600_bytes() {
        for request in requests("h1-distinct-browser", 100).iter().flatten() {
            assert_eq!(request.fields.len(), 12);
            let lines = request.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
            let bytes = lines.map(|line| line.len()).sum::<usize>();
            assert!((570..=630).contains(&bytes), "{bytes}");
        }
    }

    #[test]
    fn a_client_of_an_rpc_repeats_its_head_and_no_other_client_sends_it() {
        let requests = requests("h2c-rpc-post", 3);
        assert_eq!(paths(requests.iter().flatten()).len(), 1);
        for of_one in &requests {
            assert_eq!(heads(of_one).len(), 1);
        }
        assert_eq!(heads(requests.iter().flatten()).len(), CONNECTIONS);
    }

    #[test]
    fn rows_of_many_walk_through_all_of_them_and_no_two_connections_in_step() {
        for (name, many) in
            [("h2c-200-files", FILES), ("h2c-proxied-files", FILES), ("h1-64-browser", HEADS)]
        {
            let requests = requests(name, many);
            assert_eq!(heads(requests.iter().flatten()).len(), many, "{name}");
            for n in 0..many {
                let at_once = requests.iter().map(|of_one| &of_one[n]);
                assert_eq!(heads(at_once).len(), CONNECTIONS, "{name}");
            }
        }
    }

    #[test]
    fn rows_of_one_request_repeat_it() {
        for name in ["h2c-same-ping", "h2c-post-1k", "h2c-one-file", "h1-same-ping"] {
            assert_eq!(heads(requests(name, 20).iter().flatten()).len(), 1, "{name}");
        }
    }
}

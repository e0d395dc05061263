//! Asking a server for its metrics, and reading what it says.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);

/// The most that is read of an answer, in bytes.
const ANSWER_BYTES: u64 = 16 * 1024 * 1024;

/// Where a server shows its metrics.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    authority: String,
    path: String,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}", self.authority)
    }
}

/// One sample of one metric.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    labels: Vec<(String, String)>,
    pub(super) value: f64,
}

impl Sample {
    /// The value of a label; empty when there is none.
    pub(super) fn label(&self, name: &str) -> &str {
        let label = self.labels.iter().find(|(label, _)| label == name);
        label.map_or("", |(_, value)| value)
    }
}

/// What a server said at one moment.
#[derive(Debug, Clone)]
pub(super) struct Scrape {
    pub(super) at: Instant,
    pub(super) samples: Vec<Sample>,
}

impl Scrape {
    /// The samples of a metric.
    pub(super) fn of<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Sample> {
        self.samples.iter().filter(move |sample| sample.name == name)
    }

    /// All samples of a metric together.
    pub(super) fn sum(&self, name: &str) -> f64 {
        self.of(name).map(|sample| sample.value).sum()
    }
}

impl Endpoint {
    /// `http://HOST:PORT`, with a path if it is not /metrics.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let port = authority.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
        if !matches!(port, Some(Ok(_))) || !is_plain(authority) || !is_plain(path) {
            return Err("give http://HOST:PORT, as --admin opened it".to_owned());
        }
        let path = if path.is_empty() { "metrics" } else { path };
        Ok(Self { authority: authority.to_owned(), path: format!("/{path}") })
    }

    /// Asks the server.
    pub(super) fn scrape(&self) -> Result<Scrape, String> {
        let answer = self.ask().map_err(|error| {
            format!("{self} can't be asked: {error}; is it the address that --admin was given?")
        })?;
        let at = Instant::now();
        let (head, text) = answer
            .split_once("\r\n\r\n")
            .ok_or_else(|| format!("{self} said something else than HTTP/1.1"))?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        if status != "200" {
            return Err(format!("{self}{} answered {status} instead of metrics", self.path));
        }
        let Scrape { at, samples } = parse_all(at, text);
        if !samples.iter().any(|sample| sample.name.starts_with("bolide_")) {
            return Err(format!("{self}{} shows no metrics of bolide", self.path));
        }
        Ok(Scrape { at, samples })
    }

    fn ask(&self) -> std::io::Result<String> {
        let unknown = || std::io::Error::other("the name has no address");
        let address = self.authority.to_socket_addrs()?.next().ok_or_else(unknown)?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (path, host) = (&self.path, &self.authority);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES).read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// Reads a text of samples.
pub(super) fn parse_all(at: Instant, text: &str) -> Scrape {
    Scrape { at, samples: text.lines().filter_map(parse).collect() }
}

/// Reads a line of the text format: `name{label="value",…} number`. `None`: it is no sample.
fn parse(line: &str) -> Option<Sample> {
    if line.starts_with('#') {
        return None;
    }
    let name_end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.trim_start_matches(',').split_once("=\"")?;
            let (value, after) = unquote(after)?;
            labels.push((label.to_owned(), value));
            rest = after;
        }
        rest = &rest[1..];
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Reads up to the quote that ends a value; returns it, and what follows.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_back() {
        let sample = parse("a_total{route=\"/a\\\"}\\n\",status=\"2xx\"} 12.5").unwrap();
        assert_eq!((sample.name.as_str(), sample.value), ("a_total", 12.5));
        assert_eq!((sample.label("route"), sample.label("status")), ("/a\"}\n", "2xx"));
        assert_eq!(sample.label("other"), "");
        assert_eq!(parse("up 1").unwrap().labels, []);
        for odd in ["# HELP a b", "", "a", "a{b=\"c} 1", "a{b} 1", "a{} x"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn where_to_ask() {
        assert_eq!(Endpoint::parse("127.0.0.1:9").unwrap().to_string(), "http://127.0.0.1:9");
        assert_eq!(Endpoint::parse("http://[::1]:9/").unwrap().path, "/metrics");
        assert_eq!(Endpoint::parse("http://a:9/b/c").unwrap().path, "/b/c");
        for bad in ["", "a", "http://a", "https://a:9", "http://a:b", "a:9/\r\n"] {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn who_is_not_asked_well_says_so() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = nobody.local_addr().unwrap();
        drop(nobody);
        let said = Endpoint::parse(&address.to_string()).unwrap().scrape().unwrap_err();
        assert!(said.contains("--admin"), "{said}");
    }
}

//! Asking a server for its metrics, and reading what it says.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

use bolide::client::Client;
use bolide::http::StatusCode;

/// How long a server may take to say all of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Place where a server shows its metrics.
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

/// Metrics of a server at one moment.
#[derive(Debug, Clone)]
pub(super) struct Scrape {
    pub(super) at: Instant,
    /// By the name of the metric.
    samples: HashMap<String, Vec<Sample>>,
}

impl Scrape {
    /// The samples of a metric.
    pub(super) fn of(&self, name: &str) -> &[Sample] {
        self.samples.get(name).map_or(&[], Vec::as_slice)
    }

    /// The samples of a metric by the value of a label.
    pub(super) fn by(&self, name: &str, label: &str) -> BTreeMap<&str, Vec<&Sample>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for sample in self.of(name) {
            groups.entry(sample.label(label)).or_default().push(sample);
        }
        groups
    }

    /// All samples of a metric together.
    pub(super) fn sum(&self, name: &str) -> f64 {
        self.of(name).iter().map(|sample| sample.value).sum()
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
            return Err("give http://HOST:PORT, the address of --admin".to_owned());
        }
        let path = if path.is_empty() { "metrics" } else { path };
        Ok(Self { authority: authority.to_owned(), path: format!("/{path}") })
    }

    /// Asks the server, which has so much time for all of its response.
    pub(super) fn scrape(&self, client: &Client, patience: Duration) -> Result<Scrape, String> {
        let asked = client.get(&format!("{self}{}", self.path)).timeout(patience).send();
        let said = asked.and_then(|mut response| Ok((response.status(), response.text()?)));
        let (status, text) = said.map_err(|error| {
            format!("can't reach {self}: {error}; is it the address of --admin?")
        })?;
        if status != StatusCode::OK {
            return Err(format!("{self}{} sent {status} instead of metrics", self.path));
        }
        let scrape = parse_all(Instant::now(), &text);
        if !scrape.samples.keys().any(|name| name.starts_with("bolide_")) {
            return Err(format!("{self}{} has no metrics of bolide", self.path));
        }
        Ok(scrape)
    }
}

/// Reads a text of samples.
pub(super) fn parse_all(at: Instant, text: &str) -> Scrape {
    let mut samples = HashMap::<String, Vec<Sample>>::new();
    for (name, sample) in text.lines().filter_map(parse) {
        samples.entry(name).or_default().push(sample);
    }
    Scrape { at, samples }
}

/// Reads a line of the text format: `name{label="value",…} number`. `None`: it is no sample.
fn parse(line: &str) -> Option<(String, Sample)> {
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
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    // There is no negative zero of anything.
    Some((name.to_owned(), Sample { labels, value: value + 0.0 }))
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
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_sample_is_read_back() {
        let (name, sample) = parse("a_total{route=\"/a\\\"}\\n\",status=\"2xx\"} 12.5").unwrap();
        assert_eq!((name.as_str(), sample.value), ("a_total", 12.5));
        assert_eq!((sample.label("route"), sample.label("status")), ("/a\"}\n", "2xx"));
        assert_eq!(sample.label("other"), "");
        assert_eq!(parse("up 1").unwrap().1.labels, []);
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

    /// Answers one connection with these bytes, then each 10 ms with `drip`, if that is anything.
    fn plant(response: &'static [u8], drip: &'static [u8]) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 1000]);
            let mut written = socket.write_all(response);
            while written.is_ok() && !drip.is_empty() {
                std::thread::sleep(Duration::from_millis(10));
                written = socket.write_all(drip);
            }
        });
        endpoint
    }

    #[test]
    fn who_is_not_asked_well_says_so() {
        let client = Client::new().unwrap();
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = nobody.local_addr().unwrap();
        drop(nobody);
        let endpoint = Endpoint::parse(&address.to_string()).unwrap();
        let said = endpoint.scrape(&client, PATIENCE).unwrap_err();
        assert!(said.contains("--admin"), "{said}");
        let other = plant(b"HTTP/1.1 404 \x9b2J\r\nContent-Length: 0\r\n\r\n", b"");
        let said = other.scrape(&client, PATIENCE).unwrap_err();
        assert!(said.ends_with("/metrics sent 404 Not Found instead of metrics"), "{said}");
    }

    #[test]
    fn a_response_that_is_cut_off_is_no_scrape() {
        let client = Client::new().unwrap();
        let cut = plant(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nbolide_ready 1\n", b"");
        let said = cut.scrape(&client, PATIENCE).unwrap_err();
        assert!(said.contains("can't reach"), "{said}");
    }

    #[test]
    fn a_server_that_drips_has_one_deadline_for_all_of_it() {
        let client = Client::new().unwrap();
        let drip = plant(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", b"b");
        let said = drip.scrape(&client, Duration::from_millis(300)).unwrap_err();
        assert!(said.contains("can't reach"), "{said}");
    }
}

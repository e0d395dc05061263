//! Metrics of a load while it runs, sent to collectors: by Prometheus remote write, or by OTLP.

mod otlp;
mod remote_write;

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use bolide_client::Client;
use bolide_probe::progress::Progress;

use super::samples::{Sample, samples};

/// How long a collector may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Looks that wait for a collector that does not take them; the oldest gives way.
const WAITING_COUNT: usize = 100;

/// How metrics are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Prometheus remote write 1.0: protobuf, compressed by snappy.
    RemoteWrite,
    /// OTLP/HTTP with protobuf.
    Otlp,
}

impl Protocol {
    const fn option(self) -> &'static str {
        match self {
            Self::RemoteWrite => "--remote-write",
            Self::Otlp => "--otlp",
        }
    }
}

/// Target of metrics, and its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    /// By which protocol.
    pub protocol: Protocol,
    /// As given; OTLP's path is added where there is none.
    pub url: String,
    /// Fields of each request.
    pub fields: Vec<(String, String)>,
    /// How often.
    pub every: Duration,
}

/// A phase at one time, which is counted from 1970.
#[derive(Debug, Clone)]
struct Look {
    phase: String,
    /// When the phase began.
    began: Duration,
    at: Duration,
    samples: Vec<Sample>,
}

/// Sends what is observed to a collector, from a thread of its own.
#[derive(Debug)]
pub struct Push {
    looks: Sender<Look>,
    thread: JoinHandle<Outcome>,
    /// The phase that runs, and when it began.
    phase: (String, Duration),
}

impl Push {
    /// Begins to. `target`: what the load is sent to, for who looks at the metrics.
    ///
    /// # Errors
    ///
    /// There is no client or no thread.
    pub fn start(collector: Collector, target: &str) -> Result<Self, String> {
        let option = collector.protocol.option();
        let wrong = |why: &dyn std::fmt::Display| format!("{option} {}: {why}", collector.url);
        let client = Client::builder().build().map_err(|error| wrong(&error))?;
        let (looks, received) = channel();
        let name = option.trim_start_matches('-').to_owned();
        let mut sender = Sending {
            client,
            target: target.to_owned(),
            collector: collector.clone(),
            waiting: VecDeque::new(),
            outcome: Outcome { what: wrong(&""), ..Outcome::default() },
        };
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                sender.run(&received);
                sender.outcome
            })
            .map_err(|error| wrong(&error))?;
        Ok(Self { looks, thread, phase: Default::default() })
    }

    /// Sets what it sends next.
    pub fn observe(&mut self, phase: &str, progress: &Progress) {
        let at = since_1970();
        if self.phase.0 != phase {
            self.phase = (phase.to_owned(), at.saturating_sub(progress.elapsed));
        }
        let (phase, began) = self.phase.clone();
        // Its thread ends after this.
        let _ = self.looks.send(Look { phase, began, at, samples: samples(progress) });
    }

    /// Sends the last, and ends.
    ///
    /// # Errors
    ///
    /// What the collector has not taken, in a sentence.
    pub fn finish(self) -> Result<(), String> {
        drop(self.looks);
        // Its panic, if there was one, has been printed.
        let outcome = self.thread.join().unwrap_or_default();
        match outcome.lost_count {
            0 => Ok(()),
            lost => Err(format!(
                "{}{lost} of {} looks were not taken: {}",
                outcome.what, outcome.count, outcome.why
            )),
        }
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Results of the looks.
#[derive(Debug, Default)]
struct Outcome {
    /// Destination.
    what: String,
    count: u64,
    lost_count: u64,
    /// Why the last one was not taken.
    why: String,
}

#[derive(Debug)]
struct Sending {
    client: Client,
    target: String,
    collector: Collector,
    /// Looks that no collector has yet, the oldest first.
    waiting: VecDeque<Look>,
    outcome: Outcome,
}

impl Sending {
    /// Sends the last look of each interval, and the last of each phase.
    fn run(&mut self, looks: &Receiver<Look>) {
        let mut newest: Option<Look> = None;
        let mut due = since_1970() + self.collector.every;
        loop {
            let now = since_1970();
            match looks.recv_timeout(due.saturating_sub(now)) {
                Ok(look) => {
                    if let Some(before) = newest.replace(look)
                        && newest.as_ref().is_some_and(|look| look.phase != before.phase)
                    {
                        self.keep(before);
                    }
                    if since_1970() < due {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    newest.into_iter().for_each(|look| self.keep(look));
                    self.send();
                    self.outcome.lost_count += self.waiting.len() as u64;
                    return;
                }
            }
            due = since_1970() + self.collector.every;
            newest.take().into_iter().for_each(|look| self.keep(look));
            self.send();
        }
    }

    fn keep(&mut self, look: Look) {
        self.outcome.count += 1;
        self.waiting.push_back(look);
        if self.waiting.len() > WAITING_COUNT {
            self.waiting.pop_front();
            self.outcome.lost_count += 1;
        }
    }

    /// Sends all that waits. What a collector refuses is lost; what it could not take is sent again.
    fn send(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.post() {
            Ok(()) => self.waiting.clear(),
            Err((is_final, why)) => {
                self.outcome.why = why;
                if is_final {
                    self.outcome.lost_count += self.waiting.len() as u64;
                    self.waiting.clear();
                }
            }
        }
    }

    fn post(&mut self) -> Result<(), (bool, String)> {
        let looks = self.waiting.make_contiguous();
        let (url, body, fields) = match self.collector.protocol {
            Protocol::RemoteWrite => {
                let body = remote_write::body(looks, &self.target);
                (self.collector.url.clone(), body, remote_write::FIELDS)
            }
            Protocol::Otlp => {
                (otlp::url(&self.collector.url), otlp::body(looks, &self.target), otlp::FIELDS)
            }
        };
        let mut request = self.client.post(&url).timeout(TIMEOUT).body(body);
        for (name, value) in fields {
            request = request.header(name, value);
        }
        for (name, value) in &self.collector.fields {
            request = request.header(name, value);
        }
        let mut response = request.send().map_err(|error| (false, error.to_string()))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let said = response.text().unwrap_or_default();
        let said = said.lines().next().unwrap_or_default().chars().take(200).collect::<String>();
        let is_final = status.is_client_error() && status.as_u16() != 429;
        Err((is_final, format!("{status} {said}").trim_end().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bolide_server::{Response, Router, Server, collect};
    use http::StatusCode;

    use super::*;

    fn collector(protocol: Protocol, url: String) -> Collector {
        let fields = vec![("authorization".to_owned(), "Bearer t".to_owned())];
        Collector { protocol, url, fields, every: Duration::from_secs(60) }
    }

    fn progress(completed: u64) -> Progress {
        Progress { completed, ..Progress::default() }
    }

    /// Returns what a collector got that responds to its requests like this, in turn and then by 200, and what the push came to.
    fn pushed(
        statuses: &[u16],
        push: impl FnOnce(String) -> Result<(), String>,
    ) -> (Vec<Vec<u8>>, String) {
        let statuses = Arc::new(Mutex::new(statuses.to_vec()));
        let got = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let (told, kept) = (Arc::clone(&got), statuses);
        let routes = move || {
            let (told, kept) = (Arc::clone(&told), Arc::clone(&kept));
            let response = collect(move |request, body| {
                assert_eq!(request.header("authorization"), Some("Bearer t"));
                told.lock().unwrap().push(body.to_vec());
                let mut kept = kept.lock().unwrap();
                let status = if kept.is_empty() { 200 } else { kept.remove(0) };
                Response::text("said so").with_status(StatusCode::from_u16(status).unwrap())
            });
            Router::new().handle_post("/{*path}", response)
        };
        let running = Server::new().workers(1).http("127.0.0.1:0").start(routes).unwrap();
        let address = running.addresses()[0].unwrap();
        let said = push(format!("http://{address}/write")).err().unwrap_or_default();
        running.shut_down();
        running.join().unwrap();
        let got = got.lock().unwrap().clone();
        (got, said)
    }

    #[test]
    fn the_last_look_of_each_phase_is_sent() {
        for protocol in [Protocol::RemoteWrite, Protocol::Otlp] {
            let (got, said) = pushed(&[], |url| {
                let mut push = Push::start(collector(protocol, url), "http://a").unwrap();
                for (phase, completed) in [("one", 1), ("one", 2), ("two", 3), ("two", 4)] {
                    push.observe(phase, &progress(completed));
                }
                push.finish()
            });
            assert_eq!((got.len(), said.as_str()), (1, ""));
            let text = match protocol {
                Protocol::RemoteWrite => snap::raw::Decoder::new().decompress_vec(&got[0]).unwrap(),
                Protocol::Otlp => got[0].clone(),
            };
            let found = |wanted: f64| {
                let bytes = wanted.to_le_bytes();
                text.windows(8).any(|window| window == bytes)
            };
            assert!(found(2.0) && found(4.0) && !found(1.0) && !found(3.0), "{protocol:?}");
        }
    }

    #[test]
    fn what_a_collector_can_not_take_is_sent_again_and_what_it_refuses_is_told() {
        let push_slowly = |url: String, looks: usize| {
            let every = Duration::from_millis(1);
            let collector = Collector { every, ..collector(Protocol::RemoteWrite, url) };
            let mut push = Push::start(collector, "http://a").unwrap();
            for look in 0..looks {
                push.observe(&format!("phase {look}"), &progress(1));
            }
            push.finish()
        };
        let (got, said) = pushed(&[503], |url| {
            let first = push_slowly(url.clone(), 1);
            let second = push_slowly(url, 1);
            first.and(second)
        });
        assert_eq!(got.len(), 2, "{said}");
        assert!(
            said.contains("1 of 1 looks were not taken: 503 Service Unavailable said so"),
            "{said}"
        );
        let (got, said) = pushed(&[400; 100], |url| push_slowly(url, 3));
        assert!(!got.is_empty());
        assert!(said.starts_with("--remote-write http://127.0.0.1:"), "{said}");
        assert!(said.contains("3 of 3 looks were not taken: 400 Bad Request said so"), "{said}");
    }

    #[test]
    fn looks_that_wait_for_a_collector_are_bounded() {
        let url = "http://127.0.0.1:1".to_owned();
        let mut push = Push::start(collector(Protocol::Otlp, url), "http://a").unwrap();
        for look in 0..WAITING_COUNT + 50 {
            push.observe(&format!("phase {look}"), &progress(1));
        }
        let said = push.finish().unwrap_err();
        let count = WAITING_COUNT + 50;
        assert!(said.contains(&format!("{count} of {count} looks were not taken")), "{said}");
    }
}

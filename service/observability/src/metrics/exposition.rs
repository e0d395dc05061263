//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};
use std::time::Duration;

use super::counter::{DURATION_BOUNDS_NS, HistogramSnapshot};
use super::place::{Protocol, Standing};
use super::snapshot::{ServerState, Snapshot};
use crate::profile::{ProfileSnapshot, STAGE_BOUNDS_NS};

/// A metric: its name, type, labels and meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The name.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels, separated by commas.
    pub labels: &'static str,
    /// Description of the metric.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal ($labels:literal) $help:literal;)*) => {
        $(const $constant: Metric = Metric {
            name: $name, kind: stringify!($kind), labels: $labels, help: $help,
        };)*

        /// Every metric of [`Snapshot::write`].
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    READY: gauge "bolide_ready" ("") "1 while the server accepts requests, 0 while it starts or drains";
    UPTIME: gauge "bolide_uptime_seconds" ("") "Seconds since the start";
    WORKERS: gauge "bolide_workers" ("") "Workers: threads, each with an event loop";
    OPEN: gauge "bolide_connections_open" ("protocol,state,tls")
        "Clients' connections that are open";
    ACCEPTED: counter "bolide_connections_accepted_total" ("") "Connections that were accepted";
    REFUSED: counter "bolide_connections_refused_total" ("")
        "Connections that were closed immediately: connection limit reached";
    PAUSES: counter "bolide_accept_pauses_total" ("")
        "Times accepting was paused: no file descriptors, or connection limit reached";
    DATAGRAMS: counter "bolide_datagrams_received_total" ("") "UDP datagrams received, for HTTP/3";
    PASSED_ON: counter "bolide_quic_forwarded_total" ("") "UDP datagrams passed on to the worker that has their connection";
    HELD: gauge "bolide_held_bytes" ("") "Memory that workers keep for peers: input, bodies, and unsent output";
    HELD_FULL: counter "bolide_held_bytes_full_total" ("")
        "Times reading from a connection paused because it kept too much memory";
    CLOSED: counter "bolide_connections_closed_total" ("reason") "Clients' connections that ended";
    OUTBOUND: counter "bolide_connections_outbound_total" ("") "Connections made to other servers";
    OUTBOUND_FAILED: counter "bolide_connections_outbound_failed_total" ("")
        "Connections to other servers that were never established";
    RECEIVED: counter "bolide_received_bytes_total" ("") "Bytes read from sockets";
    SENT: counter "bolide_sent_bytes_total" ("") "Bytes written to sockets";
    REQUESTS: counter "bolide_requests_total" ("route,status")
        "Requests by route and class of the response; none: no response";
    IN_FLIGHT: gauge "bolide_requests_in_flight" ("") "Requests in progress";
    DURATION: histogram "bolide_request_duration_seconds" ("route")
        "From the head's arrival to the turn that gave the last byte of the response to the connection";
    ABORTED: counter "bolide_requests_aborted_total" ("reason")
        "Requests that ended before they were complete";
    PANICS: counter "bolide_handler_panics_total" ("") "Panics in handlers";
    LIMITS: counter "bolide_limits_hit_total" ("limit") "Limits that were hit";
    ABUSE: counter "bolide_abuse_budgets_spent_total" ("budget")
        "Abuse budgets that a peer exhausted: its connection was closed";
    REFUSED_STREAMS: counter "bolide_h2_streams_refused_total" ("")
        "HTTP/2 streams that were refused at the limit";
    RESETS: counter "bolide_h2_resets_total" ("direction,code") "RST_STREAM frames, by error code (RFC 9113 §7)";
    STALLS: counter "bolide_h2_stalled_seconds_total" ("cause")
        "Time during which output over HTTP/2 was blocked";
    USED_UP: counter "bolide_h2_receive_windows_used_up_total" ("")
        "Times a peer used up a receive window and may have waited";
    HANDSHAKES: counter "bolide_tls_handshakes_total" ("kind") "TLS handshakes that were completed";
    HANDSHAKES_FAILED: counter "bolide_tls_handshakes_failed_total" ("kind")
        "TLS handshakes that failed";
    TURNS: histogram "bolide_loop_turn_seconds" ("")
        "Turns of the event loops, without waiting for the kernel";
    LONG_TURNS: counter "bolide_loop_long_turns_total" ("") "Turns that took more than a second";
    BLOCKED: counter "bolide_loop_write_blocked_total" ("") "Writes that would have blocked";
    LOG_WRITTEN: counter "bolide_access_log_lines_total" ("") "Lines written to the access log's file";
    LOG_DROPPED: counter "bolide_access_log_dropped_total" ("reason")
        "Lines that are missing from the access log";
    PROFILE_ONE_IN: gauge "bolide_profile_one_in" ("")
        "One in N turns of the event loops is measured; 0: off";
    PROFILE_TURNS: counter "bolide_profile_turns_total" ("") "Turns of the event loops that were measured";
    PROFILE_DROPPED: counter "bolide_profile_turns_dropped_total" ("")
        "Turns whose measurement was dropped because another thread used the core";
    PROFILE_REQUESTS: counter "bolide_profile_requests_total" ("")
        "Requests that began in measured turns";
    PROFILE_CPU: counter "bolide_profile_cpu_seconds_total" ("")
        "CPU time of the measured turns, by the threads' CPU clocks";
    PROFILE_READING: counter "bolide_profile_reading_seconds_total" ("")
        "CPU time of reading the clock in measured turns; part of no stage";
    PROFILE_STAGES: counter "bolide_profile_stage_seconds_total" ("stage")
        "CPU time of each stage in measured turns";
    STAGES: histogram "bolide_request_stage_cpu_seconds" ("stage")
        "CPU time of each stage for each request that began in a measured turn";
}

/// Writes samples in the text format of Prometheus, version 0.0.4.
///
/// ```
/// use bolide_observability::{Exposition, Metric};
///
/// const PETS: Metric = Metric { name: "pets", kind: "gauge", labels: "kind", help: "Pets" };
/// let mut text = Exposition::new();
/// text.sample(&PETS, &[("kind", "a \"cat\"")], 3);
/// assert_eq!(
///     text.into_text(),
///     "# HELP pets Pets\n# TYPE pets gauge\npets{kind=\"a \\\"cat\\\"\"} 3\n"
/// );
/// ```
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    latest: &'static str,
}

/// Escapes what stands between quotes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => formatter.write_str("\\\\")?,
                '"' => formatter.write_str("\\\"")?,
                '\n' => formatter.write_str("\\n")?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

impl Exposition {
    /// The `Content-Type` of the text.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes one sample. Samples of one metric come one after the other.
    pub fn sample(&mut self, metric: &Metric, labels: &[(&str, &str)], value: impl Display) {
        self.announce(metric);
        self.line(metric.name, "", labels.iter().copied(), &value);
    }

    /// Writes the buckets, sum and count of a histogram of durations.
    pub fn histogram(
        &mut self,
        metric: &Metric,
        labels: &[(&str, &str)],
        histogram: &HistogramSnapshot,
    ) {
        let HistogramSnapshot { buckets, sum, .. } = histogram;
        self.buckets(metric, labels, &DURATION_BOUNDS_NS, buckets, *sum);
    }

    /// Writes a histogram with bounds of its own, in nanoseconds: how many were within each bound and not
    /// within the one before it, then how many were beyond the last.
    pub fn buckets(
        &mut self,
        metric: &Metric,
        labels: &[(&str, &str)],
        bounds: &[u64],
        counts: &[u64],
        sum: Duration,
    ) {
        self.announce(metric);
        let mut count = 0;
        for (index, bucket) in counts.iter().enumerate() {
            count += bucket;
            let bound = bounds.get(index);
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| seconds(*bound));
            let labels = labels.iter().copied().chain([("le", bound.as_str())]);
            self.line(metric.name, "_bucket", labels, &count);
        }
        let sum = sum.as_secs_f64();
        self.line(metric.name, "_sum", labels.iter().copied(), &sum);
        self.line(metric.name, "_count", labels.iter().copied(), &count);
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn announce(&mut self, metric: &Metric) {
        if self.latest != metric.name {
            self.latest = metric.name;
            let Metric { name, kind, help, .. } = metric;
            // Writing to a string never fails.
            let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
    }

    fn line<'l>(
        &mut self,
        name: &str,
        suffix: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
        value: &dyn Display,
    ) {
        self.text.push_str(name);
        self.text.push_str(suffix);
        let mut before = '{';
        for (label, value) in labels {
            let _ = write!(self.text, "{before}{label}=\"{}\"", Escaped(value));
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// Nanoseconds as seconds, without rounding.
fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

impl Snapshot {
    /// Writes every metric: [`METRICS`] lists them.
    pub fn write(&self, text: &mut Exposition) {
        text.sample(&READY, &[], u8::from(self.state == ServerState::Ready));
        text.sample(&UPTIME, &[], self.uptime.as_secs_f64());
        text.sample(&WORKERS, &[], self.workers);
        self.write_connections(text);
        self.write_requests(text);
        text.sample(&PANICS, &[], self.handler_panics);
        for (name, count) in &self.ends.limits {
            text.sample(&LIMITS, &[("limit", name)], count);
        }
        for (name, count) in &self.ends.abuse {
            text.sample(&ABUSE, &[("budget", name)], count);
        }
        self.write_h2(text);
        text.sample(&HANDSHAKES, &[("kind", "full")], self.tls.full);
        text.sample(&HANDSHAKES, &[("kind", "resumed")], self.tls.resumed);
        for (name, count) in &self.tls.failed {
            text.sample(&HANDSHAKES_FAILED, &[("kind", name)], count);
        }
        text.histogram(&TURNS, &[], &self.turns);
        text.sample(&LONG_TURNS, &[], self.long_turns);
        text.sample(&BLOCKED, &[], self.event_loop.work.write_blocked);
        if let Some(log) = &self.access_log {
            text.sample(&LOG_WRITTEN, &[], log.written);
            text.sample(&LOG_DROPPED, &[("reason", "queue-full")], log.dropped);
            text.sample(&LOG_DROPPED, &[("reason", "write-failed")], log.failed);
        }
        if let Some(profile) = &self.profile {
            text.sample(&PROFILE_ONE_IN, &[], profile.one_in);
            if profile.turns + profile.dropped > 0 {
                write_profile(profile, text);
            }
        }
    }

    fn write_connections(&self, text: &mut Exposition) {
        for kind in &self.connections {
            let protocol = match kind.protocol {
                Protocol::Unknown => "unknown",
                Protocol::Http1 => "http/1.1",
                Protocol::Http2 => "h2",
                Protocol::Http3 => "h3",
            };
            let state = match kind.standing {
                Standing::Opening => "opening",
                Standing::Active => "active",
                Standing::Idle => "idle",
            };
            let tls = if kind.tls { "yes" } else { "no" };
            let labels = [("protocol", protocol), ("state", state), ("tls", tls)];
            text.sample(&OPEN, &labels, kind.count);
        }
        let event_loop = &self.event_loop;
        text.sample(&ACCEPTED, &[], event_loop.accepted);
        text.sample(&REFUSED, &[], event_loop.refused);
        text.sample(&PAUSES, &[], event_loop.work.accept_pauses);
        text.sample(&DATAGRAMS, &[], event_loop.datagrams);
        text.sample(&PASSED_ON, &[], event_loop.datagrams_passed_on);
        text.sample(&HELD, &[], event_loop.held_bytes);
        text.sample(&HELD_FULL, &[], event_loop.work.held_full);
        for (reason, count) in &self.ends.closes {
            text.sample(&CLOSED, &[("reason", reason)], count);
        }
        text.sample(&OUTBOUND, &[], event_loop.outbound);
        text.sample(&OUTBOUND_FAILED, &[], event_loop.connects_failed);
        text.sample(&RECEIVED, &[], event_loop.bytes_received);
        text.sample(&SENT, &[], event_loop.bytes_sent);
    }

    fn write_requests(&self, text: &mut Exposition) {
        let asked = || self.routes.iter().filter(|route| route.requests() > 0);
        for route in asked() {
            for (class, count) in CLASSES.iter().zip(route.statuses) {
                if count > 0 {
                    text.sample(&REQUESTS, &[("route", &route.name), ("status", class)], count);
                }
            }
        }
        text.sample(&IN_FLIGHT, &[], self.in_flight);
        for route in asked() {
            text.histogram(&DURATION, &[("route", &route.name)], &route.durations);
        }
        for (reason, count) in &self.ends.aborts {
            text.sample(&ABORTED, &[("reason", reason)], count);
        }
    }

    fn write_h2(&self, text: &mut Exposition) {
        let h2 = &self.http2;
        let seconds = |ms: u64| ms as f64 / 1000.0;
        text.sample(&REFUSED_STREAMS, &[], h2.streams_refused);
        for (direction, resets) in [("received", &h2.resets_received), ("sent", &h2.resets_sent)] {
            for (code, count) in resets {
                text.sample(&RESETS, &[("direction", direction), ("code", code)], *count);
            }
        }
        let stalls = [
            ("stream-window", h2.stream_window_stall_ms),
            ("connection-window", h2.connection_window_stall_ms),
            ("socket", h2.socket_stall_ms),
        ];
        for (cause, ms) in stalls {
            text.sample(&STALLS, &[("cause", cause)], seconds(ms));
        }
        text.sample(&USED_UP, &[], h2.receive_windows_used_up);
    }
}

fn write_profile(profile: &ProfileSnapshot, text: &mut Exposition) {
    text.sample(&PROFILE_TURNS, &[], profile.turns);
    text.sample(&PROFILE_DROPPED, &[], profile.dropped);
    text.sample(&PROFILE_REQUESTS, &[], profile.requests);
    text.sample(&PROFILE_CPU, &[], profile.cpu.as_secs_f64());
    text.sample(&PROFILE_READING, &[], profile.reading.as_secs_f64());
    for stage in &profile.stages {
        let labels = [("stage", stage.stage.name())];
        text.sample(&PROFILE_STAGES, &labels, stage.spent.as_secs_f64());
    }
    for stage in &profile.stages {
        let labels = [("stage", stage.stage.name())];
        let HistogramSnapshot { buckets, sum, .. } = &stage.per_request;
        text.buckets(&STAGES, &labels, &STAGE_BOUNDS_NS, buckets, *sum);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::access_log::AccessLogStats;
    use crate::metrics::{EndCounts, RouteSnapshot};

    /// A snapshot in which everything has happened once.
    fn eventful() -> Snapshot {
        let mut route = RouteSnapshot::new("/users/{id}");
        route.statuses[2] = 3;
        route.durations.buckets[0] = 2;
        route.durations.buckets[19] = 1;
        route.durations.sum = Duration::from_millis(1500);
        Snapshot {
            state: ServerState::Ready,
            routes: vec![route],
            http2: crate::metrics::Http2Snapshot {
                resets_sent: vec![("REFUSED_STREAM", 1)],
                ..Default::default()
            },
            tls: crate::metrics::TlsSnapshot { full: 1, resumed: 1, failed: vec![("alert", 1)] },
            access_log: Some(AccessLogStats { written: 5, dropped: 2, failed: 1 }),
            profile: Some(ProfileSnapshot { turns: 1, ..ProfileSnapshot::default() }),
            ends: EndCounts {
                closes: vec![("eof", 1)],
                aborts: vec![("the peer reset the stream", 1)],
                limits: vec![("head-timeout", 1)],
                abuse: vec![("rapid-reset", 1)],
            },
            ..Snapshot::default()
        }
    }

    fn text_of(snapshot: &Snapshot) -> String {
        let mut text = Exposition::new();
        snapshot.write(&mut text);
        text.into_text()
    }

    #[test]
    fn every_metric_is_written_and_announced_once() {
        let text = text_of(&eventful());
        for metric in METRICS {
            let announced = format!("# TYPE {} {}\n", metric.name, metric.kind);
            assert_eq!(text.matches(&announced).count(), 1, "{announced}{text}");
            let sample = text.lines().find(|line| {
                line.strip_prefix(metric.name).is_some_and(|rest| rest.starts_with(['{', ' ', '_']))
            });
            let sample = sample.unwrap_or_else(|| panic!("no sample of {}", metric.name));
            for label in metric.labels.split(',').filter(|label| !label.is_empty()) {
                assert!(sample.contains(&format!("{label}=\"")), "{sample}");
            }
        }
    }

    #[test]
    fn buckets_are_cumulative() {
        let text = text_of(&eventful());
        let bucket = "bolide_request_duration_seconds_bucket{route=\"/users/{id}\",le=";
        for (bound, count) in [("0.00005", 2), ("2.5", 2), ("60", 2), ("+Inf", 3)] {
            let line = format!("{bucket}\"{bound}\"}} {count}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        assert!(text.contains("bolide_request_duration_seconds_sum{route=\"/users/{id}\"} 1.5\n"));
        assert!(text.contains("bolide_request_duration_seconds_count{route=\"/users/{id}\"} 3\n"));
    }

    #[test]
    fn a_profile_that_measured_nothing_has_no_histogram() {
        let profile = Some(ProfileSnapshot::default());
        let text = text_of(&Snapshot { profile, ..Snapshot::default() });
        assert!(text.contains("\nbolide_profile_one_in 0\n"), "{text}");
        assert!(!text.contains("stage="), "{text}");
    }

    #[test]
    fn a_label_cannot_end_its_line() {
        let mut text = Exposition::new();
        text.sample(&REQUESTS, &[("route", "a\"} 1\nb\\")], 1);
        assert!(
            text.into_text().ends_with("\nbolide_requests_total{route=\"a\\\"} 1\\nb\\\\\"} 1\n")
        );
    }

    /// The tables of docs/operate.md say what the code does.
    #[test]
    fn the_page_lists_every_metric() {
        let page = include_str!("../../../../docs/operate.md");
        for Metric { name, kind, labels, help } in METRICS {
            let labels: Vec<_> = labels.split(',').filter(|label| !label.is_empty()).collect();
            let row = format!("| `{name}` | {kind} | {} | {help} |", labels.join(", "));
            assert!(page.contains(&row), "docs/operate.md has no row\n{row}");
        }
        let listed = page.lines().filter(|line| line.starts_with("| `bolide_")).count();
        // Those of upstreams and of certificates have tests of their own.
        let is_others = |line: &&str| {
            line.starts_with("| `bolide_upstream_") || line.starts_with("| `bolide_acme_")
        };
        let others = page.lines().filter(is_others).count();
        assert_eq!(listed - others, METRICS.len(), "docs/operate.md lists what there isn't");
    }
}

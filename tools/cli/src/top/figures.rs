//! From two scrapes to what happened between them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::SystemTime;

use super::scrape::{Sample, Scrape};

/// The turns of the server's loops.
const TURNS: &str = "bolide_loop_turn_seconds_bucket";

/// Routes, the busiest first, and others that have names that are shown at most.
const ROWS_COUNT: usize = 500;

/// Stages that are shown at most; a server of ours has four.
const STAGES_COUNT: usize = 16;

/// Figures of one route.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    pub(super) name: String,
    /// Requests per second, in all and by the class of the response: 2xx, 3xx, 4xx, 5xx, and without one.
    pub(super) rate: f64,
    pub(super) classes: [f64; 5],
    /// The median and the 99th percentile of the durations, in seconds: the upper bounds of their buckets.
    pub(super) median: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// Figures of one upstream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Upstream {
    pub(super) name: String,
    /// Result of health checks. `None`: the server does not say.
    pub(super) is_up: Option<bool>,
    pub(super) rate: f64,
    pub(super) failures: f64,
    pub(super) retries: f64,
    pub(super) ejections: f64,
}

/// A name whose certificate comes from a CA.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Certificate {
    pub(super) name: String,
    /// Seconds until the certificate in force expires. `None`: there is none.
    pub(super) expires_in: Option<f64>,
    /// Orders that failed since the start.
    pub(super) failures: f64,
}

/// A stage of requests, and the CPU time that it took for each, in seconds.
pub(super) type Stage = (String, f64);

/// Figures that are shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Figures {
    pub(super) ready: bool,
    pub(super) uptime: f64,
    pub(super) workers: f64,
    pub(super) rate: f64,
    pub(super) in_flight: f64,
    pub(super) received: f64,
    pub(super) sent: f64,
    /// Open connections by protocol: all of them, and those at work.
    pub(super) connections: Vec<(String, f64, f64)>,
    pub(super) accepted: f64,
    pub(super) handshakes: f64,
    pub(super) turn_p99: Option<f64>,
    /// Counts that should be 0, in all since the start.
    pub(super) troubles: Vec<(String, f64)>,
    pub(super) routes: Vec<Route>,
    pub(super) upstreams: Vec<Upstream>,
    /// Those that expire first, first; the ones without a certificate before them.
    pub(super) certificates: Vec<Certificate>,
    /// CPU time by stage; empty while that is not measured.
    pub(super) stages: Vec<Stage>,
}

/// Two scrapes, and the time between them.
struct Between<'s> {
    before: &'s Scrape,
    now: &'s Scrape,
    seconds: f64,
}

impl<'s> Between<'s> {
    /// By how much a metric has grown each second.
    fn rate(&self, name: &str) -> f64 {
        self.growth(self.now.sum(name), self.before.sum(name))
    }

    /// A server that was started anew counts from 0.
    fn growth(&self, now: f64, before: f64) -> f64 {
        ((now - before) / self.seconds).max(0.0)
    }

    /// The samples of a metric by a label, now and before.
    fn by(&self, name: &str, label: &str) -> By<'s> {
        By { now: self.now.by(name, label), before: self.before.by(name, label) }
    }

    fn routes(&self) -> Vec<Route> {
        const CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "5xx", "none"];
        let requests = self.by("bolide_requests_total", "route");
        let durations = self.by("bolide_request_duration_seconds_bucket", "route");
        let mut routes: Vec<Route> = requests
            .now
            .keys()
            .map(|name| {
                let (now, before) = requests.of(name);
                let class = |class: &str| {
                    let of = |samples: &[&Sample]| total(samples, |s| s.label("status") == class);
                    self.growth(of(now), of(before))
                };
                let (took, took_before) = durations.of(name);
                Route {
                    name: (*name).to_owned(),
                    rate: self.growth(total(now, |_| true), total(before, |_| true)),
                    classes: CLASSES.map(class),
                    median: quantile(took, took_before, 0.5),
                    p99: quantile(took, took_before, 0.99),
                }
            })
            .collect();
        routes.sort_by(|a, b| b.rate.total_cmp(&a.rate).then_with(|| a.name.cmp(&b.name)));
        routes.truncate(ROWS_COUNT);
        routes
    }

    /// The stages in the order of the server, when requests were measured between the two.
    fn stages(&self) -> Vec<Stage> {
        const SPENT: &str = "bolide_profile_stage_seconds_total";
        let requests = self.rate("bolide_profile_requests_total");
        if requests == 0.0 {
            return Vec::new();
        }
        let stages = self.by(SPENT, "stage");
        let stage = |sample: &Sample| {
            let name = sample.label("stage");
            let (now, before) = stages.of(name);
            let spent = self.growth(total(now, |_| true), total(before, |_| true));
            (name.to_owned(), spent / requests)
        };
        self.now.of(SPENT).iter().take(STAGES_COUNT).map(stage).collect()
    }

    fn upstreams(&self) -> Vec<Upstream> {
        let requests = self.by("bolide_upstream_requests_total", "upstream");
        let [failures, retries, ejections] = ["failures", "retries", "ejections"]
            .map(|what| self.now.by(&format!("bolide_upstream_{what}_total"), "upstream"));
        let up = self.now.by("bolide_upstream_up", "upstream");
        let of = |counts: &BTreeMap<&str, Vec<&Sample>>, name: &str| {
            counts.get(name).map_or(0.0, |samples| total(samples, |_| true))
        };
        let upstream = |name: &&str| {
            let (now, before) = requests.of(name);
            Upstream {
                name: (*name).to_owned(),
                is_up: up.get(name).map(|samples| total(samples, |_| true) > 0.0),
                rate: self.growth(total(now, |_| true), total(before, |_| true)),
                failures: of(&failures, name),
                retries: of(&retries, name),
                ejections: of(&ejections, name),
            }
        };
        requests.now.keys().take(ROWS_COUNT).map(upstream).collect()
    }

    /// Returns what is known of certificates at this time, in seconds since the epoch.
    fn certificates(&self, now: f64) -> Vec<Certificate> {
        let expiry = self.now.by("bolide_acme_certificate_expiry_timestamp_seconds", "name");
        let orders = self.now.by("bolide_acme_orders_total", "name");
        let next = self.now.by("bolide_acme_next_order_timestamp_seconds", "name");
        let names: BTreeSet<&str> =
            expiry.keys().chain(orders.keys()).chain(next.keys()).copied().collect();
        let certificate = |name: &str| Certificate {
            name: name.to_owned(),
            expires_in: expiry.get(name).map(|samples| total(samples, |_| true) - now),
            failures: orders
                .get(name)
                .map_or(0.0, |samples| total(samples, |sample| sample.label("result") == "failed")),
        };
        let mut certificates: Vec<_> = names.into_iter().map(certificate).collect();
        let expires = |one: &Certificate| one.expires_in.unwrap_or(f64::NEG_INFINITY);
        certificates.sort_by(|one, other| expires(one).total_cmp(&expires(other)));
        certificates
    }

    /// Open connections by protocol, and those at work.
    fn connections(&self) -> Vec<(String, f64, f64)> {
        let by_protocol = self.now.by("bolide_connections_open", "protocol");
        let connections = by_protocol.iter().map(|(protocol, samples)| {
            let active = total(samples, |sample| sample.label("state") == "active");
            ((*protocol).to_owned(), total(samples, |_| true), active)
        });
        connections
            .filter(|(protocol, open, _)| *open > 0.0 || protocol != "unknown")
            .take(ROWS_COUNT)
            .collect()
    }
}

/// The samples of a metric by the value of a label.
struct By<'s> {
    now: BTreeMap<&'s str, Vec<&'s Sample>>,
    before: BTreeMap<&'s str, Vec<&'s Sample>>,
}

impl<'s> By<'s> {
    /// Those of one value, now and before.
    fn of(&self, value: &str) -> (&[&'s Sample], &[&'s Sample]) {
        let now = self.now.get(value).map_or(&[][..], Vec::as_slice);
        (now, self.before.get(value).map_or(&[][..], Vec::as_slice))
    }
}

fn total(samples: &[&Sample], wanted: impl Fn(&Sample) -> bool) -> f64 {
    samples.iter().filter(|sample| wanted(sample)).map(|sample| sample.value).sum()
}

/// The bound below which a part of a histogram's new durations lies. `None`: there are none.
fn quantile(now: &[&Sample], before: &[&Sample], part: f64) -> Option<f64> {
    let bucket = |sample: &&Sample| {
        let bound: f64 = sample.label("le").parse().ok()?;
        Some((bound, sample.value))
    };
    let known: HashMap<u64, f64> =
        before.iter().filter_map(bucket).map(|(bound, count)| (bound.to_bits(), count)).collect();
    let grown: Vec<(f64, f64)> = now
        .iter()
        .filter_map(bucket)
        .map(|(bound, count)| {
            (bound, count - known.get(&bound.to_bits()).copied().unwrap_or_default())
        })
        .collect();
    let all = grown.last()?.1;
    let bound = grown.iter().find(|(_, count)| *count >= all * part)?.0;
    (all > 0.0).then_some(bound)
}

/// The time of day, in seconds since the epoch.
fn since_epoch() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

impl Figures {
    /// Returns what happened between two scrapes.
    pub(super) fn between(before: &Scrape, now: &Scrape) -> Self {
        let seconds = now.at.saturating_duration_since(before.at).as_secs_f64().max(1e-3);
        let between = Between { before, now, seconds };
        let mut troubles: Vec<(String, f64)> = [
            ("handler panics", "bolide_handler_panics_total"),
            ("requests aborted", "bolide_requests_aborted_total"),
            ("turns above 1 s", "bolide_loop_long_turns_total"),
            ("accept pauses", "bolide_accept_pauses_total"),
            ("failed handshakes", "bolide_tls_handshakes_failed_total"),
            ("log lines lost", "bolide_access_log_dropped_total"),
        ]
        .map(|(what, metric)| (what.to_owned(), now.sum(metric)))
        .to_vec();
        for (metric, label) in
            [("bolide_limits_hit_total", "limit"), ("bolide_abuse_budgets_spent_total", "budget")]
        {
            troubles.extend(now.of(metric).iter().map(|s| (s.label(label).to_owned(), s.value)));
        }
        troubles.retain(|(_, count)| *count > 0.0);
        troubles.truncate(ROWS_COUNT);
        Self {
            ready: now.sum("bolide_ready") > 0.0,
            uptime: now.sum("bolide_uptime_seconds"),
            workers: now.sum("bolide_workers"),
            rate: between.rate("bolide_requests_total"),
            in_flight: now.sum("bolide_requests_in_flight"),
            received: between.rate("bolide_received_bytes_total"),
            sent: between.rate("bolide_sent_bytes_total"),
            connections: between.connections(),
            accepted: between.rate("bolide_connections_accepted_total"),
            handshakes: between.rate("bolide_tls_handshakes_total"),
            turn_p99: quantile(
                &now.of(TURNS).iter().collect::<Vec<_>>(),
                &before.of(TURNS).iter().collect::<Vec<_>>(),
                0.99,
            ),
            troubles,
            routes: between.routes(),
            upstreams: between.upstreams(),
            certificates: between.certificates(since_epoch()),
            stages: between.stages(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::scrape::parse_all;
    use super::*;

    fn scrape(at: Instant, requests: u64, slow: u64) -> Scrape {
        let bucket = "bolide_request_duration_seconds_bucket{route=\"/a\",le=";
        let fast = requests - slow;
        parse_all(
            at,
            &format!(
                "bolide_ready 1\nbolide_workers 2\n\
                 bolide_requests_total{{route=\"/a\",status=\"2xx\"}} {requests}\n\
                 {bucket}\"0.001\"}} {fast}\n{bucket}\"1\"}} {requests}\n{bucket}\"+Inf\"}} {requests}\n\
                 bolide_connections_open{{protocol=\"h2\",state=\"active\",tls=\"no\"}} 3\n\
                 bolide_connections_open{{protocol=\"h2\",state=\"idle\",tls=\"no\"}} 4\n\
                 bolide_limits_hit_total{{limit=\"head-timeout\"}} 5\n\
                 bolide_profile_requests_total {requests}\n\
                 bolide_profile_stage_seconds_total{{stage=\"send\"}} {}\n",
                requests as f64 * 2e-6
            ),
        )
    }

    #[test]
    fn rates_are_what_grew_between_the_two() {
        let start = Instant::now();
        let (before, now) =
            (scrape(start, 1000, 1000), scrape(start + Duration::from_secs(2), 1200, 1005));
        let figures = Figures::between(&before, &now);
        assert!(figures.ready);
        assert_eq!(figures.rate, 100.0);
        assert_eq!(figures.routes[0].classes, [100.0, 0.0, 0.0, 0.0, 0.0]);
        // Of the 200 new ones, 5 were slow; those of before don't count.
        assert_eq!((figures.routes[0].median, figures.routes[0].p99), (Some(0.001), Some(1.0)));
        assert_eq!(figures.connections, [("h2".to_owned(), 7.0, 3.0)]);
        assert_eq!(figures.troubles, [("head-timeout".to_owned(), 5.0)]);
        let (name, spent) = &figures.stages[0];
        assert!(name == "send" && (spent - 2e-6).abs() < 1e-12, "{spent}");
        // Nothing was measured meanwhile: it is off.
        assert_eq!(Figures::between(&now, &now).stages, []);
    }

    #[test]
    fn certificates_are_sorted_by_what_is_left() {
        let expiry = "bolide_acme_certificate_expiry_timestamp_seconds";
        let text = format!(
            "{expiry}{{name=\"a\"}} 3000\n{expiry}{{name=\"b\"}} 2000\n\
             bolide_acme_orders_total{{name=\"b\",result=\"issued\"}} 4\n\
             bolide_acme_orders_total{{name=\"c\",result=\"failed\"}} 3\n"
        );
        let now = parse_all(Instant::now(), &text);
        let between = Between { before: &now, now: &now, seconds: 1.0 };
        let certificate = |name: &str, expires_in, failures| Certificate {
            name: name.to_owned(),
            expires_in,
            failures,
        };
        let expected = [
            certificate("c", None, 3.0),
            certificate("b", Some(1000.0), 0.0),
            certificate("a", Some(2000.0), 0.0),
        ];
        assert_eq!(between.certificates(1000.0), expected);
    }

    #[test]
    fn many_routes_are_indexed_and_the_busiest_are_shown() {
        // Each would walk all the others' samples some sixteen times otherwise.
        let text = |factor: u64| -> String {
            let route = |n: u64| {
                let count = factor * n;
                format!(
                    "bolide_requests_total{{route=\"/{n}\",status=\"2xx\"}} {count}\n\
                     bolide_request_duration_seconds_bucket{{route=\"/{n}\",le=\"1\"}} {count}\n\
                     bolide_upstream_requests_total{{upstream=\"{n}\"}} {count}\n\
                     bolide_connections_open{{protocol=\"{n}\"}} 1\n\
                     bolide_loop_turn_seconds_bucket{{le=\"{n}\"}} {count}\n\
                     bolide_profile_stage_seconds_total{{stage=\"{n}\"}} 1\n"
                )
            };
            (0..40_000)
                .map(route)
                .chain([format!("bolide_profile_requests_total {factor}")])
                .collect()
        };
        let start = Instant::now();
        let before = parse_all(start, &text(1));
        let now = parse_all(start + Duration::from_secs(1), &text(2));
        let figures = Figures::between(&before, &now);
        assert_eq!((figures.routes.len(), figures.upstreams.len()), (ROWS_COUNT, ROWS_COUNT));
        assert_eq!((figures.connections.len(), figures.stages.len()), (ROWS_COUNT, STAGES_COUNT));
        assert_eq!((figures.routes[0].name.as_str(), figures.routes[0].rate), ("/39999", 39_999.0));
        assert_eq!(figures.routes[0].p99, Some(1.0));
    }

    #[test]
    fn a_server_that_was_started_anew_has_no_negative_rate() {
        let start = Instant::now();
        let (before, now) = (scrape(start, 9, 0), scrape(start + Duration::from_secs(1), 2, 0));
        assert_eq!(Figures::between(&before, &now).rate, 0.0);
    }
}

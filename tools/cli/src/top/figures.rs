//! From two scrapes to what happened between them.

use super::scrape::{Sample, Scrape};

/// What happened at one route.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    pub(super) name: String,
    /// Requests per second, in all and by the class of the answer: 2xx, 3xx, 4xx, 5xx, and without one.
    pub(super) rate: f64,
    pub(super) classes: [f64; 5],
    /// The median and the 99th percentile of the durations, in seconds: the upper bounds of their buckets.
    pub(super) median: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// What happened at one upstream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) rate: f64,
    pub(super) failures: f64,
    pub(super) retries: f64,
    pub(super) ejections: f64,
}

/// A stage of requests, and the CPU time that it took for each, in seconds.
pub(super) type Stage = (String, f64);

/// What is shown.
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
    /// What should be 0, in all since the start.
    pub(super) troubles: Vec<(String, f64)>,
    pub(super) routes: Vec<Route>,
    pub(super) upstreams: Vec<Upstream>,
    /// Where the CPU time goes; empty while that is not measured.
    pub(super) stages: Vec<Stage>,
}

/// Two scrapes, and the time between them.
struct Between<'s> {
    before: &'s Scrape,
    now: &'s Scrape,
    seconds: f64,
}

impl Between<'_> {
    /// By how much a metric has grown each second, over those of its samples that are wanted.
    fn rate(&self, name: &str, wanted: impl Fn(&Sample) -> bool) -> f64 {
        let sum = |scrape: &Scrape| -> f64 {
            scrape.of(name).filter(|sample| wanted(sample)).map(|sample| sample.value).sum()
        };
        // A server that was started anew counts from 0.
        ((sum(self.now) - sum(self.before)) / self.seconds).max(0.0)
    }

    /// The bound below which a part of a histogram's new durations lies. `None`: there are none.
    fn quantile(&self, name: &str, part: f64, wanted: impl Fn(&Sample) -> bool) -> Option<f64> {
        let buckets = |scrape: &Scrape| -> Vec<(f64, f64)> {
            let bucket = |sample: &Sample| Some((sample.label("le").parse().ok()?, sample.value));
            scrape.of(name).filter(|sample| wanted(sample)).filter_map(bucket).collect()
        };
        let before = buckets(self.before);
        let grown: Vec<(f64, f64)> = buckets(self.now)
            .into_iter()
            .map(|(bound, count)| {
                let known = before.iter().find(|(known, _)| *known == bound);
                (bound, count - known.map_or(0.0, |(_, count)| *count))
            })
            .collect();
        let all = grown.last()?.1;
        let bound = grown.iter().find(|(_, count)| *count >= all * part)?.0;
        (all > 0.0).then_some(bound)
    }

    fn routes(&self) -> Vec<Route> {
        const CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "5xx", "none"];
        const DURATIONS: &str = "bolide_request_duration_seconds_bucket";
        let mut routes: Vec<Route> = labels(self.now, "bolide_requests_total", "route")
            .map(|name| {
                let ours = |sample: &Sample| sample.label("route") == name;
                let class = |class: &str| {
                    self.rate("bolide_requests_total", |sample| {
                        ours(sample) && sample.label("status") == class
                    })
                };
                Route {
                    rate: self.rate("bolide_requests_total", ours),
                    classes: CLASSES.map(class),
                    median: self.quantile(DURATIONS, 0.5, ours),
                    p99: self.quantile(DURATIONS, 0.99, ours),
                    name,
                }
            })
            .collect();
        routes.sort_by(|a, b| b.rate.total_cmp(&a.rate).then_with(|| a.name.cmp(&b.name)));
        routes
    }

    /// The stages in the order of the server, when requests were measured between the two.
    fn stages(&self) -> Vec<Stage> {
        const SPENT: &str = "bolide_profile_stage_seconds_total";
        let requests = self.rate("bolide_profile_requests_total", |_| true);
        if requests == 0.0 {
            return Vec::new();
        }
        let stage = |sample: &Sample| {
            let name = sample.label("stage");
            let spent = self.rate(SPENT, |sample| sample.label("stage") == name);
            (name.to_owned(), spent / requests)
        };
        self.now.of(SPENT).map(stage).collect()
    }

    fn upstreams(&self) -> Vec<Upstream> {
        labels(self.now, "bolide_upstream_requests_total", "upstream")
            .map(|name| {
                let ours = |sample: &Sample| sample.label("upstream") == name;
                let total = |metric: &str| -> f64 {
                    self.now.of(metric).filter(|s| ours(s)).map(|sample| sample.value).sum()
                };
                Upstream {
                    rate: self.rate("bolide_upstream_requests_total", ours),
                    failures: total("bolide_upstream_failures_total"),
                    retries: total("bolide_upstream_retries_total"),
                    ejections: total("bolide_upstream_ejections_total"),
                    name,
                }
            })
            .collect()
    }
}

/// The values of a label of a metric, each once.
fn labels(scrape: &Scrape, metric: &str, label: &str) -> impl Iterator<Item = String> + use<> {
    let mut values: Vec<String> =
        scrape.of(metric).map(|sample| sample.label(label).to_owned()).collect();
    values.sort();
    values.dedup();
    values.into_iter()
}

impl Figures {
    /// What happened between two scrapes.
    pub(super) fn between(before: &Scrape, now: &Scrape) -> Self {
        let seconds = now.at.saturating_duration_since(before.at).as_secs_f64().max(1e-3);
        let between = Between { before, now, seconds };
        let all = |_: &Sample| true;
        let connections = labels(now, "bolide_connections_open", "protocol")
            .map(|protocol| {
                let open = |state: &str| -> f64 {
                    let ours = now.of("bolide_connections_open").filter(|sample| {
                        sample.label("protocol") == protocol
                            && (state.is_empty() || sample.label("state") == state)
                    });
                    ours.map(|sample| sample.value).sum()
                };
                let (open, active) = (open(""), open("active"));
                (protocol, open, active)
            })
            .filter(|(protocol, open, _)| *open > 0.0 || protocol != "unknown")
            .collect();
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
            troubles.extend(now.of(metric).map(|s| (s.label(label).to_owned(), s.value)));
        }
        troubles.retain(|(_, count)| *count > 0.0);
        Self {
            ready: now.sum("bolide_ready") > 0.0,
            uptime: now.sum("bolide_uptime_seconds"),
            workers: now.sum("bolide_workers"),
            rate: between.rate("bolide_requests_total", all),
            in_flight: now.sum("bolide_requests_in_flight"),
            received: between.rate("bolide_received_bytes_total", all),
            sent: between.rate("bolide_sent_bytes_total", all),
            connections,
            accepted: between.rate("bolide_connections_accepted_total", all),
            handshakes: between.rate("bolide_tls_handshakes_total", all),
            turn_p99: between.quantile("bolide_loop_turn_seconds_bucket", 0.99, all),
            troubles,
            routes: between.routes(),
            upstreams: between.upstreams(),
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
    fn a_server_that_was_started_anew_has_no_negative_rate() {
        let start = Instant::now();
        let (before, now) = (scrape(start, 9, 0), scrape(start + Duration::from_secs(1), 2, 0));
        assert_eq!(Figures::between(&before, &now).rate, 0.0);
    }
}

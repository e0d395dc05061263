//! Counters of proxies for their upstreams, as metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bolide::metrics::{Exposition, Metric, MetricSource};
use bolide::proxy::{Latency, ProxySettings, UpstreamStats};

/// A metric of upstreams, with one sample for each of the values of its second label, if it has one.
struct Row {
    metric: Metric,
    samples: &'static [Sample],
}

/// The value of the second label, and where the number stands.
type Sample = (&'static str, fn(&UpstreamStats) -> u64);

const fn metric(
    name: &'static str,
    kind: &'static str,
    labels: &'static str,
    help: &'static str,
) -> Metric {
    Metric { name, kind, labels, help }
}

/// The label next to the upstream's name.
fn second_label(metric: &Metric) -> Option<&'static str> {
    metric.labels.split_once(", ").map(|(_, label)| label)
}

const UP: Metric = metric(
    "bolide_upstream_up",
    "gauge",
    "upstream",
    "0 while health checks report the upstream down, else 1",
);

const LATENCY: Metric = metric(
    "bolide_upstream_latency_seconds",
    "histogram",
    "upstream",
    "From the moment a request was sent to the head of its response",
);

const ROWS: &[Row] = &[
    Row { metric: UP, samples: &[("", |stats| u64::from(!stats.is_down))] },
    Row {
        metric: metric(
            "bolide_upstream_requests_total",
            "counter",
            "upstream",
            "Requests that were sent to an upstream",
        ),
        samples: &[("", |stats| stats.requests)],
    },
    Row {
        metric: metric(
            "bolide_upstream_requests_open",
            "gauge",
            "upstream, state",
            "Requests that an upstream has, or that wait for a connection to it",
        ),
        samples: &[
            ("sent", |stats| stats.open_requests.saturating_sub(stats.waiting_requests)),
            ("waiting", |stats| stats.waiting_requests),
        ],
    },
    Row {
        metric: metric(
            "bolide_upstream_responses_total",
            "counter",
            "upstream",
            "Responses whose head was received",
        ),
        samples: &[("", |stats| stats.responses)],
    },
    Row {
        metric: metric(
            "bolide_upstream_failures_total",
            "counter",
            "upstream, reason",
            "Requests that failed: no response, or a broken one",
        ),
        samples: &[
            ("timeout", |stats| stats.timeouts),
            ("refused", |stats| stats.refused),
            ("unreachable", |stats| stats.unreachable),
            ("tls", |stats| stats.tls_failures),
            ("garbage", |stats| stats.garbage),
            ("broken-off", |stats| stats.broken_off),
            ("overflow", |stats| stats.overflows),
            ("other", |stats| stats.other_failures),
        ],
    },
    Row {
        metric: metric(
            "bolide_upstream_retries_total",
            "counter",
            "upstream",
            "Requests that were retried, here or at another upstream, after they failed here",
        ),
        samples: &[("", |stats| stats.retries)],
    },
    Row {
        metric: metric(
            "bolide_upstream_connections_total",
            "counter",
            "upstream",
            "Connections that became ready",
        ),
        samples: &[("", |stats| stats.connections)],
    },
    Row {
        metric: metric(
            "bolide_upstream_connections_open",
            "gauge",
            "upstream, state",
            "Connections to an upstream: being established, with requests, without",
        ),
        samples: &[
            ("connecting", |stats| stats.connecting),
            ("busy", |stats| stats.busy_connections),
            ("idle", |stats| stats.idle_connections),
        ],
    },
    Row {
        metric: metric(
            "bolide_upstream_connect_failures_total",
            "counter",
            "upstream",
            "Connections that could not be established",
        ),
        samples: &[("", |stats| stats.connect_failures)],
    },
    Row {
        metric: metric(
            "bolide_upstream_ejections_total",
            "counter",
            "upstream",
            "Times that the upstream was ejected",
        ),
        samples: &[("", |stats| stats.ejections)],
    },
    Row {
        metric: metric(
            "bolide_upstream_health_checks_total",
            "counter",
            "upstream, result",
            "Health checks that were made",
        ),
        samples: &[
            ("passed", |stats| stats.health_checks.saturating_sub(stats.health_check_failures)),
            ("failed", |stats| stats.health_check_failures),
        ],
    },
];

/// The proxies whose upstreams are shown: those in force, those before them for as long as they may have
/// requests under way, and what was counted by all that came before.
#[derive(Debug, Default)]
struct Shown {
    in_force: Vec<ProxySettings>,
    replaced: Vec<ProxySettings>,
    counted: BTreeMap<String, UpstreamStats>,
}

/// Knowledge about the upstreams of all proxies, each by its name, over every reload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upstreams(Arc<Mutex<Shown>>);

impl Upstreams {
    /// These proxies answer from now on, and those before them no more.
    pub(crate) fn replace(&self, proxies: &[ProxySettings]) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Shown { in_force, replaced, counted } = &mut *shown;
        for stats in replaced.iter().flat_map(ProxySettings::stats) {
            counted.entry(stats.name.clone()).or_default().add_counts(&stats);
        }
        *replaced = std::mem::replace(in_force, proxies.to_vec());
    }

    /// The proxies that respond.
    pub(crate) fn in_force(&self) -> Vec<ProxySettings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).in_force.clone()
    }

    /// Each upstream that is in force, or was a moment ago, once.
    fn stats(&self) -> Vec<UpstreamStats> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums: Vec<UpstreamStats> = Vec::new();
        for stats in shown.in_force.iter().chain(&shown.replaced).flat_map(ProxySettings::stats) {
            if let Some(sum) = sums.iter_mut().find(|sum| sum.name == stats.name) {
                sum.add_counts(&stats);
                sum.add_levels(&stats);
            } else {
                let mut sum = stats;
                if let Some(before) = shown.counted.get(&sum.name) {
                    sum.add_counts(before);
                }
                sums.push(sum);
            }
        }
        sums
    }

    /// Shows them.
    pub(super) fn source(&self) -> MetricSource {
        let upstreams = self.clone();
        MetricSource::new(move |text| write(text, &upstreams.stats()))
    }
}

fn write(text: &mut Exposition, upstreams: &[UpstreamStats]) {
    for Row { metric, samples } in ROWS {
        let second = second_label(metric);
        for upstream in upstreams {
            for (label, value) in *samples {
                let name = ("upstream", upstream.name.as_str());
                match second {
                    Some(second) => {
                        text.sample(metric, &[name, (second, label)], value(upstream));
                    }
                    None => text.sample(metric, &[name], value(upstream)),
                }
            }
        }
    }
    let bounds: Vec<u64> = Latency::bounds().iter().map(|micros| micros * 1000).collect();
    for upstream in upstreams {
        let (counts, sum) = (&upstream.latency.counts, upstream.latency.sum_us);
        let labels = [("upstream", upstream.name.as_str())];
        text.buckets(&LATENCY, &labels, &bounds, counts, Duration::from_micros(sum));
    }
}

#[cfg(test)]
mod tests {
    use bolide::proxy::Upstream;

    use super::*;

    #[test]
    fn the_page_lists_every_metric_of_upstreams() {
        let page = include_str!("../../../../docs/operate.md");
        let metrics = ROWS.iter().map(|row| &row.metric).chain([&LATENCY]);
        for Metric { name, kind, labels, help } in metrics {
            let row = format!("| `{name}` | {kind} | {labels} | {help} |");
            assert!(page.contains(&row), "docs/operate.md has no row\n{row}");
        }
        let listed = page.lines().filter(|line| line.starts_with("| `bolide_upstream_")).count();
        assert_eq!(listed, ROWS.len() + 1, "docs/operate.md lists what there isn't");
    }

    fn proxy(urls: &[&str]) -> ProxySettings {
        ProxySettings::new(urls.iter().map(|url| Upstream::parse(url).unwrap()).collect()).unwrap()
    }

    fn text(upstreams: &Upstreams) -> String {
        let mut text = Exposition::new();
        write(&mut text, &upstreams.stats());
        text.into_text()
    }

    const FIRST: &str = "http://127.0.0.1:1";
    const SECOND: &str = "http://127.0.0.1:2";

    #[test]
    fn samples_of_a_metric_stand_together_and_each_once() {
        let upstreams = Upstreams::default();
        upstreams.replace(&[proxy(&[FIRST, SECOND]), proxy(&[SECOND])]);
        let text = text(&upstreams);
        let samples: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' ').map(|(sample, _)| sample))
            .collect();
        let mut once = samples.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), samples.len(), "{text}");
        let types = text.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!(types, ROWS.len() + 1, "{text}");
        assert!(
            samples.contains(&"bolide_upstream_requests_total{upstream=\"http://127.0.0.1:2\"}")
        );
    }

    #[test]
    fn a_reload_replaces_what_is_shown() {
        let upstreams = Upstreams::default();
        upstreams.replace(&[proxy(&[FIRST])]);
        upstreams.replace(&[proxy(&[SECOND])]);
        let both = text(&upstreams);
        assert!(both.contains(FIRST) && both.contains(SECOND), "{both}");
        upstreams.replace(&[proxy(&[SECOND])]);
        let one = text(&upstreams);
        assert!(!one.contains(FIRST) && one.contains(SECOND), "{one}");
    }
}

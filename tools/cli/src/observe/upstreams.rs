//! What a proxy counts of its upstreams, as metrics.

use bolide::{Exposition, Metric, MetricSource, ProxySettings, UpstreamStats};

/// A counter of upstreams, and where it stands.
type Row = (Metric, fn(&UpstreamStats) -> u64);

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: "counter", labels: "upstream", help }
}

const ROWS: &[Row] = &[
    (
        counter("bolide_upstream_requests_total", "Requests that were sent to an upstream"),
        |stats| stats.requests,
    ),
    (counter("bolide_upstream_answers_total", "Answers whose head came"), |stats| stats.answers),
    (
        counter(
            "bolide_upstream_failures_total",
            "Requests that failed: no answer, or a broken one",
        ),
        |stats| stats.failures,
    ),
    (counter("bolide_upstream_timeouts_total", "Those of them that took too long"), |stats| {
        stats.timeouts
    }),
    (
        counter(
            "bolide_upstream_retries_total",
            "Requests that were sent again, here or elsewhere, after they failed here",
        ),
        |stats| stats.retries,
    ),
    (counter("bolide_upstream_connections_total", "Connections that became ready"), |stats| {
        stats.connections
    }),
    (
        counter("bolide_upstream_connect_failures_total", "Connections that could not be made"),
        |stats| stats.connect_failures,
    ),
    (
        counter(
            "bolide_upstream_ejections_total",
            "Times that the upstream was left alone for a while",
        ),
        |stats| stats.ejections,
    ),
];

/// Shows what a proxy counts.
pub(super) fn source(proxy: ProxySettings) -> MetricSource {
    MetricSource::new(move |text| write(text, &proxy.stats()))
}

fn write(text: &mut Exposition, upstreams: &[UpstreamStats]) {
    for (metric, value) in ROWS {
        for upstream in upstreams {
            text.sample(metric, &[("upstream", &upstream.name)], value(upstream));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_metric_of_upstreams() {
        let page = include_str!("../../../../docs/operate.md");
        for (Metric { name, kind, labels, help }, _) in ROWS {
            let row = format!("| `{name}` | {kind} | {labels} | {help} |");
            assert!(page.contains(&row), "docs/operate.md has no row\n{row}");
        }
        let listed = page.lines().filter(|line| line.starts_with("| `bolide_upstream_")).count();
        assert_eq!(listed, ROWS.len(), "docs/operate.md lists what there isn't");
    }

    #[test]
    fn upstreams_are_shown_by_name() {
        let mut text = Exposition::new();
        let settings = ["http://127.0.0.1:1", "http://127.0.0.1:2"]
            .map(|url| bolide::Upstream::parse(url).unwrap());
        let proxy = ProxySettings::new(settings.to_vec()).unwrap();
        write(&mut text, &proxy.stats());
        let text = text.into_text();
        assert!(
            text.contains("bolide_upstream_requests_total{upstream=\"http://127.0.0.1:2\"} 0\n"),
            "{text}"
        );
    }
}

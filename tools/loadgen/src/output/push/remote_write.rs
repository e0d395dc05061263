//! Prometheus remote write 1.0.

use bytes::Bytes;
use prost::Message;

use super::Look;

/// Fields of such a request.
pub(super) const FIELDS: &[(&str, &str)] = &[
    ("content-encoding", "snappy"),
    ("content-type", "application/x-protobuf"),
    ("x-prometheus-remote-write-version", "0.1.0"),
];

/// Name of the job in Prometheus.
const JOB: &str = "bolide-load";

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    /// Sorted by name.
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(double, tag = "1")]
    value: f64,
    /// Milliseconds since 1970.
    #[prost(int64, tag = "2")]
    at_ms: i64,
}

/// The body of a request with all of `looks`, which are in the order of their times.
pub(super) fn body(looks: &[Look], target: &str) -> Bytes {
    let mut series: Vec<Series> = Vec::new();
    for look in looks {
        for sample in &look.samples {
            let own = [
                ("__name__", sample.metric.name),
                ("job", JOB),
                ("phase", look.phase.as_str()),
                ("target", target),
            ];
            let mut labels: Vec<Label> = own
                .into_iter()
                .chain(sample.label)
                .map(|(name, value)| Label { name: name.to_owned(), value: value.to_owned() })
                .collect();
            labels.sort_by(|one, other| one.name.cmp(&other.name));
            let at_ms = i64::try_from(look.at.as_millis()).unwrap_or(i64::MAX);
            let point = Point { value: sample.value, at_ms };
            match series.iter_mut().find(|known| known.labels == labels) {
                Some(known) => known.points.push(point),
                None => series.push(Series { labels, points: vec![point] }),
            }
        }
    }
    let plain = WriteRequest { series }.encode_to_vec();
    let packed = snap::raw::Encoder::new().compress_vec(&plain);
    packed.expect("fewer than 4 GiB").into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bolide_probe::progress::Progress;

    use super::*;
    use crate::output::samples::samples;

    #[test]
    fn looks_become_points_of_series_whose_labels_are_sorted() {
        let look = |completed, at| Look {
            phase: "5000/s".to_owned(),
            began: Duration::ZERO,
            at: Duration::from_millis(at),
            samples: samples(&Progress { completed, ..Progress::default() }),
        };
        let packed = body(&[look(3, 1000), look(7, 6000)], "http://a");
        let plain = snap::raw::Decoder::new().decompress_vec(&packed).unwrap();
        let WriteRequest { series } = WriteRequest::decode(&*plain).unwrap();
        assert_eq!(series.len(), 7, "the server is not watched");
        let names: Vec<&str> = series[0].labels.iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["__name__", "job", "phase", "target"]);
        assert_eq!(series[0].labels[0].value, "bolide_load_responses_total");
        let points = [Point { value: 3.0, at_ms: 1000 }, Point { value: 7.0, at_ms: 6000 }];
        assert_eq!(series[0].points, points);
        let sorted =
            |series: &Series| series.labels.is_sorted_by(|one, other| one.name < other.name);
        assert!(series.iter().all(sorted));
    }
}

//! OTLP/HTTP 1.0 with protobuf: the messages of opentelemetry-proto, as far as they are used.

use bytes::Bytes;
use prost::{Message, Oneof};

use super::Look;

/// Fields of such a request.
pub(super) const FIELDS: &[(&str, &str)] = &[("content-type", "application/x-protobuf")];

/// Path of metrics below a URL that names none.
const PATH: &str = "/v1/metrics";

/// AGGREGATION_TEMPORALITY_CUMULATIVE.
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct ExportMetricsServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "Data", tags = "5, 7")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<DataPoint>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<DataPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct DataPoint {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    /// One of a choice with integers, which is not used.
    #[prost(double, optional, tag = "4")]
    as_double: Option<f64>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

/// A choice, of which text is all that is used.
#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string_value: Option<String>,
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { string_value: Some(value.to_owned()) };
    KeyValue { key: key.to_owned(), value: Some(value) }
}

/// Name and unit, as OpenTelemetry writes them: `bolide.load.latency`, in `s`.
fn named(prometheus: &str) -> (String, &'static str) {
    let name = prometheus.trim_end_matches("_total");
    let (name, unit) = match name.strip_suffix("_seconds") {
        Some(name) => (name, "s"),
        None => (name, ""),
    };
    (name.replacen('_', ".", 2), unit)
}

/// The URL that metrics go to: an endpoint's, with the path of metrics unless that is its end.
pub(super) fn url(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches('/');
    match endpoint.ends_with(PATH) {
        true => endpoint.to_owned(),
        false => format!("{endpoint}{PATH}"),
    }
}

/// The body of a request with all of `looks`.
pub(super) fn body(looks: &[Look], target: &str) -> Bytes {
    let mut metrics: Vec<Metric> = Vec::new();
    for look in looks {
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        for sample in &look.samples {
            let (name, unit) = named(sample.metric.name);
            let own = [attribute("phase", &look.phase)];
            let label = sample.label.map(|(key, value)| attribute(key, value));
            let point = DataPoint {
                start_time_unix_nano: ns(look.began),
                time_unix_nano: ns(look.at),
                as_double: Some(sample.value),
                attributes: own.into_iter().chain(label).collect(),
            };
            let known = metrics.iter_mut().find(|metric| metric.name == name);
            match known.and_then(|metric| metric.data.as_mut()) {
                Some(Data::Gauge(Gauge { data_points }) | Data::Sum(Sum { data_points, .. })) => {
                    data_points.push(point);
                }
                None => metrics.push(Metric {
                    name,
                    description: sample.metric.help.to_owned(),
                    unit: unit.to_owned(),
                    data: Some(match sample.metric.kind {
                        "counter" => Data::Sum(Sum {
                            data_points: vec![point],
                            aggregation_temporality: CUMULATIVE,
                            is_monotonic: true,
                        }),
                        _ => Data::Gauge(Gauge { data_points: vec![point] }),
                    }),
                }),
            }
        }
    }
    let attributes = vec![attribute("service.name", "bolide-load"), attribute("url.full", target)];
    let scope = Scope { name: "bolide".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let resource_metrics = vec![ResourceMetrics {
        resource: Some(Resource { attributes }),
        scope_metrics: vec![ScopeMetrics { scope: Some(scope), metrics }],
    }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bolide_probe::progress::Progress;

    use super::*;
    use crate::output::samples::samples;

    #[test]
    fn names_and_urls_are_opentelemetrys() {
        assert_eq!(named("bolide_load_responses_total"), ("bolide.load.responses".to_owned(), ""));
        assert_eq!(named("bolide_load_in_flight"), ("bolide.load.in_flight".to_owned(), ""));
        let seconds = ("bolide.load.latency".to_owned(), "s");
        assert_eq!(named("bolide_load_latency_seconds"), seconds);
        for endpoint in ["http://a:4318", "http://a:4318/", "http://a:4318/v1/metrics"] {
            assert_eq!(url(endpoint), "http://a:4318/v1/metrics");
        }
        assert_eq!(url("http://a/api/v1/otlp"), "http://a/api/v1/otlp/v1/metrics");
    }

    #[test]
    fn counters_are_cumulative_sums_and_the_rest_are_gauges() {
        let look = |completed, at| Look {
            phase: "warm".to_owned(),
            began: Duration::from_secs(1),
            at: Duration::from_secs(at),
            samples: samples(&Progress { completed, p50_ns: 5_000_000, ..Progress::default() }),
        };
        let body = body(&[look(3, 2), look(7, 3)], "http://a");
        let request = ExportMetricsServiceRequest::decode(body).unwrap();
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        let Some(Data::Sum(sum)) = &metrics[0].data else { panic!("{metrics:?}") };
        assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE);
        let points: Vec<_> = sum
            .data_points
            .iter()
            .map(|point| (point.start_time_unix_nano, point.time_unix_nano, point.as_double))
            .collect();
        let second = 1_000_000_000;
        assert_eq!(points, [(second, 2 * second, Some(3.0)), (second, 3 * second, Some(7.0))]);
        let latency = metrics.iter().find(|metric| metric.unit == "s").unwrap();
        let Some(Data::Gauge(gauge)) = &latency.data else { panic!("{latency:?}") };
        assert_eq!((gauge.data_points.len(), gauge.data_points[0].as_double), (4, Some(0.005)));
        let keys: Vec<&str> =
            gauge.data_points[0].attributes.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(keys, ["phase", "quantile"]);
    }
}

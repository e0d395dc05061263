//! The histograms as an HdrHistogram V2 interval log, which the usual tools merge and plot.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use bolide_probe::report::Report;

/// The column for people has its values in milliseconds; histograms are in nanoseconds.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// Writes the log: one interval for each phase's latency, and one for its time to the first byte. Tags
/// are the phase's name with `_` for what tags can't hold, `:latency`, `:first_byte`, `:first_event` or `:event_gap` behind it.
///
/// # Errors
///
/// Those of `out`.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let start = UNIX_EPOCH
        + Duration::try_from_secs_f64(report.started_unix_s.max(0.0)).unwrap_or_default();
    let mut serializer = V2DeflateSerializer::new();
    let mut out = io::BufWriter::new(out);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("Latencies in nanoseconds, from bolide load")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(MAX_VALUE_DIVISOR)
        .begin_log_with(&mut out, &mut serializer)?;
    let mut at = Duration::ZERO;
    for phase in &report.phases {
        at += phase.phase.warm_up;
        let elapsed = Duration::from_nanos(phase.elapsed_ns);
        let events = phase.kinds.events.iter();
        let events =
            events.flat_map(|events| [("first_event", &events.first), ("event_gap", &events.gap)]);
        let all = [("latency", &phase.times.latency), ("first_byte", &phase.times.first_byte)];
        for (kind, latencies) in all.into_iter().chain(events) {
            let Some(histogram) = latencies.histogram.as_ref().filter(|all| !all.is_empty()) else {
                continue;
            };
            let name = tag(&phase.phase.name, kind);
            log.write_histogram(histogram, at, elapsed, Tag::new(&name)).map_err(|error| {
                match error {
                    IntervalLogWriterError::IoError(error) => error,
                    IntervalLogWriterError::SerializeError(error) => {
                        io::Error::other(error.to_string())
                    }
                }
            })?;
        }
        at += elapsed;
    }
    out.flush()
}

fn tag(phase: &str, kind: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-.%/".contains(c);
    let name: String = phase.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{name}:{kind}")
}

#[cfg(test)]
mod tests {
    use bolide_probe::plan::Load;

    use super::*;
    use crate::fabricated::{OPEN_1000, latencies, quiet, report};
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn the_log_reads_back_as_the_same_histograms() {
        let mut open = quiet(OPEN_1000);
        open.phase.name = "50 % of capacity, twice".into();
        open.phase.warm_up = Duration::from_millis(500);
        open.times.latency = latencies(&[1_000_000, 2_000_000, 900_000_000]);
        let mut out = Vec::new();
        write(&report(vec![quiet(Load::Closed), open.clone()]), &mut out).unwrap();
        let intervals: Vec<_> = IntervalLogIterator::new(&out)
            .map(|entry| entry.unwrap())
            .filter_map(|entry| match entry {
                LogEntry::Interval(interval) => Some(interval),
                LogEntry::BaseTime(_) | LogEntry::StartTime(_) => None,
            })
            .collect();
        let tags: Vec<_> =
            intervals.iter().map(|interval| interval.tag().unwrap().as_str()).collect();
        let name = "50_%_of_capacity__twice";
        let expected = [
            "measured:latency".to_owned(),
            "measured:first_byte".to_owned(),
            format!("{name}:latency"),
            format!("{name}:first_byte"),
        ];
        assert_eq!(tags, expected);
        assert_eq!(intervals[2].start_timestamp(), Duration::from_millis(1_500));
        let decoded = base64_decoded(intervals[2].encoded_histogram());
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut &decoded[..]).unwrap();
        assert_eq!(Some(read), open.times.latency.histogram);
    }

    fn base64_decoded(text: &str) -> Vec<u8> {
        let digit = |byte: u8| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => panic!("{other}"),
        };
        let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
        for byte in text.bytes().filter(|byte| *byte != b'=') {
            bits = bits << 6 | u32::from(digit(byte));
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        bytes
    }
}

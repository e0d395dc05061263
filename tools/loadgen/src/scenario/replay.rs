//! A scenario of what a server has logged: each request once more, at the time at which it came.

use std::path::Path;
use std::sync::Arc;

use bolide_probe::engine::template::{Escape, Names, Template};
use bolide_probe::plan::RequestPlan;
use bolide_probe::scenario::{Recorded, Scenario, StepPlan, UserKind};
use bolide_semantics::check_path;
use http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::parse_borrowed;
use time::format_description::well_known::Rfc3339;

use crate::given::body_file;

/// Most requests that are sent again.
const REQUESTS_COUNT: usize = 10_000_000;

/// How the common and the combined log format write a time.
const COMMON: &str = "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] \
                      [offset_hour sign:mandatory][offset_minute]";

const SECOND_NS: i128 = 1_000_000_000;

/// A line in JSON, as far as it is needed.
#[derive(Debug, Deserialize)]
struct Line {
    time: String,
    #[serde(default)]
    duration_us: u64,
    method: String,
    target: String,
}

/// A logged request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Logged {
    /// When it came, since 1970.
    at_ns: i128,
    /// The log knows the second only.
    is_coarse: bool,
    is_head: bool,
    target: Box<str>,
}

/// Result of reading a log.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) scenario: Scenario,
    pub(crate) plans: Vec<RequestPlan>,
    /// Lines that are no requests, or of other methods than GET and HEAD: what these sent is in no log.
    pub(crate) left_out: usize,
}

/// Reads a log in the common or the combined format, or in JSON (`time`, `method`, `target`, `duration_us`), and replays
/// it `speed` times as fast.
///
/// # Errors
///
/// Why there is nothing to replay.
pub(crate) fn read(
    path: &Path,
    speed: f64,
    fields: &[(HeaderName, HeaderValue)],
) -> Result<Replay, String> {
    let text = body_file("--replay", path)?;
    parse(&text, speed, fields).map_err(|why| format!("--replay {}: {why}", path.display()))
}

fn parse(text: &[u8], speed: f64, fields: &[(HeaderName, HeaderValue)]) -> Result<Replay, String> {
    let common = parse_borrowed::<2>(COMMON).map_err(|error| error.to_string())?;
    let (mut logged, mut left_out) = (Vec::new(), 0);
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let line = std::str::from_utf8(line).ok();
        let read = line.and_then(|line| match line.starts_with('{') {
            true => in_json(line),
            false => {
                let (time, method, target) = in_common(line)?;
                let at = OffsetDateTime::parse(time, &common).ok()?;
                Some(of(at.unix_timestamp_nanos(), true, method, target)?)
            }
        });
        match read {
            Some(one) => logged.push(one),
            None => left_out += 1,
        }
    }
    if logged.is_empty() {
        return Err("has no GET or HEAD in the common or combined format, or in JSON".to_owned());
    }
    if logged.len() > REQUESTS_COUNT {
        return Err(format!("has {} requests, more than {REQUESTS_COUNT}", logged.len()));
    }
    logged.sort_by_key(|one| one.at_ns);
    spread(&mut logged);
    let first = logged[0].at_ns;
    let times: Vec<u64> =
        logged.iter().map(|one| ((one.at_ns - first) as f64 / speed) as u64).collect();
    let kinds = logged.iter().map(|one| u8::from(one.is_head)).collect();
    let rows = logged.into_iter().map(|one| Box::from([one.target])).collect();
    let kind = |index: usize| UserKind { weights_sum: index as u64 + 1, steps: index..index + 1 };
    let recorded = Some(Recorded { times: Arc::from(times), kinds });
    let scenario = Scenario { rows, recorded, ..Scenario::new(1, vec![kind(0), kind(1)]) };
    let plans = [Method::GET, Method::HEAD].map(|method| plan(method, fields));
    Ok(Replay { scenario, plans: plans.into_iter().collect::<Result<_, _>>()?, left_out })
}

fn in_json(line: &str) -> Option<Logged> {
    let Line { time, duration_us, method, target } = serde_json::from_str(line).ok()?;
    let ended = OffsetDateTime::parse(&time, &Rfc3339).ok()?;
    let at_ns = ended.unix_timestamp_nanos() - i128::from(duration_us) * 1000;
    of(at_ns, false, &method, &target)
}

/// Time, method and target of `… [TIME] "METHOD TARGET VERSION" …`.
fn in_common(line: &str) -> Option<(&str, &str, &str)> {
    let (_, rest) = line.split_once('[')?;
    let (time, rest) = rest.split_once(']')?;
    let (_, rest) = rest.split_once('"')?;
    let (request, _) = rest.split_once('"')?;
    let mut words = request.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    words.next()?.starts_with("HTTP/").then_some((time, method, target))
}

fn of(at_ns: i128, is_coarse: bool, method: &str, target: &str) -> Option<Logged> {
    let is_head = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return None,
    };
    let is_sound = target.starts_with('/') && !target.contains('\\') && check_path(target).is_ok();
    is_sound.then(|| Logged { at_ns, is_coarse, is_head, target: target.into() })
}

/// Requests of one second, of a log that knows no less, are spread evenly over it.
fn spread(logged: &mut [Logged]) {
    for second in logged.chunk_by_mut(|one, other| one.at_ns == other.at_ns && one.is_coarse) {
        let count = second.len() as i128;
        for (index, one) in second.iter_mut().enumerate().filter(|(_, one)| one.is_coarse) {
            one.at_ns += SECOND_NS * index as i128 / count;
        }
    }
}

fn plan(method: Method, fields: &[(HeaderName, HeaderValue)]) -> Result<RequestPlan, String> {
    let names = Names { columns: &["target".to_owned()], captures: &[] };
    let target = Template::named("{row.target}", &names, Escape::Path)?;
    // The log has those that redirects led to.
    let step = StepPlan::new(method.to_string(), target);
    Ok(RequestPlan {
        fields: fields.to_vec(),
        has_placeholders: true,
        step: Some(Arc::new(step)),
        ..RequestPlan::new(method, "(logged)".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOG: &str = "\
127.0.0.1 - - [10/Oct/2026:13:55:36 +0000] \"GET /b?x=1 HTTP/1.1\" 200 5 \"-\" \"curl\"
127.0.0.1 - anna [10/Oct/2026:15:55:36 +0200] \"HEAD /c HTTP/2.0\" 200 5
127.0.0.1 - - [10/Oct/2026:13:55:35 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"curl\"
127.0.0.1 - - [10/Oct/2026:13:55:38 +0000] \"POST /d HTTP/1.1\" 200 5 \"-\" \"curl\"
127.0.0.1 - - [10/Oct/2026:13:55:38 +0000] \"\\x16\\x03\" 400 0 \"-\" \"-\"
{\"time\":\"2026-10-10T13:55:38.250Z\",\"duration_us\":50000,\"method\":\"GET\",\"target\":\"/e\",\"status\":200}
";

    #[test]
    fn lines_become_requests_at_their_times() {
        let Replay { scenario, plans, left_out } = parse(LOG.as_bytes(), 2.0, &[]).unwrap();
        let targets: Vec<&str> = scenario.rows.iter().map(|row| &*row[0]).collect();
        assert_eq!(targets, ["/a", "/b?x=1", "/c", "/e"]);
        let recorded = scenario.recorded.unwrap();
        // Twice as fast; two in one second are half a second apart.
        assert_eq!(*recorded.times, [0, 500_000_000, 750_000_000, 1_600_000_000]);
        assert_eq!((&recorded.kinds[..], left_out, plans.len()), (&[0, 0, 1, 0][..], 2, 2));
    }

    #[test]
    fn a_log_without_requests_is_refused() {
        for text in ["", "\n\n", "hello", "{}", "- - - [x] \"GET / HTTP/1.1\" 200 1"] {
            let said = parse(text.as_bytes(), 1.0, &[]).unwrap_err();
            assert!(said.contains("has no GET or HEAD"), "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(noise in "(?s).{0,60}", at in 0..400_usize) {
            let mut text = LOG.to_owned();
            let at = (0..=at.min(LOG.len())).rev().find(|at| LOG.is_char_boundary(*at)).unwrap();
            text.insert_str(at, &noise);
            let _ = parse(text.as_bytes(), 1.0, &[]);
        }
    }
}

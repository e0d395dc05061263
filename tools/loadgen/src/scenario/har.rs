//! A scenario of what a browser recorded: HTTP Archive 1.2.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bolide_probe::engine::template::{Content, Template};
use bolide_probe::plan::RequestPlan;
use bolide_probe::scenario::{Scenario, StepPlan, Think, UserKind};
use bolide_semantics::{Scheme, Url, check_path};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{SERVERS_COUNT, STEPS_COUNT, is_secret};
use crate::given::{body_file, method};
use crate::options::request::fields as read_fields;

#[derive(Debug, Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Debug, Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: String,
    /// Until the response was complete, in milliseconds.
    #[serde(default)]
    time: f64,
    request: Request,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Header>,
    post_data: Option<PostData>,
}

#[derive(Debug, Deserialize)]
struct Header {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct PostData {
    #[serde(default)]
    text: String,
}

/// Fields that belong to the recorded connection or user.
fn is_left_out(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "host",
        "content-length",
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "te",
        "cookie",
    ];
    name.starts_with(':') || NAMES.contains(&name.to_ascii_lowercase().as_str())
}

/// The server of the first request.
///
/// # Errors
///
/// Why there is none.
fn server(archive: &Archive) -> Result<Url, String> {
    let first = archive.log.entries.first().ok_or("has no entry")?;
    Ok(Url::parse(&first.request.url, &Scheme::HTTP)?)
}

/// Result of reading an archive.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Those that were asked for, or that of the first entry; never empty.
    pub(crate) servers: Vec<Url>,
    pub(crate) scenario: Scenario,
    pub(crate) plans: Vec<RequestPlan>,
    /// Requests to other servers.
    pub(crate) left_out: usize,
}

/// Reads an archive: one user who sends what went to these servers, or to that of the first entry if there are none, in
/// order, one after the other, and pauses as it did. `fields` go along, but credentials only to the first server.
///
/// # Errors
///
/// The entry, and what is wrong with it.
pub(crate) fn read(
    path: &Path,
    servers: &[Url],
    fields: &[(HeaderName, HeaderValue)],
) -> Result<Recording, String> {
    let text = body_file("--har", path)?;
    parse(&text, servers, fields).map_err(|why| format!("--har {}: {why}", path.display()))
}

fn parse(
    text: &[u8],
    asked: &[Url],
    fields: &[(HeaderName, HeaderValue)],
) -> Result<Recording, String> {
    let archive: Archive = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let servers = if asked.is_empty() { vec![server(&archive)?] } else { asked.to_vec() };
    if servers.len() > SERVERS_COUNT {
        return Err(format!("{} servers are named, more than {SERVERS_COUNT}", servers.len()));
    }
    let public: Vec<_> = fields.iter().filter(|(name, _)| !is_secret(name)).cloned().collect();
    let mut left_out = 0;
    let mut steps: Vec<(OffsetDateTime, Duration, usize, RequestPlan)> = Vec::new();
    for (index, entry) in archive.log.entries.iter().enumerate() {
        let found = Url::parse(&entry.request.url, &Scheme::HTTP).ok().and_then(|target| {
            let number = servers.iter().position(|server| server.is_same_origin(&target))?;
            Some((number, target))
        });
        let Some((number, target)) = found else {
            left_out += 1;
            continue;
        };
        let named = |why: String| format!("entry {}: {why}", index + 1);
        let started = OffsetDateTime::parse(&entry.started_date_time, &Rfc3339)
            .map_err(|error| named(format!("startedDateTime: {error}")))?;
        let took = Duration::try_from_secs_f64(entry.time.max(0.0) / 1e3).unwrap_or_default();
        let fields = if number == 0 { fields } else { &public };
        let mut plan = plan(entry, &target, fields).map_err(named)?;
        if let Some(step) = plan.step.as_mut().and_then(Arc::get_mut).filter(|_| number > 0) {
            step.name = step.name.replacen('/', &format!("{}/", target.authority()), 1);
        }
        steps.push((started, took, number, plan));
    }
    let is_asked = |number: usize| steps.iter().any(|(_, _, asked, _)| *asked == number);
    if let Some(number) = (0..servers.len()).find(|number| !is_asked(*number)) {
        return Err(format!("has no request to `{}`", servers[number]));
    }
    if steps.len() > STEPS_COUNT {
        return Err(format!("has {} requests, more than {STEPS_COUNT}", steps.len()));
    }
    steps.sort_by_key(|(started, ..)| *started);
    let starts: Vec<OffsetDateTime> = steps.iter().map(|(started, ..)| *started).collect();
    let numbers = steps.iter().map(|(_, _, number, _)| *number).collect();
    let plans = steps.into_iter().enumerate().map(|(index, (started, took, _, mut plan))| {
        // Requests that a browser had in flight at the same time follow one another without a pause.
        let next = starts.get(index + 1).map_or(started, |next| *next);
        let between = Duration::try_from(next - started).unwrap_or_default();
        if let Some(step) = plan.step.as_mut().and_then(Arc::get_mut) {
            step.think = Think::of(between.saturating_sub(took));
        }
        plan
    });
    let plans: Vec<RequestPlan> = plans.collect();
    let kinds = vec![UserKind { weights_sum: 1, steps: 0..plans.len() }];
    let scenario = Scenario { servers: numbers, ..Scenario::new(1, kinds) };
    Ok(Recording { servers, scenario, plans, left_out })
}

fn plan(
    entry: &Entry,
    target: &Url,
    fields: &[(HeaderName, HeaderValue)],
) -> Result<RequestPlan, String> {
    let method = method(&entry.request.method)?;
    check_path(&target.path)?;
    let kept = entry.request.headers.iter().filter(|header| !is_left_out(&header.name));
    let lines: Vec<String> =
        kept.map(|header| format!("{}: {}", header.name, header.value)).collect();
    let own = read_fields(lines.iter().map(String::as_str))?.0;
    let is_own = |name: &HeaderName| own.iter().any(|(known, _)| known == name);
    let shared = fields.iter().filter(|(name, _)| !is_own(name)).cloned();
    let body = entry.request.post_data.as_ref().map(|data| Bytes::from(data.text.clone()));
    let content: Vec<Content> =
        body.filter(|body| !body.is_empty()).map(Content::Bytes).into_iter().collect();
    let path = target.path.split('?').next().unwrap_or_default();
    // The recorded requests have those that redirects led to.
    let step = StepPlan::new(format!("{method} {path}"), Template::constant(&target.path));
    let step = StepPlan { content, ..step };
    Ok(RequestPlan {
        fields: shared.chain(own.iter().cloned()).collect(),
        step: Some(Arc::new(step)),
        ..RequestPlan::new(method, target.path.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(at: &str, time: f64, url: &str, rest: &str) -> String {
        format!(
            "{{\"startedDateTime\":\"2026-01-02T03:04:{at}Z\",\"time\":{time},\
             \"request\":{{\"method\":\"GET\",\"url\":\"{url}\"{rest}}}}}"
        )
    }

    fn archive(entries: &[String]) -> String {
        format!("{{\"log\":{{\"version\":\"1.2\",\"entries\":[{}]}}}}", entries.join(","))
    }

    #[test]
    fn entries_of_one_server_become_steps_with_their_pauses() {
        let fields = ",\"headers\":[{\"name\":\":path\",\"value\":\"/\"},{\"name\":\"Cookie\",\"value\":\"a=b\"},\
                      {\"name\":\"Accept\",\"value\":\"*/*\"}],\"postData\":{\"mimeType\":\"\",\"text\":\"x\"}";
        let text = archive(&[
            entry("05.500", 100.0, "https://a.test/second?q=1", ""),
            entry("05.000", 200.0, "https://a.test/", fields),
            entry("05.100", 10.0, "https://other.test/x", ""),
            entry("05.550", 1.0, "https://a.test/third", ""),
        ]);
        let Recording { servers, scenario, plans, left_out } =
            parse(text.as_bytes(), &[], &[]).unwrap();
        assert_eq!((servers.len(), servers[0].host.as_str(), left_out), (1, "a.test", 1));
        assert_eq!(scenario.kinds[0].steps, 0..3);
        let steps: Vec<&StepPlan> =
            plans.iter().map(|plan| &**plan.step.as_ref().unwrap()).collect();
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["GET /", "GET /second", "GET /third"]);
        assert_eq!(plans[1].target, "/second?q=1");
        assert_eq!(steps[0].think, Think::of(Duration::from_millis(300)));
        assert_eq!((steps[1].think, steps[2].think), (Think::Never, Think::Never));
        assert_eq!((plans[0].fields.len(), steps[0].content.len()), (1, 1));
    }

    #[test]
    fn each_request_goes_to_its_own_server_and_credentials_to_the_first() {
        let text = archive(&[
            entry("05.0", 1.0, "http://a.test/", ""),
            entry("05.1", 1.0, "http://b.test/x", ""),
            entry("05.2", 1.0, "http://c.test/", ""),
            entry("05.3", 1.0, "data:text/plain,x", ""),
        ]);
        let servers = ["http://b.test", "http://a.test"]
            .map(|server| Url::parse(server, &Scheme::HTTP).unwrap());
        let fields = read_fields(["authorization: secret", "x-a: b"]).unwrap().0;
        let found = parse(text.as_bytes(), &servers, &fields).unwrap();
        assert_eq!((&found.scenario.servers[..], found.left_out), (&[1, 0][..], 2));
        let names = found.plans.iter().map(|plan| plan.step.as_ref().unwrap().name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["GET a.test/", "GET /x"]);
        assert_eq!((found.plans[0].fields.len(), found.plans[1].fields.len()), (1, 2));
    }

    #[test]
    fn what_is_wrong_with_an_archive_is_said() {
        let other = [Url::parse("http://b.test", &Scheme::HTTP).unwrap()];
        let none: &[Url] = &[];
        let one = archive(&[entry("05.0", 1.0, "http://a.test/", "")]);
        for (text, server, why) in [
            ("{}".to_owned(), none, "missing field `log`"),
            (archive(&[]), none, "has no entry"),
            (one.clone(), &other, "has no request to `http://b.test/`"),
            (archive(&[entry("99", 1.0, "http://a.test/", "")]), none, "entry 1: startedDateTime"),
            (one.replace("GET", "CONNECT"), none, "entry 1: CONNECT"),
        ] {
            let said = parse(text.as_bytes(), server, &[]).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(url in "(http://a.test)?/?.{0,12}", at in ".{0,24}", time: f64) {
            let text = archive(&[entry("05.0", 1.0, "http://a.test/", "")]);
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let entry = &mut value["log"]["entries"][0];
            entry["request"]["url"] = url.into();
            entry["startedDateTime"] = at.into();
            entry["time"] = time.into();
            let _ = parse(&serde_json::to_vec(&value).unwrap(), &[], &[]);
        }
    }
}

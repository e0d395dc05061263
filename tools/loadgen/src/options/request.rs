//! Requests: methods, fields, bodies, lists of URLs.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_probe::engine::template::Template;
use bolide_probe::plan::{EventsPlan, Expectations, ExpectedBody, RequestPlan, StreamFormat};
use bolide_probe::scenario::Scenario;
use bolide_semantics::{Scheme, Url, check_path};
use bytes::Bytes;
use fastrand::Rng;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE};
use http::{HeaderName, HeaderValue, Method, StatusCode};

use super::arguments::{ExpectArguments, RequestArguments};
use crate::exchanges;
use crate::given::{LARGEST_BODY_BYTES, body_file, method};
use crate::scenario::{self, Recording, Replay, Steps};

/// Schemes that can be loaded.
const URLS: [Scheme; 4] = [Scheme::Http, Scheme::Https, Scheme::Ws, Scheme::Wss];

/// The heaviest weight: the sum of all must stay small enough to draw from.
const HEAVIEST: u32 = 1_000_000;

/// A longer time without an event is a stall, by default.
const STALL: Duration = Duration::from_secs(1);

/// Fields, and the authority if a Host field overrides it.
pub(crate) type Fields = (Vec<(HeaderName, HeaderValue)>, Option<String>);

/// Reads `Name: value` lines.
///
/// # Errors
///
/// What is wrong with one of them, in a sentence.
pub(crate) fn fields<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Fields, String> {
    let mut fields = Vec::new();
    let mut authority = None;
    for line in lines {
        let wrong = |why: &str| format!("the field `{}` {why}", line.escape_debug());
        let (name, value) =
            line.split_once(':').ok_or_else(|| wrong("has no colon: use `Name: value`"))?;
        let value = value.trim();
        let name = HeaderName::from_bytes(name.trim().as_bytes())
            .map_err(|_| wrong("has an invalid name"))?;
        let parsed = HeaderValue::from_str(value)
            .or_else(|_| HeaderValue::from_bytes(value.as_bytes()))
            .map_err(|_| wrong("has a value with a control character"))?;
        match name.as_str() {
            "host" if value.is_empty() => return Err(wrong("has no host")),
            "host" => authority = Some(value.to_owned()),
            "content-length" => return Err(wrong("can't be set: the body's length is sent")),
            // gRPC says that it takes trailers, and HTTP/2 allows that one value (RFC 9113 §8.2.2).
            "te" if value.eq_ignore_ascii_case("trailers") => fields.push((name, parsed)),
            "transfer-encoding" | "connection" | "keep-alive" | "upgrade" | "te" => {
                return Err(wrong("can't be set: the engine frames messages itself"));
            }
            _ => fields.push((name, parsed)),
        }
    }
    Ok((fields, authority))
}

/// The field of --basic or --bearer.
fn credentials(arguments: &RequestArguments) -> Result<Option<String>, String> {
    if let Some(basic) = &arguments.basic {
        if !basic.contains(':') {
            return Err("--basic: has no colon; use `user:password`".into());
        }
        return Ok(Some(format!("Authorization: Basic {}", STANDARD.encode(basic))));
    }
    Ok(arguments.bearer.as_ref().map(|token| format!("Authorization: Bearer {token}")))
}

/// Makes a body of a pattern.
///
/// # Errors
///
/// For a size that is too large or a pattern that is empty.
fn patterned(size: u64, pattern: &str, seed: u64) -> Result<Bytes, String> {
    let length = usize::try_from(size)
        .ok()
        .filter(|_| size <= LARGEST_BODY_BYTES)
        .ok_or("--data-size: must be at most 4 GiB")?;
    Ok(match pattern {
        "" => return Err("--data-pattern: must not be empty".into()),
        "zero" => Bytes::from(vec![0; length]),
        "random" => random(length, seed),
        text => text.bytes().cycle().take(length).collect::<Vec<u8>>().into(),
    })
}

/// Bytes that don't compress, the same for the same seed.
fn random(length: usize, seed: u64) -> Bytes {
    let mut bytes = vec![0; length];
    Rng::with_seed(seed).fill(&mut bytes);
    bytes.into()
}

/// A line of a list of URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) weight: u32,
    pub(crate) method: Option<Method>,
    /// A whole URL or a path.
    pub(crate) url: String,
}

/// Reads a list: `[WEIGHT] [METHOD] URL-or-path` per line.
///
/// # Errors
///
/// The line's number and what is wrong with it.
pub(crate) fn list(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: String| format!("line {}: {why}", index + 1);
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let url = words.pop().unwrap_or_default().to_owned();
        let mut entry = Line { weight: 1, method: None, url };
        for (place, word) in words.iter().enumerate() {
            if place == 0 && word.bytes().all(|byte| byte.is_ascii_digit()) {
                entry.weight = word
                    .parse()
                    .ok()
                    .filter(|weight| (1..=HEAVIEST).contains(weight))
                    .ok_or_else(|| {
                    wrong(format!("the weight `{word}` is not a number from 1 to {HEAVIEST}"))
                })?;
            } else if place + 1 == words.len() {
                entry.method = Some(method(word).map_err(wrong)?);
            } else {
                return Err(wrong("has more than a weight, a method and a URL".into()));
            }
        }
        lines.push(entry);
    }
    if lines.is_empty() {
        return Err("has no URL".into());
    }
    Ok(lines)
}

/// The requests, and the URL that says where the server is.
pub(super) struct Requests {
    pub(super) target: Url,
    /// Scenario that takes them in order.
    pub(super) scenario: Option<Scenario>,
    /// The servers that the scenario names besides the target's.
    pub(super) others: Vec<Url>,
    /// Note about what is not sent of what was asked for, in a sentence.
    pub(super) note: Option<String>,
    /// Instead of the target's, in Host and `:authority`.
    pub(super) authority: Option<String>,
    pub(super) plans: Vec<RequestPlan>,
}

impl Requests {
    /// Requests that belong to no user.
    fn to(target: Url, authority: Option<String>, plans: Vec<RequestPlan>) -> Self {
        Self { target, scenario: None, others: Vec::new(), note: None, authority, plans }
    }
}

/// Puts URLs, method, fields, body and expected response together.
pub(super) fn requests(
    urls: &[String],
    arguments: &RequestArguments,
    expect: &ExpectArguments,
    seed: u64,
) -> Result<Requests, String> {
    let mut lines: Vec<Line> =
        urls.iter().map(|url| Line { weight: 1, method: None, url: url.clone() }).collect();
    let mut base = urls.first().map(|url| Url::parse(url, &URLS)).transpose()?;
    if let Some(path) = &arguments.sources.urls {
        let named = |why: String| format!("--urls {}: {why}", path.display());
        let listed = list(&read_list(path).map_err(named)?).map_err(named)?;
        // A URL next to a list only says which server the list's paths are of.
        lines = listed;
    }
    let credentials = credentials(arguments)?;
    let own = arguments.headers.iter().map(String::as_str);
    let (fields, authority) = fields(own.chain(credentials.as_deref()))?;
    if fields.iter().filter(|(name, _)| *name == AUTHORIZATION).count() > 1 {
        return Err("-H Authorization, --basic or --bearer: use one of them".into());
    }
    let response_fields = expected("--expect-field", &expect.expect_field)?;
    if let Some(list) = &arguments.exchanges {
        let target = base.ok_or("--exchanges needs a URL that names the server")?;
        let mut plans = exchanges::read(list, &fields)?;
        for plan in &mut plans {
            plan.response_fields.extend_from_slice(&response_fields);
        }
        return Ok(Requests::to(target, authority, plans));
    }
    if let Some(steps) = steps(urls, arguments, base.as_ref(), &fields)? {
        return Ok(Requests { authority, ..steps });
    }
    let fields = streamed_fields(fields, arguments);
    let bodies = bodies(arguments, seed)?;
    let chosen = arguments.method.as_deref().map(method).transpose()?;
    let default = if bodies.iter().all(Bytes::is_empty) { Method::GET } else { Method::POST };
    let response = answer(expect)?;
    let mut plans = Vec::with_capacity(lines.len());
    for line in lines {
        let path = if line.url.starts_with('/') {
            check_path(&line.url).map_err(|why| format!("`{}`: {why}", line.url))?;
            line.url
        } else {
            let target = Url::parse(&line.url, &URLS)?;
            let first = base.get_or_insert_with(|| target.clone());
            if !first.is_same_origin(&target) {
                return Err(format!("`{target}` and `{first}` are on different servers"));
            }
            target.path
        };
        check_placeholders(&path)?;
        let method = line.method.or_else(|| chosen.clone()).unwrap_or_else(|| default.clone());
        plans.extend(bodies.iter().map(|body| RequestPlan {
            fields: fields.clone(),
            has_placeholders: true,
            body: body.clone(),
            weight: line.weight,
            response: response.clone(),
            response_fields: response_fields.clone(),
            ..RequestPlan::new(method.clone(), path.clone())
        }));
    }
    let target = base.ok_or("a list of paths needs a URL that names the server")?;
    Ok(Requests::to(target, authority, plans))
}

/// The server, the users and their steps, if the requests are those of users.
fn steps(
    urls: &[String],
    arguments: &RequestArguments,
    base: Option<&Url>,
    fields: &[(HeaderName, HeaderValue)],
) -> Result<Option<Requests>, String> {
    let option =
        match (&arguments.sources.scenario, &arguments.sources.har, &arguments.sources.replay) {
            (Some(_), ..) => "--scenario",
            (_, Some(_), _) => "--har",
            (.., Some(_)) => "--replay",
            _ => return Ok(None),
        };
    let of = |target: Url, scenario, plans| Requests {
        scenario: Some(scenario),
        ..Requests::to(target, None, plans)
    };
    let named = urls.iter().map(|url| Url::parse(url, &URLS)).collect::<Result<Vec<_>, _>>()?;
    let is_server = |url: &Url| url.path == "/" && !url.scheme.is_websocket();
    if !named.iter().all(is_server) || (named.len() > 1 && arguments.sources.har.is_none()) {
        return Err(format!(
            "{option} has its own paths: give one URL that names the server, such as http://127.0.0.1:8080"
        ));
    }
    if fields.iter().any(|(name, _)| *name == COOKIE) {
        return Err(format!("-H cookie can't be combined with {option}: each user keeps its own"));
    }
    if let Some(path) = &arguments.sources.har {
        let Recording { mut servers, scenario, plans, left_out } =
            scenario::read_har(path, &named, fields)?;
        let note = (left_out > 0).then(|| {
            format!("--har leaves {left_out} request(s) to other servers out: a URL for each server takes them in")
        });
        let others = servers.split_off(1);
        return Ok(Some(Requests { note, others, ..of(servers.remove(0), scenario, plans) }));
    }
    let server = base.ok_or_else(|| format!("{option} needs a URL that names the server"))?.clone();
    if let Some(path) = &arguments.sources.replay {
        let Replay { scenario, plans, left_out } =
            scenario::read_replay(path, arguments.sources.speed, fields)?;
        let note = (left_out > 0).then(|| {
            format!("--replay leaves {left_out} line(s) out: only GET and HEAD are sent again")
        });
        return Ok(Some(Requests { note, ..of(server, scenario, plans) }));
    }
    let Some(path) = &arguments.sources.scenario else { return Ok(None) };
    let Steps { scenario, plans, others } = scenario::read(path, &server, fields)
        .map_err(|why| format!("--scenario {}: {why}", path.display()))?;
    Ok(Some(Requests { others, ..of(server, scenario, plans) }))
}

/// A brace is not a character of a URL: one that is not of a placeholder is a mistake.
fn check_placeholders(path: &str) -> Result<(), String> {
    if Template::leaves_braces(path) {
        return Err(format!(
            "`{path}` has a brace that belongs to no placeholder: {{connection}}, {{request}}, \
             {{random:1..100}} and {{uuid}} are replaced; write other braces as %7B and %7D"
        ));
    }
    Ok(())
}

fn read_list(path: &Path) -> Result<String, String> {
    if path.as_os_str() != "-" {
        return fs::read_to_string(path).map_err(|error| error.to_string());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// How streams of events are judged, if responses are some.
pub(super) fn events(arguments: &RequestArguments) -> Option<EventsPlan> {
    let stall = arguments.messages.stall.unwrap_or(STALL);
    let format = match (arguments.messages.openai, &arguments.messages.grpc) {
        (true, _) => StreamFormat::OpenAi,
        (_, Some(_)) => StreamFormat::Grpc,
        _ if arguments.messages.events => StreamFormat::Events,
        _ => return None,
    };
    Some(EventsPlan { stall_ns: u64::try_from(stall.as_nanos()).unwrap_or(u64::MAX), format })
}

/// Returns the fields of a request for a stream of events, with those that are not given by default.
fn streamed_fields(
    mut fields: Vec<(HeaderName, HeaderValue)>,
    arguments: &RequestArguments,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut default = |name: HeaderName, value: &'static str| {
        if !fields.iter().any(|(known, _)| *known == name) {
            fields.push((name, HeaderValue::from_static(value)));
        }
    };
    if arguments.messages.events || arguments.messages.openai {
        default(ACCEPT, "text/event-stream");
    }
    if arguments.messages.openai {
        default(CONTENT_TYPE, "application/json");
    }
    fields
}

/// The bodies that are sent in turn: one, but for `--data-lines`.
fn bodies(arguments: &RequestArguments, seed: u64) -> Result<Vec<Bytes>, String> {
    let Some(path) = &arguments.bodies.data_lines else { return Ok(vec![body(arguments, seed)?]) };
    let whole = body_file("--data-lines", path)?;
    let lines = whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let bodies: Vec<Bytes> =
        lines.filter(|line| !line.is_empty()).map(|line| whole.slice_ref(line)).collect();
    if bodies.is_empty() {
        return Err(format!("--data-lines {}: has no line", path.display()));
    }
    Ok(bodies)
}

fn body(arguments: &RequestArguments, seed: u64) -> Result<Bytes, String> {
    if let Some(text) = &arguments.bodies.data {
        return Ok(Bytes::from(text.clone()));
    }
    if let Some(path) = &arguments.bodies.data_file {
        return body_file("--data-file", path);
    }
    match arguments.bodies.data_size {
        Some(size) => {
            patterned(size, arguments.bodies.data_pattern.as_deref().unwrap_or("x"), seed)
        }
        None => Ok(Bytes::new()),
    }
}

fn answer(expect: &ExpectArguments) -> Result<Option<ExpectedBody>, String> {
    if let Some(text) = &expect.expect_body {
        return Ok(Some(ExpectedBody::Exact(Bytes::from(text.clone()))));
    }
    if let Some(path) = &expect.expect_body_file {
        return body_file("--expect-body-file", path).map(|body| Some(ExpectedBody::Exact(body)));
    }
    if let Some(hex) = &expect.expect_sha256 {
        return sha256(hex).map(|digest| Some(ExpectedBody::Sha256(digest)));
    }
    Ok(expect.expect_same.then_some(ExpectedBody::SameAsFirst))
}

fn sha256(hex: &str) -> Result<[u8; 32], String> {
    let wrong = || format!("--expect-sha256: `{hex}` is not 64 hexadecimal digits");
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let mut digest = [0; 32];
    for (byte, place) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&hex[place..place + 2], 16).map_err(|_| wrong())?;
    }
    Ok(digest)
}

/// Statuses, length and share. A known body also has a known length.
pub(super) fn expectations(
    expect: &ExpectArguments,
    plans: &[RequestPlan],
) -> Result<Expectations, String> {
    let statuses = expect.expect_status.as_deref().map(statuses).transpose()?.unwrap_or_default();
    let mut lengths = plans.iter().map(|plan| match &plan.response {
        Some(ExpectedBody::Exact(body)) => Some(body.len() as u64),
        _ => None,
    });
    let first = lengths.next().flatten();
    let known = first.filter(|first| lengths.all(|other| other == Some(*first)));
    if let (Some(known), Some(asked)) = (known, expect.expect_length)
        && known != asked
    {
        return Err(format!("--expect-length {asked}, but the expected body has {known} bytes"));
    }
    Ok(Expectations {
        statuses,
        length: expect.expect_length.or(known),
        sampled_share: expect.sample,
        trailers: expected("--expect-trailer", &expect.expect_trailer)?,
    })
}

/// The fields of responses that an option names.
fn expected(option: &str, lines: &[String]) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let parsed = fields(lines.iter().map(String::as_str));
    parsed.map(|(fields, _)| fields).map_err(|why| format!("{option}: {why}"))
}

/// Reads a list of statuses and of their classes.
///
/// # Errors
///
/// What is not a status, and what would be right.
pub(crate) fn statuses(text: &str) -> Result<Vec<StatusCode>, String> {
    let mut statuses = Vec::new();
    for item in text.split(',').map(str::trim) {
        let wrong = || format!("--expect-status: `{item}` is not a status: use 200 or 2xx");
        let class = item.strip_suffix("xx").and_then(|class| class.parse::<u16>().ok());
        let codes = match class {
            Some(class @ 1..=9) => class * 100..=class * 100 + 99,
            Some(_) => return Err(wrong()),
            None => {
                let code = item.parse::<u16>().map_err(|_| wrong())?;
                code..=code
            }
        };
        for code in codes {
            statuses.push(StatusCode::from_u16(code).map_err(|_| wrong())?);
        }
    }
    Ok(statuses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_read_and_framing_is_refused() {
        let (fields, authority) = fields(["Accept: */*", "X-Empty:", "Host: a:1"]).unwrap();
        assert_eq!(fields[0].0, "accept");
        assert_eq!((fields[0].1.as_bytes(), fields[1].1.as_bytes()), (&b"*/*"[..], &b""[..]));
        assert_eq!((fields.len(), authority.as_deref()), (2, Some("a:1")));
        assert_eq!(super::fields(["TE: trailers"]).unwrap().0.len(), 1);
        for (line, why) in [
            ("TE: gzip", "frames"),
            ("Accept", "no colon"),
            ("A b: c", "name"),
            ("a: b\nc: d", "control character"),
            ("Content-Length: 5", "body's length"),
            ("Transfer-Encoding: chunked", "frames"),
            ("Host: ", "no host"),
        ] {
            assert!(super::fields([line]).unwrap_err().contains(why), "{line}");
        }
    }

    #[test]
    fn a_list_has_weights_and_methods() {
        let lines = list("# all\n/a\n\n 3 /b\nPUT /c\n2 DELETE http://h/d \n").unwrap();
        let read: Vec<_> = lines
            .iter()
            .map(|line| (line.weight, line.method.as_ref().map(Method::as_str), line.url.as_str()))
            .collect();
        let right = [
            (1, None, "/a"),
            (3, None, "/b"),
            (1, Some("PUT"), "/c"),
            (2, Some("DELETE"), "http://h/d"),
        ];
        assert_eq!(read, right);
        for (text, why) in [
            ("", "no URL"),
            ("/a\n0 /b", "line 2: the weight `0`"),
            ("1 2 GET /b", "line 1: has more than"),
            ("CONNECT /b", "tunnel"),
            ("G:T /b", "not a method"),
        ] {
            assert!(list(text).unwrap_err().contains(why), "{text}: {:?}", list(text));
        }
    }

    #[test]
    fn patterns_fill_a_body_to_its_size() {
        assert_eq!(patterned(5, "ab", 0).unwrap(), "ababa");
        assert_eq!(patterned(3, "zero", 0).unwrap(), &[0; 3][..]);
        assert_eq!(patterned(13, "random", 7).unwrap(), patterned(13, "random", 7).unwrap());
        assert_ne!(patterned(13, "random", 7).unwrap(), patterned(13, "random", 8).unwrap());
        assert!(patterned(1 << 40, "x", 0).is_err() && patterned(1, "", 0).is_err());
    }

    #[test]
    fn statuses_may_be_classes() {
        assert_eq!(statuses("204").unwrap(), [StatusCode::NO_CONTENT]);
        assert_eq!(statuses("2xx, 404").unwrap().len(), 101);
        for text in ["", "20", "2x", "0xx", "1000", "65535", "abc"] {
            assert!(statuses(text).unwrap_err().contains("not a status"), "{text}");
        }
    }

    #[test]
    fn a_digest_has_64_digits() {
        assert_eq!(sha256(&"0f".repeat(32)), Ok([15; 32]));
        assert!(sha256("0f").is_err() && sha256(&"0g".repeat(32)).is_err());
        assert!(sha256(&"ä".repeat(32)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_parser(text in "(?s).{0,60}") {
            let _ = (list(&text), statuses(&text), sha256(&text), method(&text));
            let _ = fields([text.as_str()]);
        }

        #[test]
        fn a_list_comes_back(paths in proptest::collection::vec((1_u32..100, "/[a-z0-9?=]{0,8}"), 1..20)) {
            let text: String = paths.iter().map(|(weight, path)| format!("{weight} {path}\n")).collect();
            let read: Vec<_> =
                list(&text).unwrap().into_iter().map(|line| (line.weight, line.url)).collect();
            prop_assert_eq!(read, paths);
        }
    }
}

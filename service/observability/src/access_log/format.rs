//! One line for one request, in three formats.

use super::calendar::CalendarTime;
use super::ended::Ended;
use super::entry::Asked;
use super::template::LogTemplate;
use super::text::{Short, is_plain, json_escaped, number, quoted, string, version_text, word};

/// Format of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// The common log format of web servers: peer, time, request line, status, bytes of the body.
    Common,
    /// The same, with referer and user agent.
    #[default]
    Combined,
    /// A JSON object; [`JSON_FIELDS`] lists its fields.
    Json,
    /// Text with placeholders.
    Template(LogTemplate),
}

impl LogFormat {
    /// Returns whether its lines say to the microsecond when a request ended.
    pub fn is_timed(&self) -> bool {
        matches!(self, Self::Json | Self::Template(_))
    }
}

/// The fields of a line in JSON, and what they say. Those that are not known are left out.
pub const JSON_FIELDS: &[(&str, &str)] = &[
    ("time", "When the exchange ended, UTC (RFC 3339, milliseconds)"),
    ("duration_us", "From the head's arrival to the last byte of the response, in microseconds"),
    ("peer", "The client's address and port; `unix` on a Unix socket"),
    ("tls", "`version`, `cipher`, `alpn`, `server_name` and `resumed` of the TLS connection"),
    ("version", "`HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`"),
    ("host", "The requested host"),
    ("user_agent", "The `User-Agent` field"),
    ("method", "The method; missing when the request could not be read"),
    ("target", "Path and query as sent; of CONNECT, the authority"),
    ("route", "The pattern of the route, as in the metrics"),
    ("status", "The status; 0 when none was sent"),
    ("received_bytes", "Bytes of the request's body that the handler received"),
    ("sent_bytes", "Bytes of the response's body that were given to the connection"),
    ("receive_us", "From the head's arrival to the request's end"),
    ("response_us", "From the head's arrival to the response's head"),
    ("send_us", "From the response's head to its last byte"),
    ("upstream_connect_us", "Until the upstream had a connection for the request"),
    ("upstream_head_us", "From sending the request to the head of the upstream's response"),
    ("upstream_us", "From sending the request to the end of the upstream's response"),
    ("referer", "The `Referer` field"),
    ("upstream", "The upstream tried last"),
    ("trace_id", "The trace id of a well-formed `traceparent` field"),
    ("client", "The client's address, as a trusted peer says"),
    ("request_id", "The `X-Request-Id`, where `request-id` is set"),
    ("user", "The user, where `basic-auth` or `forward-auth` names one"),
    ("abort", "Why the exchange ended before it was complete: a `reason` of the metrics"),
    ("stages_ns", "In a measured turn: the CPU time of each stage of the profile, in nanoseconds"),
];

#[inline]
fn counted(line: &mut Vec<u8>, before: &str, value: u64) {
    line.extend_from_slice(before.as_bytes());
    number(line, value);
}

/// Returns what a line says of its time: at its front in JSON, after the client's address else.
#[inline]
pub(super) fn begin(format: &LogFormat, time: &CalendarTime, lasted: u64) -> Short {
    let mut short = Short::new();
    if *format == LogFormat::Json {
        short.put(b"{\"time\":\"");
        short.put(time.iso());
        short.put(b"\",\"duration_us\":");
        short.number(lasted);
    } else {
        short.put(b" [");
        short.put(time.common());
        short.put(b"] \"");
    }
    short
}

/// Appends what a line of the common or the combined format begins with: the client, and the user.
pub(super) fn write_client(line: &mut Vec<u8>, peer: &[u8], asked: &Asked<'_>) {
    match asked.client {
        None => line.extend_from_slice(peer),
        Some(client) => line.extend_from_slice(client.to_string().as_bytes()),
    }
    line.extend_from_slice(b" - ");
    word(line, if asked.user.is_empty() { b"-" } else { asked.user });
}

/// Appends the rest of a line of the common or the combined format, from the request line on, with its end.
pub(super) fn write_plain(line: &mut Vec<u8>, format: &LogFormat, ended: &Ended<'_>) {
    write_common(line, ended);
    if *format == LogFormat::Combined {
        for value in [ended.asked.referer, ended.asked.user_agent] {
            line.extend_from_slice(b" \"");
            quoted(line, if value.is_empty() { b"-" } else { value });
            line.push(b'"');
        }
    }
    line.push(b'\n');
}

/// Appends the rest of a line in JSON, from the method on, with its end. The beginning is known later.
#[inline]
pub(super) fn write_json(line: &mut Vec<u8>, ended: &Ended<'_>) {
    let Ended { asked, route, outcome, stages } = ended;
    if asked.method.is_empty() {
        // The quote at its front would end the target.
        line.extend_from_slice(route.after_quote());
    } else {
        match asked.method {
            b"GET" => line.extend_from_slice(b",\"method\":\"GET\",\"target\":\""),
            b"POST" => line.extend_from_slice(b",\"method\":\"POST\",\"target\":\""),
            method => {
                string(line, ",\"method\":\"", method);
                line.extend_from_slice(b"\",\"target\":\"");
            }
        }
        if is_plain(asked.target) {
            line.extend_from_slice(asked.target);
        } else {
            json_escaped(line, asked.target);
        }
        route.put(line);
    }
    let mut short = Short::new();
    // What most requests say is put together already.
    match outcome.status {
        200 => short.put(b"200,\"received_bytes\":"),
        status => {
            short.number(status.into());
            short.put(b",\"received_bytes\":");
        }
    }
    short.number(outcome.received_bytes);
    short.put(b",\"sent_bytes\":");
    short.number(outcome.sent_bytes);
    let has_more = stages.is_some()
        | outcome.abort.is_some()
        | asked.client.is_some()
        | !(asked.referer.is_empty() & asked.upstream.is_empty() & asked.trace.is_empty())
        | !(asked.request_id.is_empty() & asked.user.is_empty());
    if has_more {
        line.extend_from_slice(short.text());
        write_more(line, ended);
    } else {
        short.put(b"}\n");
        line.extend_from_slice(short.text());
    }
}

/// Appends what most lines in JSON don't have, and the end of those that do.
#[inline(never)]
fn write_more(line: &mut Vec<u8>, ended: &Ended<'_>) {
    let Ended { asked, outcome, stages, .. } = ended;
    if let Some(stages) = stages {
        stages.write(line);
    }
    let client = asked.client.map(|client| client.to_string()).unwrap_or_default();
    for (before, value) in [
        (",\"referer\":\"", asked.referer),
        (",\"upstream\":\"", asked.upstream),
        (",\"trace_id\":\"", asked.trace),
        (",\"client\":\"", client.as_bytes()),
        (",\"request_id\":\"", asked.request_id),
        (",\"user\":\"", asked.user),
        (",\"abort\":\"", outcome.abort.unwrap_or_default().as_bytes()),
    ] {
        if !value.is_empty() {
            string(line, before, value);
            line.push(b'"');
        }
    }
    line.extend_from_slice(b"}\n");
}

/// `peer - - [time] "request line" status bytes`, from the request line on.
fn write_common(line: &mut Vec<u8>, ended: &Ended<'_>) {
    let Ended { asked, outcome, .. } = ended;
    if asked.method.is_empty() {
        line.push(b'-');
    } else {
        quoted(line, asked.method);
        line.push(b' ');
        quoted(line, asked.target);
        line.push(b' ');
        line.extend_from_slice(version_text(asked.version).as_bytes());
    }
    counted(line, "\" ", outcome.status.into());
    counted(line, " ", outcome.sent_bytes);
}

#[cfg(test)]
mod tests {
    use bolide_connection::HandshakeFacts;
    use bolide_semantics::{FieldName, Head, HeadKind};

    use std::time::Instant;

    use http::Version;

    use super::super::ended::{Outcome, RoutePiece};
    use super::super::prefix::LinePrefix;
    use super::super::stages::{Split, Stages};

    use super::*;
    use crate::profile::Stage;

    fn outcome() -> Outcome {
        let began = Instant::now();
        Outcome { status: 200, received_bytes: 1, sent_bytes: 4, began, abort: None }
    }

    fn line(format: LogFormat, asked: Asked<'_>, outcome: Outcome) -> String {
        let mut prefix = LinePrefix::new(&format, "192.0.2.1:5", None);
        let route = RoutePiece::new("/a\"");
        let mut line = Vec::new();
        let ended = Ended { asked: &asked, route: &route, outcome: &outcome, stages: None };
        let beginning = begin(&format, &CalendarTime::new(), 123);
        if format == LogFormat::Json {
            beginning.append_to(&mut line);
            prefix.put(&mut line, &asked);
            write_json(&mut line, &ended);
        } else {
            write_client(&mut line, prefix.fixed(), &asked);
            beginning.append_to(&mut line);
            write_plain(&mut line, &format, &ended);
        }
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_user_is_the_third_field_and_cannot_forge_one() {
        let head = head(b"/", b"a");
        for (user, field) in [
            (&b"alice"[..], "192.0.2.1 - alice ["),
            (b"", "192.0.2.1 - - ["),
            (b"a - b [\"\n\\", "192.0.2.1 - a\\x20-\\x20b\\x20[\\x22\\x0a\\x5c ["),
            ("é".as_bytes(), "192.0.2.1 - \\xc3\\xa9 ["),
        ] {
            let asked = Asked { user, ..Asked::of_head(&head) };
            let common = line(LogFormat::Common, asked, outcome());
            assert!(common.starts_with(field), "{common}");
            let json = line(LogFormat::Json, asked, outcome());
            assert_eq!(json.contains("\"user\":"), !user.is_empty(), "{json}");
        }
    }

    fn head(target: &[u8], agent: &[u8]) -> Head {
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_11);
        let path = head.push_text(target);
        head.set_path(path);
        head.push_field(FieldName::UserAgent, agent);
        head
    }

    #[test]
    fn a_line_of_each_format() {
        let head = head(b"/a?b", b"curl");
        let asked = Asked::of_head(&head);
        let common = "192.0.2.1 - - [01/Jan/1970:00:00:00 +0000] \"GET /a?b HTTP/1.1\" 200 4";
        assert_eq!(line(LogFormat::Common, asked, outcome()), format!("{common}\n"));
        let combined = format!("{common} \"-\" \"curl\"\n");
        assert_eq!(line(LogFormat::Combined, asked, outcome()), combined);
        assert_eq!(
            line(LogFormat::Json, asked, outcome()),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"duration_us\":123,\"peer\":\"192.0.2.1:5\",\
             \"version\":\"HTTP/1.1\",\"user_agent\":\"curl\",\"method\":\"GET\",\"target\":\"/a?b\",\
             \"route\":\"/a\\\"\",\"status\":200,\"received_bytes\":1,\"sent_bytes\":4}\n"
        );
    }

    #[test]
    fn a_route_of_any_length_is_said() {
        for length in 0..100 {
            let name = "x".repeat(length);
            let mut line = b"a".to_vec();
            RoutePiece::new(&name).put(&mut line);
            assert_eq!(line, format!("a\",\"route\":\"{name}\",\"status\":").into_bytes());
        }
    }

    #[test]
    fn log_injection_stays_in_its_line() {
        let agent = b"x\"\n192.0.2.9 - - [] \"GET /admin HTTP/1.1\" 200 1\r\n\x1b[31m";
        let head = head(b"/a\"b\\", agent);
        for format in [LogFormat::Common, LogFormat::Combined, LogFormat::Json] {
            let line = line(format.clone(), Asked::of_head(&head), outcome());
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert!(line.ends_with('\n'), "{line}");
            assert!(!line.contains(['\r', '\x1b']), "{line}");
            assert!(line.contains("/a\\\"b\\\\"), "{line}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out_or_a_dash() {
        let asked = Asked::unread(Version::HTTP_11);
        let outcome = Outcome { status: 0, abort: Some("the client has gone"), ..outcome() };
        let combined = line(LogFormat::Combined, asked, outcome);
        assert!(combined.ends_with("] \"-\" 0 4 \"-\" \"-\"\n"), "{combined}");
        let json = line(LogFormat::Json, asked, outcome);
        assert!(!json.contains("method"), "{json}");
        assert!(
            json.ends_with(
                "\"version\":\"HTTP/1.1\",\"route\":\"/a\\\"\",\"status\":0,\"received_bytes\":1,\
                 \"sent_bytes\":4,\"abort\":\"the client has gone\"}\n"
            ),
            "{json}"
        );
    }

    /// The table of docs/operate.md, the list, and what is written are the same.
    #[test]
    fn the_page_lists_every_field() {
        let facts = HandshakeFacts {
            client: None,
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256".to_owned(),
            group: Some("X25519"),
            alpn: Some(bolide_connection::Alpn::H2),
            server_name: Some("a.example".to_owned()),
            resumed: true,
        };
        let mut prefix = LinePrefix::new(&LogFormat::Json, "unix", Some(&facts));
        let word = &b"x"[..];
        let asked = Asked {
            version: Version::HTTP_2,
            method: word,
            target: word,
            host: word,
            user_agent: word,
            referer: word,
            trace: word,
            upstream: word,
            request_id: word,
            user: word,
            client: Some("192.0.2.1".parse().unwrap()),
        };
        let outcome = Outcome { abort: Some("x"), ..outcome() };
        let mut text = Vec::new();
        let route = RoutePiece::new("x");
        begin(&LogFormat::Json, &CalendarTime::new(), 1).append_to(&mut text);
        prefix.put(&mut text, &asked);
        let stages = Some(&Stages::ALL);
        write_json(&mut text, &Ended { asked: &asked, route: &route, outcome: &outcome, stages });
        Split::every(outcome.began).put(&mut text);
        let text = String::from_utf8(text).unwrap();
        let page = include_str!("../../../../docs/operate.md");
        let mut rest = text.as_str();
        for (name, meaning) in JSON_FIELDS {
            let at = rest.find(&format!("\"{name}\":"));
            rest = &rest[at.unwrap_or_else(|| panic!("no {name} in order in {text}"))..];
            let row = format!("| `{name}` | {meaning} |");
            assert!(page.contains(&row), "docs/operate.md has no row\n{row}");
        }
        let inner = "\"alpn\":\"h2\",\"server_name\":\"a.example\",\"resumed\":true}";
        assert!(text.contains(inner), "{text}");
        let parts = 5 + Stage::ALL.len();
        assert_eq!(text.matches("\":").count(), JSON_FIELDS.len() + parts, "{text}");
    }
}

//! Lines of a format of the user's own.

use std::fmt;
use std::sync::Arc;

use super::calendar::CalendarTime;
use super::ended::Ended;
use super::text::{number, quoted, version_text};
use crate::placeholders::{TextPart, text_parts};

/// Mark in a text for what is known at its end only: no value has these bytes, for they are escaped.
const TIME: u8 = 1;
const DURATION: u8 = 2;

/// The placeholders of a [`LogTemplate`], as those of JSON lines and of routes are called.
pub const LOG_PLACEHOLDERS: [&str; 21] = [
    "time",
    "duration_us",
    "client",
    "user",
    "method",
    "target",
    "path",
    "query",
    "host",
    "version",
    "status",
    "received_bytes",
    "sent_bytes",
    "route",
    "referer",
    "user_agent",
    "upstream",
    "trace_id",
    "request_id",
    "abort",
    "scheme",
];

/// A line as text with placeholders ([`LOG_PLACEHOLDERS`]). A value that is not known is a dash; what is no visible ASCII, quotes
/// and backslashes are escaped as in the combined format, so that no client forges a line.
#[derive(Clone, PartialEq, Eq)]
pub struct LogTemplate {
    text: Arc<str>,
    parts: Arc<[Part]>,
}

impl fmt::Debug for LogTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(formatter)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Value(&'static str),
}

impl LogTemplate {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// What is wrong: a placeholder that is not known, a single brace, a line end or another control character.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(bad) = text.chars().find(|one| one.is_control() && *one != '\t') {
            return Err(format!("has {bad:?}: each request is one line"));
        }
        let part = |part| match part {
            TextPart::Literal(literal) => Ok(Part::Literal(literal)),
            TextPart::Placeholder(name) => {
                let known = LOG_PLACEHOLDERS.iter().find(|known| **known == name);
                known.copied().map(Part::Value).ok_or_else(|| {
                    let known = LOG_PLACEHOLDERS.join("}, {");
                    format!("`{{{name}}}` is not a placeholder: known are {{{known}}}")
                })
            }
        };
        let parts = text_parts(text)?.into_iter().map(part).collect::<Result<_, _>>()?;
        Ok(Self { text: text.into(), parts })
    }

    /// The text that it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Appends the line of a request, without its times.
    pub(super) fn write(&self, line: &mut Vec<u8>, peer: &[u8], is_tls: bool, ended: &Ended<'_>) {
        let Ended { asked, route, outcome, .. } = ended;
        let (target, client) = (asked.target, asked.client.map(|client| client.to_string()));
        let path = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
        for part in &*self.parts {
            let value = match part {
                Part::Literal(text) => {
                    line.extend_from_slice(text.as_bytes());
                    continue;
                }
                Part::Value("time") => {
                    line.push(TIME);
                    continue;
                }
                Part::Value("duration_us") => {
                    line.push(DURATION);
                    continue;
                }
                Part::Value(name @ ("status" | "received_bytes" | "sent_bytes")) => {
                    let value = match *name {
                        "status" => outcome.status.into(),
                        "sent_bytes" => outcome.sent_bytes,
                        _ => outcome.received_bytes,
                    };
                    number(line, value);
                    continue;
                }
                Part::Value("route") => {
                    line.extend_from_slice(route.name());
                    continue;
                }
                Part::Value(name) => match *name {
                    "client" => client.as_ref().map_or(peer, |client| client.as_bytes()),
                    "user" => asked.user,
                    "method" => asked.method,
                    "target" => target,
                    "path" => &target[..path],
                    "query" => &target[path..],
                    "host" => asked.host,
                    "version" => version_text(asked.version).as_bytes(),
                    "referer" => asked.referer,
                    "user_agent" => asked.user_agent,
                    "upstream" => asked.upstream,
                    "trace_id" => asked.trace,
                    "request_id" => asked.request_id,
                    "scheme" if is_tls => b"https",
                    "scheme" => b"http",
                    _ => outcome.abort.unwrap_or_default().as_bytes(),
                },
            };
            quoted(line, if value.is_empty() { b"-" } else { value });
        }
        line.push(b'\n');
    }
}

/// Appends a line with its times in their places.
pub(super) fn fill(line: &[u8], calendar: &CalendarTime, lasted_us: u64, out: &mut Vec<u8>) {
    for byte in line {
        match *byte {
            TIME => out.extend_from_slice(calendar.iso()),
            DURATION => number(out, lasted_us),
            byte => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use http::Version;

    use super::super::ended::{Outcome, RoutePiece};
    use super::super::entry::Asked;
    use super::*;

    fn line(template: &str, asked: &Asked<'_>) -> String {
        let template = LogTemplate::parse(template).unwrap();
        let began = Instant::now();
        let outcome = Outcome { status: 200, received_bytes: 1, sent_bytes: 4, began, abort: None };
        let route = RoutePiece::new("/a");
        let ended = Ended { asked, route: &route, outcome: &outcome, stages: None };
        let (mut text, mut out) = (Vec::new(), Vec::new());
        template.write(&mut text, b"192.0.2.1", true, &ended);
        fill(&text, &CalendarTime::new(), 123, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_placeholder_has_its_value() {
        let asked = Asked {
            method: b"GET",
            target: b"/a?b=c",
            host: b"h",
            user: b"alice",
            ..Asked::unread(Version::HTTP_2)
        };
        let template = "{time} {duration_us} {client} {user} {method} {path} {query} {host} {version} {status} \
                        {received_bytes} {sent_bytes} {route} {referer} {scheme} {{{target}}}";
        assert_eq!(
            line(template, &asked),
            "1970-01-01T00:00:00.000Z 123 192.0.2.1 alice GET /a ?b=c h HTTP/2.0 200 1 4 /a - https {/a?b=c}\n"
        );
        for name in LOG_PLACEHOLDERS {
            assert!(!line(&format!("{{{name}}}"), &asked).contains('{'), "{name}");
        }
    }

    #[test]
    fn log_injection_into_a_template_stays_in_its_line() {
        let odd = b"a\"\n\x01\x02\r\\";
        let asked = Asked { user_agent: odd, ..Asked::unread(Version::HTTP_11) };
        assert_eq!(line("\"{user_agent}\"", &asked), "\"a\\\"\\x0a\\x01\\x02\\x0d\\\\\"\n");
    }

    #[test]
    fn templates_that_cannot_be_are_refused() {
        for (text, what) in [
            ("{statu}", "`{statu}` is not a placeholder"),
            ("{", "single `{`"),
            ("a\nb", "one line"),
        ] {
            assert!(LogTemplate::parse(text).unwrap_err().contains(what), "{text}");
        }
    }
}

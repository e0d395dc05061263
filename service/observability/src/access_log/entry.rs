//! Facts about a request that a line needs that is not answered at once: copied, for the head is used again.

use std::net::IpAddr;

use bolide_semantics::{FieldName, Head};
use http::Version;

use super::stages::Times;
use super::text::cut;
use super::trace::trace_id;

/// Facts about a request for a line. Empty: not known.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The version of HTTP.
    pub version: Version,
    /// The method.
    pub method: &'a [u8],
    /// Path and query; of a CONNECT, the host.
    pub target: &'a [u8],
    /// The host that was asked for.
    pub host: &'a [u8],
    /// `User-Agent`.
    pub user_agent: &'a [u8],
    /// `Referer`.
    pub referer: &'a [u8],
    /// The trace that it belongs to (W3C Trace Context).
    pub trace: &'a [u8],
    /// The server behind that was asked last.
    pub upstream: &'a [u8],
    /// `X-Request-Id`.
    pub request_id: &'a [u8],
    /// The user whose credentials were verified.
    pub user: &'a [u8],
    /// Address of the client, as a trusted peer says.
    pub client: Option<IpAddr>,
}

impl<'a> Asked<'a> {
    /// A request of which nothing is known but its version: its head could not be read.
    pub fn unread(version: Version) -> Self {
        let nothing = &b""[..];
        Self {
            version,
            method: nothing,
            target: nothing,
            host: nothing,
            user_agent: nothing,
            referer: nothing,
            trace: nothing,
            upstream: nothing,
            request_id: nothing,
            user: nothing,
            client: None,
        }
    }

    /// Returns what a head says.
    #[inline]
    pub fn of_head(head: &'a Head) -> Self {
        let host = head.authority_bytes();
        let target = head.path_and_query_bytes();
        let trace = head.get_uncommon("traceparent").and_then(trace_id);
        Self {
            version: head.version(),
            method: cut(head.method().as_str().as_bytes()),
            // CONNECT has no path: it asks for an authority.
            target: cut(if target.is_empty() { host } else { target }),
            host: cut(host),
            user_agent: cut(head.get(FieldName::UserAgent).unwrap_or_default()),
            referer: cut(head.get(FieldName::Referer).unwrap_or_default()),
            trace: trace.unwrap_or_default(),
            upstream: b"",
            request_id: b"",
            user: b"",
            client: None,
        }
    }
}

const PARTS: usize = 8;

/// The same, kept: in one piece of memory, which is used again.
#[derive(Debug)]
pub struct Entry {
    version: Version,
    text: Vec<u8>,
    /// End of each part.
    ends: [u32; PARTS],
    client: Option<IpAddr>,
    /// When it came to each stage.
    pub times: Times,
}

impl Default for Entry {
    fn default() -> Self {
        Self::new()
    }
}

impl Entry {
    /// One without content, to be filled.
    pub fn new() -> Self {
        let (text, times) = (Vec::new(), Times::default());
        Self { version: Version::HTTP_11, text, ends: [0; PARTS], client: None, times }
    }

    /// Its memory, in bytes.
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.text.capacity()
    }

    /// Keeps what was asked.
    pub fn fill(&mut self, asked: &Asked<'_>) {
        let Asked { version, method, target, host, user_agent, referer, .. } = *asked;
        let Asked { trace, upstream, request_id, client, .. } = *asked;
        (self.version, self.client) = (version, client);
        self.times = Times::default();
        self.text.clear();
        let parts = [method, target, host, user_agent, referer, trace, request_id, upstream];
        for (part, end) in parts.into_iter().zip(&mut self.ends) {
            self.text.extend_from_slice(part);
            *end = self.text.len() as u32;
        }
    }

    /// Notes which server behind was asked; the latest counts.
    pub fn set_upstream(&mut self, name: &str) {
        self.text.truncate(self.ends[PARTS - 2] as usize);
        self.text.extend_from_slice(cut(name.as_bytes()));
        self.ends[PARTS - 1] = self.text.len() as u32;
    }

    /// Returns what was kept.
    pub fn asked(&self) -> Asked<'_> {
        let part = |index: usize| {
            let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
            &self.text[start..self.ends[index] as usize]
        };
        Asked {
            version: self.version,
            method: part(0),
            target: part(1),
            host: part(2),
            user_agent: part(3),
            referer: part(4),
            trace: part(5),
            request_id: part(6),
            upstream: part(7),
            // It is known at the end.
            user: b"",
            client: self.client,
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_semantics::HeadKind;
    use http::Method;

    use super::*;

    fn head() -> Head {
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_2);
        head.set_method(Method::PUT);
        let path = head.push_text(b"/a?b");
        head.set_path(path);
        let host = head.push_text(b"example");
        head.set_authority(host);
        head.push_field(FieldName::UserAgent, b"curl");
        head.push_field(FieldName::Authorization, b"Bearer secret");
        head.append("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        head
    }

    #[test]
    fn an_entry_says_what_the_head_said() {
        let mut entry = Entry::new();
        entry.fill(&Asked::of_head(&head()));
        entry.set_upstream("http://one");
        entry.set_upstream("http://b");
        let asked = entry.asked();
        assert_eq!(asked.method, b"PUT");
        assert_eq!(asked.target, b"/a?b");
        assert_eq!(asked.host, b"example");
        assert_eq!(asked.user_agent, b"curl");
        assert_eq!(asked.referer, b"");
        assert_eq!(asked.trace, b"4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(asked.upstream, b"http://b");
        assert!(!entry.text.windows(6).any(|part| part == b"secret"));
    }

    #[test]
    fn log_flood_by_long_values_is_cut() {
        let mut head = head();
        let path = head.push_text(&[b'x'; 10_000]);
        head.set_path(path);
        assert_eq!(Asked::of_head(&head).target.len(), crate::limits::LOG_FIELD_BYTES);
    }
}

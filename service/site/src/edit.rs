//! RFC 9110 §5: fields that a route sets, adds and removes.

use bolide_semantics::FieldName;
use bolide_server::{Head, HeaderName, HeaderValue, ResponseFields};

use crate::error::SiteError;
use crate::facts::Facts;
use crate::template::Template;

/// The message whose fields are edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Those of the request, before its handler or upstream sees them.
    Request,
    /// Those of the response.
    Response,
}

/// Fields to remove, to set and to add, in this order.
#[derive(Debug, Clone, Default)]
pub struct Edits {
    remove: Vec<HeaderName>,
    set: Vec<(HeaderName, Template)>,
    add: Vec<(HeaderName, Template)>,
}

/// Checks a name that a route wants to edit.
///
/// # Errors
///
/// It is no name, or that of a field that belongs to a connection, frames a message, or is the server's or the proxy's.
pub fn check_name(name: &str, direction: Direction) -> Result<HeaderName, SiteError> {
    let Ok(name) = HeaderName::try_from(name) else {
        return Err(SiteError::new("not a field name"));
    };
    let known = FieldName::lookup(name.as_str().as_bytes());
    let what = match known {
        Some(known) if bolide_semantics::is_hop_by_hop(known) => "it belongs to one connection",
        Some(FieldName::ContentLength | FieldName::Trailer) => "it frames the message",
        _ => match (direction, name.as_str()) {
            (Direction::Response, "date") => "the server sets it",
            (Direction::Request, "host") => {
                "routes are chosen by it: use `rewrite-host` of the upstream"
            }
            (Direction::Request, "expect") => "the server handles it",
            (Direction::Request, "via") => "the proxy needs it to find loops",
            (Direction::Request, "forwarded" | "x-real-ip") => {
                "the proxy sets it: use `origin` of the upstream"
            }
            (Direction::Request, name) if name.starts_with("x-forwarded-") => {
                "the proxy sets it: use `origin` of the upstream"
            }
            _ => return Ok(name),
        },
    };
    Err(SiteError::new(format!("`{name}` can't be edited: {what}")))
}

impl Edits {
    /// Removes every field with this name.
    pub fn remove(&mut self, name: HeaderName) {
        self.remove.push(name);
    }

    /// Sets a field in place of all with its name.
    pub fn set(&mut self, name: HeaderName, value: Template) {
        self.set.push((name, value));
    }

    /// Adds a field to those with its name.
    pub fn add(&mut self, name: HeaderName, value: Template) {
        self.add.push((name, value));
    }

    /// Returns whether nothing is edited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// Returns whether the values are the same for all requests.
    pub(crate) fn is_fixed(&self) -> bool {
        self.set.iter().chain(&self.add).all(|(_, value)| value.fixed().is_some())
    }

    /// The values for one request: those to set, then those to add. A value that got too long is none.
    pub(crate) fn values(&self, facts: &Facts<'_>) -> Vec<Option<HeaderValue>> {
        let value = |template: &Template| {
            let text = template.expand(facts, &[])?;
            HeaderValue::try_from(text).ok()
        };
        self.set.iter().chain(&self.add).map(|(_, template)| value(template)).collect()
    }

    /// Edits a response.
    pub(crate) fn edit<'p>(
        &'p self,
        values: &'p [Option<HeaderValue>],
        fields: &mut ResponseFields<'p>,
    ) {
        self.remove.iter().for_each(|name| fields.remove(name));
        let (set, add) = values.split_at(self.set.len().min(values.len()));
        for ((name, _), value) in self.set.iter().zip(set) {
            match value {
                Some(value) => fields.set(name, value),
                None => fields.remove(name),
            }
        }
        for ((name, _), value) in self.add.iter().zip(add) {
            if let Some(value) = value {
                fields.add(name, value);
            }
        }
    }

    /// Copies a request's head, edited, with another target where one is given.
    pub(crate) fn derive(&self, facts: &Facts<'_>, target: Option<&str>) -> Head {
        let from = facts.head;
        let mut head = Head::default();
        head.clear(from.kind(), from.version());
        head.set_method(from.method().clone());
        let path = head.push_text(target.unwrap_or_else(|| from.path_and_query()).as_bytes());
        head.set_path(path);
        if let Some(scheme) = from.scheme() {
            let scheme = head.push_text(scheme.as_bytes());
            head.set_scheme(scheme);
        }
        if let Some(authority) = from.authority() {
            let authority = head.push_text(authority.as_bytes());
            head.set_authority(authority);
        }
        if let Some(protocol) = from.protocol() {
            let protocol = head.push_text(protocol.as_bytes());
            head.set_protocol(protocol);
        }
        let goes = |name: &str| {
            self.remove.iter().chain(self.set.iter().map(|(name, _)| name)).any(|own| own == name)
        };
        for field in from.fields().filter(|field| !goes(field.name)) {
            head.append(field.name, field.value);
            if field.sensitive {
                head.mark_sensitive();
            }
        }
        let values = self.values(facts);
        for ((name, _), value) in self.set.iter().chain(&self.add).zip(values) {
            if let Some(value) = value {
                head.append(name.as_str(), value.as_bytes());
            }
        }
        head.set_wire_bytes(from.wire_bytes());
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::{facts, head};

    fn template(text: &str) -> Template {
        Template::parse(text, 0).unwrap()
    }

    #[test]
    fn fields_that_frame_messages_or_belong_to_connections_are_refused() {
        for name in [
            "Connection",
            "keep-alive",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "content-length",
            "http2-settings",
        ] {
            for direction in [Direction::Request, Direction::Response] {
                let told = check_name(name, direction).unwrap_err().to_string();
                assert!(told.contains("can't be edited: it "), "{name}: {told}");
            }
        }
        for name in ["host", "expect", "via", "forwarded", "x-forwarded-for", "X-Forwarded-Proto"] {
            assert!(check_name(name, Direction::Request).is_err(), "{name}");
        }
        assert!(check_name("date", Direction::Response).is_err());
        assert!(check_name("a b", Direction::Response).is_err());
        assert_eq!(check_name("X-A", Direction::Request).unwrap().as_str(), "x-a");
    }

    #[test]
    fn a_request_is_derived_with_another_target_and_other_fields() {
        let from = head(
            "PUT",
            "a:1",
            "/b?c",
            &[
                ("host", "a:1"),
                ("x-old", "1"),
                ("cookie", "secret"),
                ("x-set", "1"),
                ("x-set", "2"),
                ("upgrade", "websocket"),
            ],
        );
        let mut edits = Edits::default();
        edits.remove(HeaderName::from_static("x-old"));
        edits.set(HeaderName::from_static("x-set"), template("{client}"));
        edits.add(HeaderName::from_static("x-add"), template("{path}"));
        let to = edits.derive(&facts(&from), Some("/new"));
        assert_eq!((to.path_and_query(), to.authority()), ("/new", Some("a:1")));
        assert_eq!(to.method().as_str(), "PUT");
        let fields: Vec<(&str, &[u8])> = to.fields().map(|one| (one.name, one.value)).collect();
        let expected: [(&str, &[u8]); 5] = [
            ("host", b"a:1"),
            ("cookie", b"secret"),
            ("upgrade", b"websocket"),
            ("x-set", b"192.0.2.1"),
            ("x-add", b"/b"),
        ];
        assert_eq!(fields, expected);
    }
}

//! RFC 9110 §7.6.1, RFC 9113 §8.2.3: what of a message's head travels on through an intermediary.

use crate::{Field, FieldName, Head, HeadKind, is_hop_by_hop, names_in};

/// How many field lines an intermediary may add to a request without another allocation, and how much text, in bytes.
const ADDED_LINES_COUNT: usize = 5;
const ADDED_TEXT_BYTES: usize = 192;

impl Head {
    /// Becomes what an intermediary sends on of `from`: its start line and those of its fields that
    /// concern more than one connection and that `keeps` agrees to. Cookies become one line; values that
    /// must enter no compression table stay so.
    ///
    /// Fields that a `Connection` field names are left out too, but for `Content-Length`: what frames the
    /// message is not the sender's to take away.
    pub fn forward(&mut self, from: &Self, keeps: impl Fn(&Field<'_>) -> bool) {
        self.clear(from.kind(), from.version());
        self.set_method(from.method().clone());
        self.set_status(from.status());
        let (lines, text) = match from.kind() {
            HeadKind::Request => (ADDED_LINES_COUNT, ADDED_TEXT_BYTES),
            HeadKind::Response | HeadKind::Trailers => (0, 0),
        };
        self.reserve(from, lines, text);
        self.copy_target(from);
        let names_some = from.get(FieldName::Connection).is_some();
        let mut cookies_came = false;
        for field in from.fields() {
            if field.known.is_some_and(is_hop_by_hop)
                || (names_some && is_named(from, &field))
                || !keeps(&field)
            {
                continue;
            }
            if field.known == Some(FieldName::Cookie) {
                if !std::mem::replace(&mut cookies_came, true) {
                    self.forward_cookies(from);
                }
                continue;
            }
            match field.known {
                Some(name) => self.push_field(name, field.value),
                None => self.append(field.name, field.value),
            }
            if field.sensitive {
                self.mark_sensitive();
            }
        }
    }

    /// HTTP/2 may send cookies one by one; elsewhere they are one line.
    fn forward_cookies(&mut self, from: &Self) {
        let start = self.text_mut().len();
        let cookies = from.fields().filter(|field| field.known == Some(FieldName::Cookie));
        let mut sensitive = false;
        for cookie in cookies {
            if self.text_mut().len() > start {
                self.push_text(b"; ");
            }
            self.push_text(cookie.value);
            sensitive |= cookie.sensitive;
        }
        self.push_known(FieldName::Cookie, start);
        if sensitive {
            self.mark_sensitive();
        }
    }
}

/// Returns whether a `Connection` field names this field, so that it ends here.
#[cold]
fn is_named(head: &Head, field: &Field<'_>) -> bool {
    field.known != Some(FieldName::ContentLength)
        && head
            .get_all(FieldName::Connection)
            .flat_map(names_in)
            .any(|name| name.eq_ignore_ascii_case(field.name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use http::{Method, Version};

    use super::*;

    fn head(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_2);
        head.set_method(Method::PUT);
        let path = head.push_text(b"/a");
        head.set_path(path);
        let authority = head.push_text(b"b:1");
        head.set_authority(authority);
        for (name, value) in fields {
            head.append(name, value.as_bytes());
        }
        head
    }

    fn forwarded(from: &Head) -> Vec<(String, String)> {
        let mut to = head(&[("x-left", "over")]);
        to.forward(from, |_| true);
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        to.fields().map(|field| (field.name.to_owned(), text(field.value))).collect()
    }

    #[test]
    fn hop_by_hop_fields_end_at_the_hop() {
        let from = head(&[
            ("connection", "X-Own, content-length"),
            ("x-own", "1"),
            ("keep-alive", "1"),
            ("te", "gzip"),
            ("proxy-authorization", "secret"),
            ("upgrade", "h2c"),
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("x-kept", "2"),
        ]);
        let expected = [("content-length", "5"), ("x-kept", "2")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(forwarded(&from), expected);
    }

    #[test]
    fn the_target_travels_on() {
        let mut to = Head::default();
        to.forward(&head(&[("x-a", "1")]), |field| field.name != "x-a");
        assert_eq!(to.method(), Method::PUT);
        assert_eq!((to.path_and_query(), to.authority(), to.field_count()), ("/a", Some("b:1"), 0));
    }

    #[test]
    fn cookies_become_one_line_and_stay_secret() {
        let mut from = head(&[("cookie", "a=1"), ("x-a", "1"), ("cookie", "b=2")]);
        from.mark_sensitive();
        let mut to = Head::default();
        to.forward(&from, |_| true);
        assert_eq!(to.get(FieldName::Cookie), Some(&b"a=1; b=2"[..]));
        assert_eq!(to.field_count(), 2);
        assert!(to.fields().all(|field| field.sensitive == (field.name == "cookie")));
    }
}

//! An answer that is made once and given again and again.

use bolide_connection::OwnLines;
use bolide_semantics::{FieldName, FieldRef, has_no_body};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};

use crate::limits::COMMON_LINES_COUNT;
use crate::{Fields, Response};

/// A whole answer that many requests get, such as a file in memory: a handler keeps it and
/// [gives](crate::Reply::Prepared) it again at the price of a pointer.
///
/// ```
/// use std::rc::Rc;
///
/// use bolide_server::{Fields, HeaderName, HeaderValue, Prepared, Reply, Router, StatusCode};
///
/// let type_of = HeaderName::from_static("content-type");
/// let fields = Fields::new([(type_of, HeaderValue::from_static("text/plain"))]);
/// let hello = Rc::new(Prepared::new(StatusCode::OK, &fields, "Hello\n"));
/// let router = Router::new().get("/hello", move |_| Reply::Prepared(Rc::clone(&hello)));
/// assert!(router.check().is_ok());
/// ```
#[derive(Debug)]
pub struct Prepared {
    pub(crate) status: StatusCode,
    pub(crate) fields: Fields,
    pub(crate) body: Bytes,
    /// What HTTP/2 makes of the fields, where it can.
    pub(crate) parts: Option<Parts>,
}

/// A head in two parts.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The lines that other answers have, too.
    pub(crate) common: Fields,
    /// Those of this answer alone, among them its `Content-Length`.
    pub(crate) own: OwnLines,
}

impl Prepared {
    /// An answer with these fields and this body, which must be no slice of a request's body.
    #[must_use]
    pub fn new(status: StatusCode, fields: &Fields, body: impl Into<Bytes>) -> Self {
        Self::among(&mut CommonLines::default(), status, fields, body)
    }

    /// The same for one of many answers that have lines in common, such as the files of a folder: over HTTP/2, a
    /// connection that has sent one of them needs little for the others.
    #[must_use]
    pub fn among(
        others: &mut CommonLines,
        status: StatusCode,
        fields: &Fields,
        body: impl Into<Bytes>,
    ) -> Self {
        let body = body.into();
        let parts = Parts::new(others, status, fields, body.len());
        Self { status, fields: fields.clone(), body, parts }
    }

    /// The same as a response of its own.
    pub(crate) fn response(&self) -> Response {
        Response::new(self.status).with_fields(&self.fields).own_body(self.body.clone())
    }
}

impl Parts {
    fn new(
        others: &mut CommonLines,
        status: StatusCode,
        fields: &Fields,
        body_bytes: usize,
    ) -> Option<Self> {
        let (_, has_length) = fields.has_date_and_length();
        if has_length || has_no_body(&Method::GET, status) {
            return None;
        }
        let length = body_bytes.to_string();
        let length = FieldRef::known(FieldName::ContentLength, length.as_bytes());
        let own = fields.refs().filter(OwnLines::takes).chain([length]);
        let own = OwnLines::new(own)?;
        let common = fields.iter().zip(fields.refs()).filter(|(_, field)| !OwnLines::takes(field));
        let common = common.map(|((name, value), _)| (name.clone(), value.clone()));
        let common = others.of(common.collect());
        Some(Self { common, own })
    }
}

/// The field lines that [prepared](Prepared::among) answers have in common, each kind made once.
#[derive(Debug, Default)]
pub struct CommonLines(Vec<Fields>);

impl CommonLines {
    fn of(&mut self, lines: Vec<(HeaderName, HeaderValue)>) -> Fields {
        let is_same = |known: &&Fields| {
            let are_equal = known.iter().eq(lines.iter().map(|(name, value)| (name, value)));
            let secrets = lines.iter().map(|(_, value)| value.is_sensitive());
            are_equal && known.iter().map(|(_, value)| value.is_sensitive()).eq(secrets)
        };
        if let Some(known) = self.0.iter().find(is_same) {
            return known.clone();
        }
        let made = Fields::new(lines);
        if self.0.len() < COMMON_LINES_COUNT {
            self.0.push(made.clone());
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(others: &mut CommonLines, lines: &[(&'static str, &'static str)]) -> Prepared {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let fields = Fields::new(lines.iter().map(line));
        Prepared::among(others, StatusCode::OK, &fields, "body")
    }

    fn number(prepared: &Prepared) -> Option<std::num::NonZeroU32> {
        let date = bolide_semantics::Date::new(std::time::SystemTime::UNIX_EPOCH);
        let parts = prepared.parts.as_ref()?;
        Some(parts.common.known_head(StatusCode::OK, None, &date)?.name.lines)
    }

    #[test]
    fn answers_that_differ_in_their_own_lines_have_the_others_in_common() {
        let others = &mut CommonLines::default();
        let first = prepared(others, &[("content-type", "text/css"), ("etag", "\"1\"")]);
        let second = prepared(others, &[("content-type", "text/css"), ("etag", "\"2\"")]);
        let third = prepared(others, &[("content-type", "text/html"), ("etag", "\"2\"")]);
        assert!(number(&first).is_some());
        assert_eq!(number(&first), number(&second));
        assert_ne!(number(&first), number(&third));
        assert!(prepared(others, &[("content-length", "4")]).parts.is_none());
    }

    #[test]
    fn a_common_lines_flood_stays_within_its_bound() {
        let mut others = CommonLines::default();
        for number in 0..1000 {
            let value = HeaderValue::from_str(&format!("text/x-{number}")).unwrap();
            others.of(vec![(http::header::CONTENT_TYPE, value)]);
        }
        assert_eq!(others.0.len(), COMMON_LINES_COUNT);
    }
}

//! An answer that is made once and given again and again.

use bytes::Bytes;
use http::StatusCode;

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
}

impl Prepared {
    /// An answer with these fields and this body, which must be no slice of a request's body.
    #[must_use]
    pub fn new(status: StatusCode, fields: &Fields, body: impl Into<Bytes>) -> Self {
        Self { status, fields: fields.clone(), body: body.into() }
    }

    /// The same as a response of its own.
    pub(crate) fn response(&self) -> Response {
        Response::new(self.status).with_fields(&self.fields).own_body(self.body.clone())
    }
}

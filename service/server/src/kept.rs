//! RFC 9110 §3.4: what is kept of a request beyond its handler.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use bolide_semantics::{FieldName, Head};
use http::{Method, Version};

use crate::request::{parameter, split_query};
use crate::{Request, Responder, Waker};

/// A request's head and the facts of its connection, kept: what [`collect`](crate::collect) calls its function with, and
/// what another thread can have.
#[derive(Debug, Clone)]
pub struct KeptRequest {
    head: Head,
    parameters: Vec<(Box<str>, Box<str>)>,
    peer: Option<SocketAddr>,
    client: Option<IpAddr>,
    is_secure: bool,
    waker: Waker,
}

impl Request<'_> {
    /// A copy of the head, and of what is known of the connection, for later or for another thread.
    #[must_use]
    pub fn keep(&self) -> KeptRequest {
        let parameters = self.parameters.into_iter().flat_map(|all| all.iter());
        let decoded = |name: &str| self.param(name).unwrap_or_default().into();
        KeptRequest {
            head: self.head.clone(),
            parameters: parameters.map(|(name, _)| (name.into(), decoded(name))).collect(),
            peer: self.peer(),
            client: self.client(),
            is_secure: self.scheme() == "https",
            waker: self.waker(),
        }
    }
}

impl KeptRequest {
    /// The memory that it takes beyond its own size, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let of_one = |(name, value): &(Box<str>, Box<str>)| {
            size_of::<(Box<str>, Box<str>)>() + name.len() + value.len()
        };
        self.head.allocated_bytes() + self.parameters.iter().map(of_one).sum::<usize>()
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        self.head.method()
    }

    /// The path as sent, undecoded, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        split_query(self.head.path_and_query()).0
    }

    /// The query as sent, without the `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        split_query(self.head.path_and_query()).1
    }

    /// The first value of a query parameter, decoded.
    #[must_use]
    pub fn query_param(&self, name: &str) -> Option<Cow<'_, str>> {
        parameter(self.query()?, name)
    }

    /// The part of the path that stands for `{name}` in the route, decoded. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(own, _)| &**own == name);
        found.map(|(_, value)| &**value)
    }

    /// The value of the first field with this name (in lower case), if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = match FieldName::lookup(name.as_bytes()) {
            Some(known) => self.head.get(known),
            None => self.head.get_named(name),
        };
        value.and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The head as it was received.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// As [`Request::version`].
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version()
    }

    /// As [`Request::peer`].
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// As [`Request::client`].
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.client
    }

    /// As [`Request::scheme`].
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }

    /// As [`Request::responder`]: return [`Reply::Later`](crate::Reply::Later).
    #[must_use]
    pub fn responder(&self) -> Responder {
        Responder::new(self.waker.clone())
    }

    /// As [`Request::waker`].
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

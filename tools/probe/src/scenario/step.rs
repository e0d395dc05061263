//! One step of a user: what is sent, and what is read from the response.

use http::{HeaderName, StatusCode};

use super::{Capture, Place, Think};
use crate::engine::template::{Content, Template};

/// Plan that makes a request a step of a scenario.
#[derive(Debug, Clone)]
pub struct StepPlan {
    /// Name in reports.
    pub name: String,
    /// Path and query.
    pub target: Template,
    /// Besides those of the request, which are the same for every user.
    pub fields: Vec<(HeaderName, Template)>,
    /// The body, in order.
    pub content: Vec<Content>,
    /// The pause after it.
    pub think: Think,
    /// Values that are taken from the response.
    pub captures: Vec<Capture>,
    /// Text that the body must contain.
    pub contains: Option<Box<str>>,
    /// Redirects that are followed.
    pub redirects: u8,
    /// Statuses that are right; empty: those of the run.
    pub statuses: Vec<StatusCode>,
}

impl StepPlan {
    /// A step without content and pause that takes nothing from its response and follows no redirect.
    pub fn new(name: String, target: Template) -> Self {
        Self {
            name,
            target,
            fields: Vec::new(),
            content: Vec::new(),
            think: Think::Never,
            captures: Vec::new(),
            contains: None,
            redirects: 0,
            statuses: Vec::new(),
        }
    }

    /// Returns whether the body is looked into.
    pub fn reads_body(&self) -> bool {
        self.contains.is_some() || self.captures.iter().any(|capture| capture.place.is_in_body())
    }

    /// Returns whether the head is looked into for more than cookies.
    pub fn field_captures(&self) -> impl Iterator<Item = &Capture> {
        self.captures.iter().filter(|capture| matches!(capture.place, Place::Field(_)))
    }

    /// Every template that it has.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let content = self.content.iter().filter_map(|part| match part {
            Content::Text(template) => Some(template),
            Content::Bytes(_) => None,
        });
        std::iter::once(&self.target)
            .chain(self.fields.iter().map(|(_, template)| template))
            .chain(content)
    }
}

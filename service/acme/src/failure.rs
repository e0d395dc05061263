//! Why there is no certificate.

use std::time::Duration;

use instant_acme::{Error, Problem};

use crate::limits::FAILURE_LETTERS_COUNT;

/// Prefix of the problems of RFC 8555 §6.7.
const PROBLEM: &str = "urn:ietf:params:acme:error:";

/// Why there is no certificate.
#[derive(Debug)]
pub(crate) struct Failure {
    /// In words, in one line.
    pub(crate) what: String,
    /// The problem's name (RFC 8555 §6.7), if the CA has named one.
    problem: Option<String>,
    /// For how long the CA asks to wait.
    pub(crate) wait: Option<Duration>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: one_line(&what.into()), problem: None, wait: None }
    }

    pub(crate) fn of_problem(problem: &Problem) -> Self {
        let named = problem.r#type.as_deref().unwrap_or("about:blank");
        let named = named.strip_prefix(PROBLEM).unwrap_or(named).to_owned();
        let mut what = format!("the CA reports {named}");
        for detail in problem
            .detail
            .iter()
            .chain(problem.subproblems.iter().filter_map(|one| one.detail.as_ref()))
        {
            what.push_str(": ");
            what.push_str(detail);
        }
        Self { problem: Some(named), ..Self::new(what) }
    }

    /// Returns whether the CA has named this problem.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.problem.as_deref() == Some(name)
    }

    /// The same with what failed in front.
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.what = one_line(&format!("{what}: {}", self.what));
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => Self::of_problem(&problem),
            Error::Json(error) => {
                Self::new(format!("the response of the CA can't be read: {error}"))
            }
            error => Self::new(error.to_string()),
        }
    }
}

/// A text of a CA as part of a line: without control characters, and not too long.
fn one_line(text: &str) -> String {
    let text: Vec<&str> = text.split(|letter: char| letter.is_control()).collect();
    let text = text.join(" ");
    match text.char_indices().nth(FAILURE_LETTERS_COUNT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

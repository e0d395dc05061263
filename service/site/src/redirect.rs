//! RFC 9110 §15.4: redirects to where a template says.

use bolide_server::{Handler, Reply, Request, Response, StatusCode};

use crate::error::SiteError;
use crate::facts::Facts;
use crate::rewrite::Pattern;
use crate::template::Template;

/// A redirect.
#[derive(Debug, Clone)]
pub struct Redirect {
    to: Template,
    status: StatusCode,
    /// Path: what stands below it is asked for below the target.
    below: Option<Box<str>>,
    pattern: Option<Pattern>,
}

impl Redirect {
    /// A redirect to a URL or a path. `path`: that of the route; where both end with a slash and the target has no
    /// placeholder, the rest of the path and the query are appended.
    ///
    /// # Errors
    ///
    /// It is neither a URL nor a path.
    pub fn new(to: Template, path: &str, status: StatusCode) -> Result<Self, SiteError> {
        let beginning = to.beginning();
        let is_path = beginning.starts_with('/') && !beginning.starts_with("//");
        let is_url = beginning.contains("://") || to.begins_with("scheme");
        if !is_path && !is_url && !to.begins_with("path") {
            let what = "give a URL such as https://example.org/, or a path";
            return Err(SiteError::new(what));
        }
        if beginning.contains([' ', '\t']) {
            return Err(SiteError::new("a URL has no spaces: write %20"));
        }
        let appends = to.fixed().is_some_and(|to| to.ends_with('/')) && path.ends_with('/');
        Ok(Self { to, status, below: appends.then(|| path.into()), pattern: None })
    }

    /// The same with the captures of a pattern, which the route's condition has matched.
    #[must_use]
    pub fn captured(mut self, pattern: Pattern) -> Self {
        self.pattern = Some(pattern);
        self
    }

    /// The target for a request. `None`: it has none, for it names no host, or is too long.
    #[must_use]
    pub fn location(&self, facts: &Facts<'_>) -> Option<String> {
        if self.to.has_host() && facts.host().is_empty() {
            return None;
        }
        let captures = self.pattern.as_ref().and_then(|pattern| pattern.of(facts.path()));
        let mut to = self.to.expand(facts, &captures.unwrap_or_default())?;
        if let Some(below) = &self.below {
            let rest = facts.path().strip_prefix(&**below).unwrap_or_default();
            // A slash more would make another path, or name another host.
            to.push_str(rest.trim_start_matches('/'));
            to.push_str(facts.query());
        }
        // Two slashes at the beginning name another host, and browsers read backslashes as slashes.
        let rest = to.trim_start_matches(['/', '\\']);
        if to.starts_with('/') && to.len() - rest.len() > 1 {
            to = format!("/{rest}");
        }
        (!to.is_empty() && !to.contains([' ', '\t'])).then_some(to)
    }

    /// Host and path of the target, where it is the same URL for every request.
    #[must_use]
    pub fn fixed_target(&self) -> Option<(String, String)> {
        let (_, rest) = self.to.fixed()?.split_once("://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Some((host.to_owned(), if path.is_empty() { "/".to_owned() } else { path.to_owned() }))
    }

    /// Path and query of the next request of a client that follows, where it has the scheme and the host of this one.
    #[must_use]
    pub fn next(&self, facts: &Facts<'_>) -> Option<String> {
        let to = self.location(facts)?;
        let to = to.split('#').next()?;
        let origin = format!("{}://{}", facts.scheme(), facts.host());
        let path = to.strip_prefix(&origin).unwrap_or(to);
        if path.is_empty() {
            return Some("/".to_owned());
        }
        path.starts_with('/').then(|| path.to_owned())
    }
}

impl Handler for Redirect {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        match self.location(&Facts::of(request)) {
            Some(to) => Response::error(self.status).header("location", to).into(),
            None => Response::error(StatusCode::BAD_REQUEST).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::{facts, head};

    fn redirect(to: &str, path: &str) -> Result<Redirect, SiteError> {
        Redirect::new(Template::parse(to, 1)?, path, StatusCode::PERMANENT_REDIRECT)
    }

    fn location(to: &str, path: &str, target: &str) -> Option<String> {
        let head = head("GET", "a.example:80", target, &[]);
        redirect(to, path).unwrap().location(&facts(&head))
    }

    #[test]
    fn a_redirect_names_parts_of_the_request_or_appends_the_rest() {
        for (to, path, target, expected) in [
            ("https://{host}{path}{query}", "/", "/b?c", "https://a.example/b?c"),
            ("{scheme}://www.{host}/", "/", "/b?c", "https://www.a.example/"),
            ("https://b.example/new/", "/old/", "/old/x?c", "https://b.example/new/x?c"),
            ("/new/", "/old/", "/old//b.example/", "/new/b.example/"),
            ("/new", "/old/", "/old/x?c", "/new"),
            ("{path}/{query}", "/a", "/a?c", "/a/?c"),
        ] {
            assert_eq!(location(to, path, target).as_deref(), Some(expected), "{to}");
        }
    }

    #[test]
    fn a_redirect_to_a_path_never_names_another_host() {
        for target in ["//evil.example/", "/\\evil.example/", "///evil.example"] {
            let to = location("{path}", "/", target).unwrap();
            assert!(to.starts_with("/evil.example"), "{to}");
        }
        let pattern = Pattern::new("^/go(.*)$").unwrap();
        let go = redirect("/{1}", "/go/").unwrap().captured(pattern);
        let head = head("GET", "a", "/go//evil.example", &[]);
        assert_eq!(go.location(&facts(&head)).as_deref(), Some("/evil.example"));
    }

    #[test]
    fn a_redirect_by_host_needs_one() {
        let head = head("GET", "", "/", &[]);
        let to = redirect("https://{host}/", "/").unwrap();
        assert_eq!(to.location(&facts(&head)), None);
    }

    #[test]
    fn the_next_request_of_a_client_that_follows() {
        let head = head("GET", "a.example", "/b?c", &[]);
        for (to, next) in [
            ("https://{host}{path}{query}", Some("/b?c")),
            ("{path}{query}", Some("/b?c")),
            ("{path}#d", Some("/b")),
            ("http://{host}{path}{query}", None),
            ("https://b.example/b?c", None),
            ("https://a.example.org/", None),
            ("https://a.example", Some("/")),
        ] {
            assert_eq!(redirect(to, "/").unwrap().next(&facts(&head)).as_deref(), next, "{to}");
        }
    }

    #[test]
    fn what_is_no_target_is_named() {
        for to in ["x", "//evil.example", "{host}/", "{1}", ""] {
            assert!(redirect(to, "/").is_err(), "{to}");
        }
    }
}

//! RFC 9112 §3.2.1: another target in place of the client's.

use bolide_semantics::{has_dot_segment, is_valid_target};
use regex_lite::Regex;

use crate::error::SiteError;
use crate::facts::Facts;
use crate::limits::{EXPANDED_BYTES, PATTERN_BYTES};
use crate::template::Template;

/// A regular expression for paths. It takes linear time.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

/// The most captures that a template can name, and the whole match.
const CAPTURES_COUNT: usize = 10;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// It is no regular expression, is longer than [`PATTERN_BYTES`], or has more than nine captures.
    pub fn new(text: &str) -> Result<Self, SiteError> {
        if text.len() > PATTERN_BYTES {
            return Err(SiteError::new(format!("a pattern has at most {PATTERN_BYTES} bytes")));
        }
        let regex = Regex::new(text).map_err(|error| {
            let what = error.to_string();
            SiteError::new(format!("invalid pattern: {}", what.lines().last().unwrap_or_default()))
        })?;
        if regex.captures_len() > CAPTURES_COUNT {
            return Err(SiteError::new("a pattern has at most nine captures"));
        }
        Ok(Self(regex))
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// How many captures it has.
    #[must_use]
    pub fn captures(&self) -> usize {
        self.0.captures_len() - 1
    }

    /// The whole match and the captures of a path, or nothing.
    pub(crate) fn of<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        let captures = self.0.captures(path)?;
        Some(captures.iter().map(|one| one.map_or("", |one| one.as_str())).collect())
    }
}

/// Rewriting of a target: first `strip`, then the pattern, then `add`.
#[derive(Debug, Clone, Default)]
pub struct Rewrite {
    strip: Option<Box<str>>,
    pattern: Option<(Pattern, Template)>,
    add: Option<Box<str>>,
}

/// The request has no target that it could be rewritten to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTarget;

impl Rewrite {
    /// The same that takes a prefix away: a path, whose slash at the end does not matter.
    ///
    /// # Errors
    ///
    /// It is no path, or `/`.
    pub fn strip_prefix(mut self, prefix: &str) -> Result<Self, SiteError> {
        self.strip = Some(self::prefix(prefix)?);
        Ok(self)
    }

    /// The same that puts a prefix before the path.
    ///
    /// # Errors
    ///
    /// It is no path, or `/`.
    pub fn add_prefix(mut self, prefix: &str) -> Result<Self, SiteError> {
        self.add = Some(self::prefix(prefix)?);
        Ok(self)
    }

    /// The same that makes of paths which the pattern matches what the template says. The query stays, unless the
    /// template says it.
    ///
    /// # Errors
    ///
    /// What the template begins with can't be the beginning of a path.
    pub fn replace(mut self, pattern: Pattern, to: Template) -> Result<Self, SiteError> {
        if !to.beginning().starts_with('/') && !to.begins_with("path") {
            return Err(SiteError::new("a path begins with a slash"));
        }
        if to.beginning().contains([' ', '\t', '#']) {
            return Err(SiteError::new("a path has no spaces and no fragment"));
        }
        self.pattern = Some((pattern, to));
        Ok(self)
    }

    /// Returns whether nothing is rewritten.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strip.is_none() && self.pattern.is_none() && self.add.is_none()
    }

    /// The new target. `None`: it stays as it is.
    ///
    /// # Errors
    ///
    /// What comes out is no target, is longer than [`EXPANDED_BYTES`], or has a dot segment that was not sent.
    pub fn target(&self, facts: &Facts<'_>) -> Result<Option<String>, NoTarget> {
        let (sent, query) = (facts.path(), facts.query());
        // The server as a whole, and CONNECT, have no path.
        if self.is_empty() || !sent.starts_with('/') {
            return Ok(None);
        }
        let stripped = self.strip.as_deref().and_then(|prefix| {
            let rest = sent.strip_prefix(prefix)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        });
        let mut path = match stripped {
            Some("") => "/",
            Some(rest) => rest,
            None => sent,
        };
        let mut replaced = None;
        if let Some((pattern, to)) = &self.pattern
            && let Some(captures) = pattern.of(path)
        {
            let text = to.expand(facts, &captures).ok_or(NoTarget)?;
            replaced = Some((text, to.has_query()));
        }
        let mut keeps_query = true;
        if let Some((text, has_query)) = &replaced {
            (path, keeps_query) = (text, !has_query);
        }
        let add = self.add.as_deref().unwrap_or_default();
        let target = [add, path, if keeps_query { query } else { "" }].concat();
        let new = target.split('?').next().unwrap_or_default();
        // Routes and conditions have seen the path that was sent: none may come out that leads elsewhere.
        let leads_elsewhere = has_dot_segment(new.as_bytes()) && !has_dot_segment(sent.as_bytes());
        let is_target = target.starts_with('/')
            && target.len() <= EXPANDED_BYTES.max(facts.head.path_and_query().len())
            && is_valid_target(target.as_bytes())
            && !target.contains('#');
        if is_target && !leads_elsewhere { Ok(Some(target)) } else { Err(NoTarget) }
    }
}

/// A prefix without its slash at the end.
fn prefix(text: &str) -> Result<Box<str>, SiteError> {
    let bare = text.strip_suffix('/').unwrap_or(text);
    if !text.starts_with('/') {
        return Err(SiteError::new("a prefix begins with a slash"));
    }
    if bare.is_empty()
        || text.contains(['?', '#', '{', '}', '*'])
        || !is_valid_target(text.as_bytes())
    {
        return Err(SiteError::new("give a path such as /api"));
    }
    if has_dot_segment(text.as_bytes()) {
        return Err(SiteError::new("a prefix has no dot segments"));
    }
    Ok(bare.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::{facts, head};
    use proptest::prelude::*;

    fn rewritten(rewrite: &Rewrite, target: &str) -> Result<Option<String>, NoTarget> {
        rewrite.target(&facts(&head("GET", "a", target, &[])))
    }

    fn replacing(from: &str, to: &str) -> Rewrite {
        let pattern = Pattern::new(from).unwrap();
        let to = Template::parse(to, pattern.captures()).unwrap();
        Rewrite::default().replace(pattern, to).unwrap()
    }

    #[test]
    fn a_prefix_is_taken_away_at_a_slash_and_another_put_before() {
        let strip = Rewrite::default().strip_prefix("/api/").unwrap();
        let both = strip.clone().add_prefix("/v2").unwrap();
        for (target, stripped, moved) in [
            ("/api/users?a=/api", "/users?a=/api", "/v2/users?a=/api"),
            ("/api", "/", "/v2/"),
            ("/api/", "/", "/v2/"),
            ("/api?a", "/?a", "/v2/?a"),
            ("/apis", "/apis", "/v2/apis"),
            ("/other", "/other", "/v2/other"),
        ] {
            assert_eq!(rewritten(&strip, target), Ok(Some(stripped.to_owned())), "{target}");
            assert_eq!(rewritten(&both, target), Ok(Some(moved.to_owned())), "{target}");
        }
        assert_eq!(rewritten(&both, "*"), Ok(None));
    }

    #[test]
    fn a_pattern_has_captures_and_the_query_stays() {
        for (from, to, target, new) in [
            ("^/old/(.*)$", "/new/{1}", "/old/a/b?c", "/new/a/b?c"),
            ("^/old/(.*)$", "/new/{1}", "/other?c", "/other?c"),
            ("^/p/([0-9]+)$", "/page?id={1}", "/p/7?c", "/page?id=7"),
            ("^/p/([0-9]+)$", "/page?id={1}", "/p/x?c", "/p/x?c"),
            ("^/(a)?/(b)", "/{2}{1}", "//b", "/b"),
            ("", "{path}/x{query}", "/a?b", "/a/x?b"),
        ] {
            assert_eq!(rewritten(&replacing(from, to), target), Ok(Some(new.to_owned())), "{from}");
        }
    }

    #[test]
    fn dot_segments_and_invalid_targets_do_not_come_out() {
        let cut = replacing("^/x(.*)$", "/{1}");
        for target in ["/x../secret", "/x%2e%2e/secret", "/x..%2fsecret"] {
            assert_eq!(rewritten(&cut, target), Err(NoTarget), "{target}");
        }
        // What was sent so was seen so by those who chose the route.
        assert_eq!(rewritten(&cut, "/x/../a"), Ok(Some("//../a".to_owned())));
        let long = replacing("^/(.*)$", "/{1}{1}{1}{1}{1}{1}{1}{1}{1}");
        assert_eq!(rewritten(&long, &format!("/{}", "a".repeat(2000))), Err(NoTarget));
    }

    #[test]
    fn what_is_no_rewriting_is_named() {
        for (text, said) in [
            ("api", "a prefix begins with a slash"),
            ("/", "give a path such as /api"),
            ("/a/*", "give a path such as /api"),
            ("/a b", "give a path such as /api"),
            ("/a/../b", "a prefix has no dot segments"),
        ] {
            assert_eq!(
                Rewrite::default().strip_prefix(text).unwrap_err().to_string(),
                said,
                "{text}"
            );
        }
        let pattern = |text: &str| Pattern::new(text).unwrap_err().to_string();
        assert!(pattern("(").starts_with("invalid pattern: "), "{}", pattern("("));
        assert_eq!(pattern(&"()".repeat(10)), "a pattern has at most nine captures");
        assert_eq!(pattern(&"a".repeat(PATTERN_BYTES + 1)), "a pattern has at most 1024 bytes");
        assert!(pattern("a{1000}{1000}{1000}").starts_with("invalid pattern: "));
        let to = Template::parse("new", 0).unwrap();
        let refused = Rewrite::default().replace(Pattern::new("a").unwrap(), to).unwrap_err();
        assert_eq!(refused.to_string(), "a path begins with a slash");
    }

    proptest! {
        #[test]
        fn rewriting_and_matching_see_the_same_path(
            target in "/([a-c.]|/|%61|\\?){0,12}",
            from in "\\^?/?([a-c]|\\(\\.\\*\\)|%61|/){0,4}\\$?",
        ) {
            let Ok(pattern) = Pattern::new(&from) else { return Ok(()) };
            let (target, head) = (target.clone(), head("GET", "a", &target, &[]));
            let to = Template::parse("/new", pattern.captures()).unwrap();
            let rewrite = Rewrite::default().replace(pattern.clone(), to).unwrap();
            let conditions =
                crate::Conditions { pattern: Some(pattern), ..crate::Conditions::default() };
            let new = rewrite.target(&facts(&head)).unwrap().unwrap();
            prop_assert_eq!(conditions.hold(&facts(&head)), new.starts_with("/new"), "{}", target);
        }

        #[test]
        fn what_comes_out_is_a_target_below_the_same_root(
            target in "/([!-~]|\\.|/|%2e|\\?){0,20}",
            from in "\\^/([a-z.]|\\(\\.\\*\\)|/){0,6}",
            to in "/([ -~]|\\{1\\}|\\.\\.|/){0,6}",
        ) {
            let Ok(pattern) = Pattern::new(&from) else { return Ok(()) };
            let Ok(to) = Template::parse(&to, pattern.captures()) else { return Ok(()) };
            let Ok(rewrite) = Rewrite::default().strip_prefix("/a").unwrap().replace(pattern, to) else { return Ok(()) };
            if let Ok(Some(new)) = rewritten(&rewrite, &target) {
                prop_assert!(new.starts_with('/') && is_valid_target(new.as_bytes()), "{new}");
                let path = |target: &str| target.split('?').next().unwrap().as_bytes().to_vec();
                prop_assert!(!has_dot_segment(&path(&new)) || has_dot_segment(&path(&target)), "{new}");
            }
        }
    }
}

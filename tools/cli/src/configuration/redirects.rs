//! Redirects that lead to themselves: a client that follows one never arrives.

use std::iter::{Peekable, once};
use std::str::Chars;

use bolide::http::Method;
use bolide::server::Head;
use bolide_site::{Conditions, Facts, Redirect, Test};

use super::route::Placed;
use crate::routes::Route;

/// A host that no route names.
const SOME_HOST: &str = "host.invalid";

/// A target that the same route redirects again so often is never reached.
const HOPS_COUNT: usize = 8;

/// How many paths are made of a pattern. They differ in its alternatives, and in what may be left out.
const SAMPLES_COUNT: usize = 16;

/// Says which requests of a route go in circles, if any do. `schemes`: those by which they may come, whether they are TLS.
pub(super) fn circle(
    one: &Placed,
    redirect: &Redirect,
    placed: &[Placed],
    schemes: &[bool],
) -> Option<String> {
    let samples = samples(one, redirect, placed);
    let mut all = samples.iter().flat_map(|sample| schemes.iter().map(move |tls| (sample, *tls)));
    all.find_map(|((host, path), is_secure)| follow(one, redirect, placed, host, path, is_secure))
}

/// Goes where a redirect leads, as a client does.
fn follow(
    one: &Placed,
    redirect: &Redirect,
    placed: &[Placed],
    host: &str,
    path: &str,
    is_secure: bool,
) -> Option<String> {
    let conditions = &one.route.site.conditions;
    let (pattern, query) = (conditions.pattern.clone(), conditions.query.clone());
    let only = Conditions { pattern, query, ..Conditions::default() };
    let mut at = path.to_owned();
    for hop in 0..HOPS_COUNT {
        let head = head(host, &at);
        let facts = Facts { head: &head, client: None, accepted: None, is_secure, user: None };
        if !only.hold(&facts) {
            return None;
        }
        let next = redirect.next(&facts)?;
        if next == at && hop == 0 {
            return Some(onto_itself(one, host, is_secure));
        }
        if next == at {
            break;
        }
        if !is_taken_again(one, placed, &next) {
            return None;
        }
        at = next;
    }
    let head = head(host, path);
    let facts = Facts { head: &head, client: None, accepted: None, is_secure, user: None };
    let next = redirect.next(&facts)?;
    let advice = "narrow its `path`, or give the target a route of its own";
    Some(format!("this route redirects `{path}` to `{next}`, which it redirects again: {advice}"))
}

fn onto_itself(one: &Placed, host: &str, is_secure: bool) -> String {
    let scheme = if is_secure { "https" } else { "http" };
    let other = if is_secure { "http" } else { "https" };
    let host = if host == SOME_HOST { "any host" } else { host };
    let advice = match one.route.site.conditions.scheme {
        None => format!("add `scheme = \"{other}\"` if it is for {other} alone"),
        Some(_) => "name another host or path".to_owned(),
    };
    format!("this route redirects {scheme} requests for {host} to themselves: {advice}")
}

/// Returns whether a route takes the requests for a path on its host; no, if another one might.
fn is_taken_again(one: &Placed, placed: &[Placed], target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    let takes = |route: &Route| {
        path == route.path || (route.path.ends_with('/') && path.starts_with(&route.path))
    };
    let may_take = |other: &&Placed| {
        let is_narrow = other.route.path.len() >= one.route.path.len();
        !std::ptr::eq(*other, one)
            && (other.route.path.contains('{') || (is_narrow && takes(&other.route)))
    };
    takes(&one.route) && !placed.iter().any(|other| may_take(&other))
}

fn head(host: &str, path: &str) -> Head {
    let mut head = Head::default();
    head.set_method(Method::GET);
    let path = head.push_text(path.as_bytes());
    head.set_path(path);
    let host = head.push_text(host.as_bytes());
    head.set_authority(host);
    head
}

/// Hosts and paths of requests that a redirect would get.
fn samples(one: &Placed, redirect: &Redirect, placed: &[Placed]) -> Vec<(String, String)> {
    let mut hosts: Vec<String> =
        one.route.hosts.iter().map(|host| host.replacen('*', "sample", 1)).collect();
    let fixed = redirect.fixed_target();
    if hosts.is_empty() {
        hosts.push(SOME_HOST.to_owned());
        // A host with routes of its own gets here only for what these leave.
        let has_routes = |host: &str| {
            let names = |other: &Placed| other.route.hosts.iter().any(|own| own == host);
            placed.iter().any(names)
        };
        hosts.extend(fixed.iter().map(|(host, _)| host.clone()).filter(|host| !has_routes(host)));
    }
    let path = &filled_in(&one.route.path);
    let mut paths = vec![path.clone()];
    if let Some(pattern) = &one.route.site.conditions.pattern {
        paths.extend((0..SAMPLES_COUNT).map(|number| matched(pattern.as_str(), number)));
    }
    if path.ends_with('/') {
        paths.push(format!("{path}sample"));
        paths.extend(
            fixed.into_iter().map(|(_, path)| path).filter(|own| own.starts_with(path.as_str())),
        );
    }
    let query = query(&one.route.site.conditions);
    let with_query = |path: &String| format!("{path}{query}");
    let each = |host: &String| paths.iter().map(|path| (host.clone(), with_query(path))).collect();
    hosts.iter().flat_map(|host| -> Vec<_> { each(host) }).collect()
}

/// A query for which the conditions hold, if their values are plain words.
fn query(conditions: &Conditions) -> String {
    let pairs = conditions.query.iter().filter_map(|(name, test)| match test {
        Test::Present => Some(name.clone()),
        Test::Exact(value) | Test::Prefix(value) => Some(format!("{name}={value}")),
        Test::Absent => None,
    });
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// A path that a route with parameters takes.
fn filled_in(path: &str) -> String {
    let mut rest = path;
    let mut filled = String::new();
    while let Some((before, parameter)) = rest.split_once('{') {
        filled += before;
        filled += "sample";
        rest = parameter.split_once('}').map_or("", |(_, after)| after);
    }
    filled + rest
}

/// A path that a pattern matches, as far as this reads patterns: whether it does has to be seen. Each `number` makes other
/// choices.
fn matched(pattern: &str, number: usize) -> String {
    let sampler = Sampler {
        rest: pattern.chars().peekable(),
        alternative: number / 2,
        leaves_out: number % 2 == 1,
    };
    let text = { sampler }.alternatives();
    if text.starts_with('/') { text } else { format!("/{text}") }
}

/// Reads a regular expression and makes a text of it.
struct Sampler<'p> {
    rest: Peekable<Chars<'p>>,
    /// Which of several.
    alternative: usize,
    /// True if what may be missing is.
    leaves_out: bool,
}

impl Sampler<'_> {
    fn alternatives(&mut self) -> String {
        let mut all = vec![self.sequence()];
        while self.rest.next_if_eq(&'|').is_some() {
            all.push(self.sequence());
        }
        all.swap_remove(self.alternative % all.len())
    }

    fn sequence(&mut self) -> String {
        let mut text = String::new();
        while let Some(first) = self.rest.next_if(|next| !matches!(next, '|' | ')')) {
            let piece = self.piece(first);
            text += &piece.repeat(self.times());
        }
        text
    }

    fn piece(&mut self, first: char) -> String {
        match first {
            '^' | '$' => String::new(),
            '.' => "s".to_owned(),
            '[' => self.class().to_string(),
            '(' => {
                // `(?:`, `(?<name>` and `(?P<name>`.
                if self.rest.next_if_eq(&'?').is_some() {
                    let _ = self.rest.by_ref().find(|next| matches!(next, ':' | '>'));
                }
                let text = self.alternatives();
                let _ = self.rest.next_if_eq(&')');
                text
            }
            '\\' => match self.rest.next() {
                Some('d') => "1".to_owned(),
                Some('w' | 'D' | 'S') => "s".to_owned(),
                Some('s' | 'W') => "-".to_owned(),
                Some('b' | 'B' | 'A' | 'z') | None => String::new(),
                Some(other) => other.to_string(),
            },
            other => other.to_string(),
        }
    }

    /// One of a class of characters.
    fn class(&mut self) -> char {
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let mut ranges = Vec::new();
        while let Some(next) = self.rest.next().filter(|next| *next != ']' || ranges.is_empty()) {
            let first = if next == '\\' { self.rest.next().unwrap_or(next) } else { next };
            let mut last = first;
            if self.rest.next_if_eq(&'-').is_some() {
                match self.rest.next_if(|next| *next != ']') {
                    Some(end) => last = end,
                    None => ranges.push('-'..='-'),
                }
            }
            ranges.push(match (next, first) {
                ('\\', 'd') => '0'..='9',
                ('\\', 'w') => 'a'..='z',
                _ => first..=last,
            });
        }
        let is_in = |one: char| ranges.iter().any(|range| range.contains(&one));
        let all = once('s').chain('a'..='z').chain('0'..='9').chain("-_./".chars());
        let first = ranges.first().map_or('s', |range| *range.start());
        all.into_iter().find(|one| is_in(*one) != is_negated).unwrap_or(first)
    }

    /// How often the piece before is repeated.
    fn times(&mut self) -> usize {
        let least = match self.rest.peek() {
            Some('*' | '?') => 0,
            Some('+') => 1,
            Some('{') => {
                self.rest.next();
                let count = |next: &char| next.is_ascii_digit();
                let digits: String = std::iter::from_fn(|| self.rest.next_if(count)).collect();
                let _ = self.rest.by_ref().find(|next| *next == '}');
                let _ = self.rest.next_if_eq(&'?');
                let least = digits.parse().unwrap_or(0).min(100);
                return if self.leaves_out { least } else { least.max(1) };
            }
            _ => return 1,
        };
        self.rest.next();
        // As few as possible, or as many: the same texts match.
        let _ = self.rest.next_if_eq(&'?');
        if self.leaves_out { least } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use bolide_site::Pattern;

    use super::*;

    #[test]
    fn paths_are_made_that_a_pattern_matches() {
        for (text, first) in [
            ("^/old/(.*)$", "/old/s"),
            ("^/(?:blog|news)/([0-9]{4})/([a-z-]+)\\.html$", "/blog/0000/s.html"),
            ("/(?P<year>\\d{4})-(?<rest>[^/]+)", "/1111-s"),
            ("^/a(/b)?(?:/|/index\\.(php|html?))$", "/a/b/"),
            ("^/[\\w-]+/[]x]+/.+?$", "/s/x/s"),
            ("(jpe?g|png)$", "/jpeg"),
        ] {
            let pattern = Some(Pattern::new(text).unwrap());
            let conditions = Conditions { pattern, ..Conditions::default() };
            assert_eq!(matched(text, 0), first, "{text}");
            for number in 0..SAMPLES_COUNT {
                let path = matched(text, number);
                let head = head("a", &path);
                let (client, accepted, user) = (None, None, None);
                let facts = Facts { head: &head, client, accepted, is_secure: false, user };
                assert!(conditions.hold(&facts), "{text}: {path}");
            }
        }
        let all = |text| -> Vec<String> { (0..8).map(|number| matched(text, number)).collect() };
        assert!(all("^/(old|new)/$").contains(&"/new/".to_owned()));
        assert!(all("^/a(/b)?$").contains(&"/a".to_owned()));
    }

    #[test]
    fn a_pattern_that_is_none_makes_some_text() {
        for text in ["[", "(", "\\", "{", "a{", "[^", "(?", ")|(", "[]", "a{99999999999}"] {
            let _ = matched(text, 0);
        }
    }
}

//! RFC 6265: the cookies of one user.

use std::net::IpAddr;

use cookie::{Cookie, Expiration};
use time::OffsetDateTime;

/// Most cookies of a user; the oldest gives way.
const COOKIES_COUNT: usize = 50;

/// The longest cookie that is kept, with its path, in bytes (RFC 6265 §6.1).
const COOKIE_BYTES: usize = 4096;

/// Most that the cookies of a user have together, in bytes; the oldest give way.
const JAR_BYTES: usize = 16 * 1024;

/// Cookies that servers have asked a user to keep.
#[derive(Debug, Default)]
pub(super) struct Jar(Vec<Kept>);

#[derive(Debug)]
struct Kept {
    name: Box<str>,
    value: Box<str>,
    path: Box<str>,
    /// The host that set it, or the domain that it is for.
    domain: Box<str>,
    /// It is for every host of the domain.
    has_domain: bool,
    /// It is for TLS only.
    is_secure: bool,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.path.len() + self.domain.len()
    }

    /// RFC 6265 §5.4.
    fn is_for(&self, (host, is_tls): (&str, bool), target: &str) -> bool {
        let is_of_host = match self.has_domain {
            true => is_of(&self.domain, host),
            false => self.domain.eq_ignore_ascii_case(host),
        };
        is_of_host && (is_tls || !self.is_secure) && matches(&self.path, target)
    }
}

/// RFC 6265 §5.1.4: the directory of a request's path.
fn directory(target: &str) -> &str {
    let path = target.split('?').next().unwrap_or_default();
    match path.rfind('/') {
        Some(at) if at > 0 => &path[..at],
        _ => "/",
    }
}

/// RFC 6265 §5.1.4.
fn matches(path: &str, target: &str) -> bool {
    let asked = target.split('?').next().unwrap_or_default();
    asked
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || path.ends_with('/') || rest.starts_with('/'))
}

/// Returns whether a cookie for this domain is for `host`, too (RFC 6265 §5.1.3). An address is in no domain.
fn is_of(domain: &str, host: &str) -> bool {
    if host.parse::<IpAddr>().is_ok() {
        return false;
    }
    let ends = host.len().checked_sub(domain.len()).map(|at| host.split_at_checked(at));
    match ends.flatten() {
        Some((before, end)) => {
            end.eq_ignore_ascii_case(domain) && (before.is_empty() || before.ends_with('.'))
        }
        None => false,
    }
}

impl Jar {
    /// Takes in what a response to a request for `target` has set, by RFC 6265 §5.3. `host`: the server's; a cookie for
    /// another one is not kept, nor one that is for TLS only without it, nor one for a whole top-level domain.
    pub(super) fn set(&mut self, line: &[u8], (host, is_tls): (&str, bool), target: &str) {
        let Some(cookie) = std::str::from_utf8(line).ok().and_then(|line| Cookie::parse(line).ok())
        else {
            return;
        };
        let domain = cookie.domain().map(|domain| domain.trim_start_matches('.'));
        let domain = domain.filter(|domain| !domain.is_empty());
        let is_own = domain.is_none_or(|domain| domain.eq_ignore_ascii_case(host));
        let is_domain = |domain: &&str| domain.contains('.') && domain.parse::<IpAddr>().is_err();
        let domain = domain.filter(is_domain);
        let is_foreign = !is_own && domain.is_none_or(|domain| !is_of(domain, host));
        let is_secure = cookie.secure() == Some(true);
        if is_foreign || (is_secure && !is_tls) {
            return;
        }
        let (name, value) = (cookie.name(), cookie.value());
        let path = cookie.path().filter(|path| path.starts_with('/'));
        let path = path.unwrap_or_else(|| directory(target));
        let (has_domain, domain) = (domain.is_some(), domain.unwrap_or(host));
        self.0.retain(|kept| {
            *kept.name != *name
                || *kept.path != *path
                || kept.has_domain != has_domain
                || !kept.domain.eq_ignore_ascii_case(domain)
        });
        let is_over = match cookie.max_age() {
            Some(age) => age <= time::Duration::ZERO,
            None => matches!(
                cookie.expires(),
                Some(Expiration::DateTime(at)) if at <= OffsetDateTime::now_utc()
            ),
        };
        let kept = Kept {
            name: name.into(),
            value: value.into(),
            path: path.into(),
            domain: domain.into(),
            has_domain,
            is_secure,
        };
        if is_over || kept.bytes() > COOKIE_BYTES {
            return;
        }
        self.0.push(kept);
        let mut bytes: usize = self.0.iter().map(Kept::bytes).sum();
        while self.0.len() > COOKIES_COUNT || bytes > JAR_BYTES {
            bytes -= self.0.remove(0).bytes();
        }
    }

    /// Writes the value of the Cookie field of a request to `server` (its host, and whether over TLS) for `target`:
    /// longer paths first (RFC 6265 §5.4). Nothing is written where there is none.
    pub(super) fn write(&self, server: (&str, bool), target: &str, text: &mut String) {
        let is_sent = |kept: &&Kept| kept.is_for(server, target);
        let mut sent: smallvec::SmallVec<[&Kept; 8]> = self.0.iter().filter(is_sent).collect();
        sent.sort_by_key(|kept| std::cmp::Reverse(kept.path.len()));
        for (index, kept) in sent.iter().enumerate() {
            if index > 0 {
                text.push_str("; ");
            }
            text.push_str(&kept.name);
            text.push('=');
            text.push_str(&kept.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(jar: &mut Jar, lines: &[&str]) {
        for line in lines {
            jar.set(line.as_bytes(), ("shop.test", false), "/a/b?c=/d");
        }
    }

    fn sent(jar: &Jar, target: &str) -> String {
        sent_to(jar, ("shop.test", false), target)
    }

    fn sent_to(jar: &Jar, server: (&str, bool), target: &str) -> String {
        let mut text = String::new();
        jar.write(server, target, &mut text);
        text
    }

    #[test]
    fn no_cookie_goes_to_a_host_that_it_is_not_for() {
        let mut jar = Jar::default();
        let mut set =
            |host: &str, is_tls, line: &str| jar.set(line.as_bytes(), (host, is_tls), "/");
        set("a.shop.test", true, "own=1");
        set("a.shop.test", true, "all=2; Domain=shop.test");
        set("a.shop.test", true, "tls=3; Domain=.shop.test; Secure");
        set("a.shop.test", true, "top=4; Domain=test");
        set("127.0.0.1", false, "ip=5; Domain=0.0.1");
        set("127.0.0.1", false, "local=6; Domain=127.0.0.1");
        for (host, is_tls, expected) in [
            ("A.shop.test", true, "own=1; all=2; tls=3"),
            ("a.shop.test", false, "own=1; all=2"),
            ("b.shop.test", true, "all=2; tls=3"),
            ("x.a.shop.test", false, "all=2"),
            ("shop.test", false, "all=2"),
            ("notshop.test", true, ""),
            ("127.0.0.1", false, "local=6"),
            ("9.127.0.0.1", false, ""),
        ] {
            assert_eq!(sent_to(&jar, (host, is_tls), "/"), expected, "{host}");
        }
    }

    #[test]
    fn cookies_go_where_they_belong() {
        let mut jar = Jar::default();
        set(
            &mut jar,
            &["s=1; Path=/", "d=2", "x=3; Path=/x; HttpOnly", "e=4; Path=/; Domain=.Shop.test"],
        );
        assert_eq!(sent(&jar, "/"), "s=1; e=4");
        assert_eq!(sent(&jar, "/a/z?q"), "d=2; s=1; e=4");
        assert_eq!(sent(&jar, "/ab"), "s=1; e=4");
        assert_eq!(sent(&jar, "/x/y"), "x=3; s=1; e=4");
    }

    #[test]
    fn what_is_set_again_is_replaced_and_what_is_over_is_gone() {
        let mut jar = Jar::default();
        set(&mut jar, &["s=1; Path=/", "s=2; Path=/", "t=1; Path=/", "t=; Path=/; Max-Age=0"]);
        assert_eq!(sent(&jar, "/"), "s=2");
        set(&mut jar, &["s=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]);
        assert_eq!(sent(&jar, "/"), "");
    }

    #[test]
    fn cookies_of_others_and_floods_are_not_kept() {
        let mut jar = Jar::default();
        let long = format!("l={}", "x".repeat(COOKIE_BYTES));
        for line in
            ["a=1; Domain=other.test", "a=1; Domain=op.test", "b=1; Secure", "no cookie", &long]
        {
            set(&mut jar, &[line]);
        }
        assert_eq!(sent(&jar, "/a/"), "");
        for number in 0..1000 {
            set(&mut jar, &[&format!("n{number}=1; Path=/")]);
        }
        assert_eq!(sent(&jar, "/").split("; ").count(), COOKIES_COUNT);
        assert!(sent(&jar, "/").ends_with("n999=1"));
        for number in 0..20 {
            set(&mut jar, &[&format!("m{number}={}; Path=/", "x".repeat(4000))]);
        }
        assert!(sent(&jar, "/").len() <= JAR_BYTES + 2 * COOKIES_COUNT);
    }

    proptest! {
        #[test]
        fn no_line_breaks_it(line in proptest::collection::vec(any::<u8>(), 0..60), target in "/.{0,12}") {
            let mut jar = Jar::default();
            jar.set(&line, ("a", true), &target);
            let mut text = String::new();
            jar.write(("a", true), &target, &mut text);
            prop_assert!(text.len() <= line.len() + 2);
        }
    }
}

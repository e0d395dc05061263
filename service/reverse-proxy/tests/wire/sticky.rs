//! Requests that keep to an upstream: by the proxy's cookie, and by a hash.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bolide_reverse_proxy::{Balance, HashKey, HealthCheck, SameSite, StickyCookie};
use bolide_server::{Ingress, Network, Server};

use crate::scene::{Behind, Proxy, Vacant, settings};
use crate::watch::{SHORT, named, until};

fn cookie() -> StickyCookie {
    StickyCookie::new("at").expect("a name")
}

/// The cookie that a response sets, with its attributes.
fn set_cookie(response: &str) -> Option<&str> {
    response.lines().find_map(|line| line.strip_prefix("set-cookie: "))
}

fn get(proxy: &Proxy, fields: &str) -> String {
    proxy.ask(&format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n"))
}

fn well() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(true))
}

#[test]
fn a_client_keeps_to_the_upstream_that_its_cookie_names() {
    let (one, other) = (named("a", &well()), named("b", &well()));
    let cookie = cookie().max_age(Duration::from_secs(90)).same_site(SameSite::Strict);
    let settings = settings(&[&one.url(), &other.url()]);
    let proxy = Proxy::with(settings.sticky(&cookie.path("/app/").expect("a path")));
    for _ in 0..2 {
        let first = get(&proxy, "cookie: other=1\r\n");
        let set = set_cookie(&first).expect("a cookie");
        let (pair, attributes) = set.split_once("; ").expect("attributes");
        assert_eq!(attributes, "Path=/app/; HttpOnly; Max-Age=90; SameSite=Strict");
        for _ in 0..4 {
            let next = get(&proxy, &format!("cookie: other=1; {pair}\r\n"));
            assert_eq!(next.chars().last(), first.chars().last(), "{next}");
            assert_eq!(set_cookie(&next), None, "{next}");
        }
    }
}

#[test]
fn a_cookie_is_secure_for_clients_that_speak_tls() {
    let behind = named("a", &well());
    let trusted = ["127.0.0.0/8".parse::<Network>().expect("a network")].into_iter().collect();
    let server = Server::new().ingress(Ingress { trusted, ..Ingress::default() });
    let proxy = Proxy::on(server, settings(&[&behind.url()]).sticky(&cookie()));
    let secure = get(&proxy, "x-forwarded-proto: https\r\nx-forwarded-for: 192.0.2.1\r\n");
    assert!(set_cookie(&secure).expect("a cookie").ends_with("; Secure"), "{secure}");
    let plain = get(&proxy, "");
    assert!(!set_cookie(&plain).expect("a cookie").contains("Secure"), "{plain}");
}

#[test]
fn another_upstream_takes_over_and_sets_the_cookie_anew() {
    let states = [well(), well()];
    let (one, other) = (named("a", &states[0]), named("b", &states[1]));
    let check = HealthCheck::new("/health").interval(SHORT).fall(1).rise(1);
    let settings = settings(&[&one.url(), &other.url()]).sticky(&cookie());
    let proxy = Proxy::with(settings.health_check(check).expect("a path"));
    let first = get(&proxy, "");
    let pair = set_cookie(&first).and_then(|set| set.split(';').next()).expect("a cookie");
    let at = usize::from(first.ends_with('b'));
    states[at].store(false, Ordering::SeqCst);
    until(&proxy.settings, at, |stats| stats.is_down);
    let second = get(&proxy, &format!("cookie: {pair}\r\n"));
    assert_ne!(second.chars().last(), first.chars().last(), "{second}");
    let moved = set_cookie(&second).and_then(|set| set.split(';').next()).expect("a new cookie");
    assert_ne!(moved, pair);
    // It stays where it is by now.
    states[at].store(true, Ordering::SeqCst);
    until(&proxy.settings, at, |stats| !stats.is_down);
    let third = get(&proxy, &format!("cookie: {moved}\r\n"));
    assert_eq!(third.chars().last(), second.chars().last());
    assert_eq!(set_cookie(&third), None);
}

#[test]
fn a_retry_at_another_upstream_sets_its_cookie() {
    let gone = Vacant::new();
    let well = named("a", &well());
    let proxy = Proxy::with(settings(&[&gone.url(), &well.url()]).sticky(&cookie()));
    let names: Vec<String> = (0..4)
        .map(|_| {
            let response = get(&proxy, "");
            assert!(response.ends_with('a'), "{response}");
            set_cookie(&response).expect("a cookie").to_owned()
        })
        .collect();
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
}

#[test]
fn errors_of_the_proxy_itself_set_no_cookie() {
    let behind = Behind::new(|talk, _| drop(talk.head()));
    let proxy = Proxy::with(settings(&[&behind.url()]).sticky(&cookie()));
    let response = get(&proxy, "");
    assert!(response.starts_with("HTTP/1.1 502") && set_cookie(&response).is_none(), "{response}");
}

#[test]
fn a_hash_keeps_requests_with_the_same_key_together() {
    let behind: Vec<Behind> =
        ["a", "b", "c"].into_iter().map(|name| named(name, &well())).collect();
    let urls: Vec<String> = behind.iter().map(Behind::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    for key in ["header:x-user", "cookie:user", "uri"] {
        let key: HashKey = key.parse().expect("a key");
        let proxy = Proxy::with(settings(&urls).balance(Balance::Hash(key.clone())));
        let ask = |user: u32| {
            let request = format!(
                "GET /{} HTTP/1.1\r\nhost: a\r\nx-user: {user}\r\ncookie: a=1; user={user}\r\n\r\n",
                if key == HashKey::Target { user } else { 0 }
            );
            proxy.ask(&request).chars().last().expect("a name")
        };
        let names: Vec<char> = (0..40).map(ask).collect();
        assert_eq!((0..40).map(ask).collect::<Vec<_>>(), names, "{key:?}");
        assert!(['a', 'b', 'c'].iter().all(|name| names.contains(name)), "{key:?}: {names:?}");
    }
    let proxy = Proxy::with(settings(&urls).balance(Balance::Hash(HashKey::Client)));
    let first = get(&proxy, "");
    assert!((0..10).all(|_| get(&proxy, "").chars().last() == first.chars().last()));
}

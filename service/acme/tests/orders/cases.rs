use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, SystemTime};

use bolide_acme::{Acme, AcmeLimits, Challenge, Event, Results, Settings};

use super::ca::{Ca, Fault, problem};

/// How long an event may take: an order has pauses of some hundred milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bolide-acme-orders-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&path));
        Self(path)
    }

    /// Returns what the CA's directory has of this name.
    fn file(&self, name: &str) -> PathBuf {
        let directory = std::fs::read_dir(&self.0).unwrap().next().unwrap().unwrap().path();
        directory.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn settings(directory: String, storage: &Path, names: &[&str]) -> Settings {
    Settings {
        directory,
        contact: vec!["mailto:admin@a.org".to_owned()],
        storage: storage.to_owned(),
        challenge: Challenge::Http01,
        trust: None,
        names: names.iter().map(ToString::to_string).collect(),
        limits: AcmeLimits { retry_delay: Duration::from_millis(20), retry_delay_max: PATIENCE },
    }
}

/// Opens one, whose events come from the receiver.
fn open(settings: Settings, results: &Results) -> (Acme, Receiver<Event>) {
    let (sender, receiver) = mpsc::channel();
    let report = move |event: &Event| drop(sender.send(event.clone()));
    (Acme::open(settings, results, report).unwrap(), receiver)
}

fn begin(settings: Settings, results: &Results) -> (Acme, Receiver<Event>) {
    let (mut acme, events) = open(settings, results);
    acme.begin().unwrap();
    (acme, events)
}

#[track_caller]
fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(PATIENCE).expect("something happens")
}

/// Why the next order failed.
#[track_caller]
fn failure(events: &Receiver<Event>) -> String {
    match next(events) {
        Event::Failed { what, .. } => what,
        event => panic!("{event}"),
    }
}

#[track_caller]
fn issued(events: &Receiver<Event>) -> String {
    match next(events) {
        Event::Issued { name, unstored: None, .. } => name,
        event => panic!("{event}"),
    }
}

#[test]
fn what_is_issued_is_stored_and_a_restart_orders_nothing() {
    for challenge in [Challenge::Http01, Challenge::TlsAlpn01] {
        let (scratch, results) = (Scratch::new(), Results::default());
        let ca = Ca::start(&results);
        let settings =
            Settings { challenge, ..settings(ca.directory(), &scratch.0, &["a.org", "b.org"]) };
        let (acme, events) = begin(settings.clone(), &results);
        let mut names = [issued(&events), issued(&events)];
        names.sort();
        assert_eq!(names, ["a.org", "b.org"]);
        for name in ["a.org.pem", "b.org.pem", "a.org.json", "account.json"] {
            let mode = std::fs::metadata(scratch.file(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert_eq!(results.responses.get("token-1"), None, "it is gone with its challenge");
        drop(acme);
        let results = Results::default();
        let (_acme, _) = open(settings, &results);
        let day = Duration::from_secs(86_400);
        for state in results.states() {
            let left = state.expiry.unwrap().duration_since(SystemTime::now()).unwrap();
            assert!(left > day * 89 && left <= day * 90, "{state:?}");
            let next = state.next_order.duration_since(SystemTime::now()).unwrap();
            assert!(next > day * 59 && next < day * 61, "{state:?}");
        }
        let state = ca.state.lock().unwrap();
        assert_eq!((state.count("POST /account"), state.count("POST /new-order")), (1, 2));
    }
}

#[test]
fn a_broken_ca_is_asked_again_and_the_reason_is_said() {
    let (scratch, results) = (Scratch::new(), Results::default());
    let ca = Ca::start(&results);
    let page = |path: &'static str, status: u16, body: &str| Fault {
        path,
        status,
        fields: "",
        body: body.to_owned(),
    };
    let limited =
        Fault { fields: "Retry-After: 1\r\n", ..problem("/new-order", 429, "rateLimited") };
    let cases = [
        (page("/directory", 500, "<html>down</html>"), "the response is 500"),
        (page("/directory", 200, "{}"), "the response of the CA can't be read"),
        (page("/nonce", 503, ""), "503"),
        (
            problem("/account", 403, "unauthorized"),
            "no account: the CA reports unauthorized: as you wished",
        ),
        (page("/new-order", 502, "bad gateway"), "the response is 502"),
        (problem("/new-order", 400, "rejectedIdentifier"), "the CA reports rejectedIdentifier"),
        (limited, "the CA reports rateLimited"),
        (page("/authorization", 200, "[]"), "the response of the CA can't be read"),
        (page("/order", 500, "no"), "validation: "),
        (problem("/finalize", 403, "badCSR"), "the CA reports badCSR"),
        (page("/certificate", 200, "no certificate"), "the certificate can't be used"),
        (page("/certificate", 200, &"A".repeat(300_000)), "longer than"),
    ];
    ca.state.lock().unwrap().faults = cases.iter().map(|(fault, _)| fault.clone()).collect();
    let (_acme, events) = begin(
        Settings {
            limits: AcmeLimits {
                retry_delay_max: Duration::from_millis(20),
                ..AcmeLimits::default()
            },
            ..settings(ca.directory(), &scratch.0, &["a.org"])
        },
        &results,
    );
    for (number, (_, said)) in cases.iter().enumerate() {
        let Event::Failed { what, failures, retry, valid: None, .. } = next(&events) else {
            panic!("the CA was not broken by {said}");
        };
        assert!(what.contains(said), "{what}\n  want {said}");
        assert_eq!(failures as usize, number + 1);
        assert_eq!(retry > Duration::from_millis(500), said.contains("rateLimited"), "{retry:?}");
    }
    assert_eq!(issued(&events), "a.org");
}

/// RFC 8555 §6.5.
#[test]
fn a_nonce_that_is_refused_is_replaced_at_once() {
    let (scratch, results) = (Scratch::new(), Results::default());
    let ca = Ca::start(&results);
    let bad = |path| problem(path, 400, "badNonce");
    let faults = ["/account", "/new-order", "/new-order", "/finalize"].map(bad);
    ca.state.lock().unwrap().faults = faults.to_vec();
    let (_acme, events) = begin(settings(ca.directory(), &scratch.0, &["a.org"]), &results);
    assert_eq!(issued(&events), "a.org");
}

#[test]
fn a_validation_that_fails_says_why_in_one_line() {
    let (scratch, results) = (Scratch::new(), Results::default());
    let ca = Ca::start(&results);
    ca.state.lock().unwrap().is_strict = true;
    let (_acme, events) = begin(settings(ca.directory(), &scratch.0, &["a.org"]), &results);
    assert_eq!(failure(&events), "the CA reports unauthorized: the name leads elsewhere");
    ca.state.lock().unwrap().is_strict = false;
    while !matches!(next(&events), Event::Issued { .. }) {}
}

#[test]
fn a_certificate_for_another_name_or_one_that_has_expired_is_not_used() {
    for is_expired in [true, false] {
        let (scratch, results) = (Scratch::new(), Results::default());
        let ca = Ca::start(&results);
        {
            let mut state = ca.state.lock().unwrap();
            state.other_name = (!is_expired).then(|| "b.org".to_owned());
            state.lifetime = if is_expired { Duration::ZERO } else { state.lifetime };
        }
        let (_acme, events) = begin(settings(ca.directory(), &scratch.0, &["a.org"]), &results);
        let said = failure(&events);
        let expected = if is_expired { "has expired" } else { "is for another name" };
        assert!(said.contains(expected), "{said}");
        assert_eq!(results.states()[0].expiry, None);
    }
}

#[test]
fn a_failed_renewal_keeps_the_certificate_and_a_later_one_replaces_it() {
    let (scratch, results) = (Scratch::new(), Results::default());
    let ca = Ca::start(&results);
    let settings = settings(ca.directory(), &scratch.0, &["a.org"]);
    {
        // The window is over: each certificate is to be renewed at once.
        let window =
            r#"{"suggestedWindow":{"start":"2026-01-01T00:00:00Z","end":"2026-01-02T00:00:00Z"}}"#;
        let mut state = ca.state.lock().unwrap();
        state.renewal_info = Some(("Retry-After: 21600\r\n", window.to_owned()));
    }
    let (acme, events) = begin(settings.clone(), &results);
    assert_eq!(issued(&events), "a.org");
    // All that was begun before is over when this is in force.
    let first = std::fs::read(scratch.file("a.org.pem")).unwrap();
    assert_eq!(issued(&events), "a.org");
    let second = std::fs::read(scratch.file("a.org.pem")).unwrap();
    assert_ne!(first, second);
    {
        let mut state = ca.state.lock().unwrap();
        assert_eq!(state.replaced[0], None);
        let replaced = state.replaced[1].clone().unwrap();
        assert!(replaced.split('.').count() == 2 && replaced.len() > 50, "{replaced}");
        state.faults = (0..50).map(|_| problem("/new-order", 500, "serverInternal")).collect();
    }
    let kept = loop {
        match next(&events) {
            Event::Failed { valid, .. } => break valid,
            event => assert!(matches!(event, Event::Issued { .. }), "{event}"),
        }
    };
    assert!(kept.unwrap() > Duration::from_secs(89 * 86_400), "it stays in force");
    assert!(results.states()[0].expiry.is_some());
    {
        let mut state = ca.state.lock().unwrap();
        // RFC 9773 §5: then it is ordered as if it were new.
        state.faults = vec![problem("/new-order", 409, "alreadyReplaced")];
        state.renewal_info = None;
    }
    while !matches!(next(&events), Event::Issued { .. }) {}
    assert_eq!(ca.state.lock().unwrap().replaced.last(), Some(&None));
    drop(acme);
}

/// RFC 9773 §4.3.
#[test]
fn renewal_information_that_can_not_be_read_leaves_two_thirds_of_the_lifetime() {
    let window =
        r#"{"suggestedWindow":{"start":"2126-01-02T00:00:00Z","end":"2126-01-01T00:00:00Z"}}"#;
    for (fields, text) in
        [("", "{}"), ("Retry-After: 60\r\n", "no JSON"), ("Retry-After: 60\r\n", window)]
    {
        let (scratch, results) = (Scratch::new(), Results::default());
        let ca = Ca::start(&results);
        ca.state.lock().unwrap().renewal_info = Some((fields, text.to_owned()));
        let settings = settings(ca.directory(), &scratch.0, &["a.org"]);
        let (acme, events) = begin(settings.clone(), &results);
        assert_eq!(issued(&events), "a.org");
        // The next name is ordered after the information of the first was requested.
        acme.change(Settings { names: vec!["a.org".to_owned(), "b.org".to_owned()], ..settings })
            .unwrap();
        assert_eq!(issued(&events), "b.org");
        let next = results.states()[0].next_order.duration_since(SystemTime::now()).unwrap();
        let days = next.as_secs() / 86_400;
        assert!((59..=60).contains(&days), "{text}: {days}");
    }
}

#[test]
fn two_processes_order_once() {
    let (scratch, results) = (Scratch::new(), Results::default());
    let ca = Ca::start(&results);
    let settings = settings(ca.directory(), &scratch.0, &["a.org"]);
    // Neither has anything when it starts.
    let (mut first, of_first) = open(settings.clone(), &results);
    let (mut second, of_second) = open(settings, &results);
    first.begin().unwrap();
    second.begin().unwrap();
    let mut seen =
        [next(&of_first), next(&of_second)].map(|event| matches!(event, Event::Adopted { .. }));
    seen.sort_unstable();
    assert_eq!(seen, [false, true], "one is issued, and the other process takes it");
    assert_eq!(ca.state.lock().unwrap().count("POST /new-order"), 1);
}

#[test]
fn a_restart_after_a_failure_waits_as_long_as_before() {
    let (scratch, results) = (Scratch::new(), Results::default());
    // There is no listener any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = Settings {
        limits: AcmeLimits::default(),
        ..settings(format!("http://{address}/directory"), &scratch.0, &["a.org"])
    };
    let (acme, events) = begin(settings.clone(), &results);
    let said = failure(&events);
    assert!(said.contains("connection refused"), "{said}");
    drop(acme);
    let results = Results::default();
    let (_acme, _) = open(settings, &results);
    let state = &results.states()[0];
    let wait = state.next_order.duration_since(SystemTime::now()).unwrap();
    assert!(wait > Duration::from_secs(30) && wait < Duration::from_secs(90), "{wait:?}");
    assert!(state.last_failure.is_some() && state.expiry.is_none());
}

#[test]
fn an_account_that_the_ca_has_forgotten_is_made_again() {
    let (scratch, results) = (Scratch::new(), Results::default());
    let ca = Ca::start(&results);
    let settings = settings(ca.directory(), &scratch.0, &["a.org"]);
    let (acme, events) = begin(settings.clone(), &results);
    assert_eq!(issued(&events), "a.org");
    ca.state.lock().unwrap().faults = vec![problem("/new-order", 400, "accountDoesNotExist")];
    acme.change(Settings { names: vec!["b.org".to_owned()], ..settings }).unwrap();
    assert_eq!(issued(&events), "b.org");
    assert_eq!(ca.state.lock().unwrap().count("POST /account"), 2);
    let names: Vec<_> = results.states().into_iter().map(|state| state.name).collect();
    assert_eq!(names, ["b.org"]);
}

#[test]
fn what_is_stored_and_can_not_be_used_is_ordered_again() {
    let (scratch, results) = (Scratch::new(), Results::default());
    let ca = Ca::start(&results);
    let settings = settings(ca.directory(), &scratch.0, &["a.org"]);
    let (acme, events) = begin(settings.clone(), &results);
    assert_eq!(issued(&events), "a.org");
    drop(acme);
    for name in ["a.org.pem", "account.json", "a.org.json"] {
        std::fs::write(scratch.file(name), "garbage").unwrap();
    }
    results.forget();
    let (_acme, events) = begin(settings, &results);
    assert_eq!(issued(&events), "a.org");
    assert!(ca.state.lock().unwrap().count("POST /account") >= 2);
}

#[test]
fn a_storage_that_can_not_be_written_makes_no_order_come_sooner() {
    let (scratch, results) = (Scratch::new(), Results::default());
    let ca = Ca::start(&results);
    let (mut acme, events) = open(settings(ca.directory(), &scratch.0, &["a.org"]), &results);
    for name in ["a.org.pem", "a.org.json"] {
        std::fs::create_dir(scratch.file(name)).unwrap();
    }
    let broken = || problem("/new-order", 500, "serverInternal");
    ca.state.lock().unwrap().faults = vec![broken(), broken(), broken()];
    acme.begin().unwrap();
    for number in 1..=3 {
        let event = next(&events);
        assert!(matches!(event, Event::Failed { failures, .. } if failures == number), "{event}");
    }
    let event = next(&events);
    let Event::Issued { unstored: Some(why), .. } = &event else { panic!("{event}") };
    assert!(why.contains("a.org.pem: "), "{why}");
    assert!(event.to_string().contains("is lost at the end of this process"), "{event}");
    assert!(results.states()[0].expiry.is_some());
    // What could not be stored is in force, and is not ordered again by other settings.
    let names = ["a.org", "b.org"];
    acme.change(settings(ca.directory(), &scratch.0, &names)).unwrap();
    let event = next(&events);
    assert!(matches!(&event, Event::Issued { name, .. } if name == "b.org"), "{event}");
    let issued: Vec<_> = results.states().iter().map(|state| state.issued_count).collect();
    assert_eq!(issued, [1, 1]);
    // Another CA has issued nothing.
    let other = Ca::start(&results);
    acme.change(settings(other.directory(), &scratch.0, &names)).unwrap();
    for expected in names {
        let event = next(&events);
        assert!(matches!(&event, Event::Issued { name, .. } if name == expected), "{event}");
    }
}

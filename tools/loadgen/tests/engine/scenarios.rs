//! Users who do steps in order, against a shop that knows who each of them is.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bolide_loadgen::options::{Arguments, Job};
use bolide_loadgen::schedule::Schedule;
use bolide_probe::engine::Engine;
use bolide_probe::progress::Control;
use bolide_probe::report::{Failure, PhaseReport};
use clap::Parser;

use crate::plans::Free;
use crate::planted::{Behaviour, Planted};

/// A request as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Came {
    method: String,
    target: String,
    fields: BTreeMap<String, String>,
    body: String,
}

impl Came {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value)
    }

    fn read(input: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut came = Self { method, target, ..Self::default() };
        loop {
            let mut line = String::new();
            input.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            assert!(came.fields.insert(name.to_owned(), value.to_owned()).is_none(), "{line}");
        }
        let mut body = vec![0; came.field("content-length").parse().unwrap_or(0)];
        input.read_exact(&mut body).ok()?;
        came.body = String::from_utf8_lossy(&body).into_owned();
        Some(came)
    }
}

/// Parts of a response: status, field lines, body.
type Reply = (u16, String, String);

fn reply(status: u16, fields: &str, body: &str) -> Reply {
    (status, fields.to_owned(), body.to_owned())
}

/// A server that responds as `respond` says, and remembers what came.
struct Shop {
    address: SocketAddr,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Shop {
    fn open(respond: impl Fn(&Came) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let came = Arc::new(Mutex::new(Vec::new()));
        let (respond, log) = (Arc::new(respond), Arc::clone(&came));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (respond, log) = (Arc::clone(&respond), Arc::clone(&log));
                std::thread::spawn(move || serve(&socket, &*respond, &log));
            }
        });
        Self { address, came }
    }

    fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }
}

fn serve(mut socket: &TcpStream, respond: &dyn Fn(&Came) -> Reply, log: &Mutex<Vec<Came>>) {
    let mut input = BufReader::new(socket.try_clone().unwrap());
    while let Some(came) = Came::read(&mut input) {
        log.lock().unwrap().push(came.clone());
        let (status, fields, body) = respond(&came);
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\n{fields}\r\n");
        if socket.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

/// A scenario in a file that is there as long as this is.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("bolide-scenario-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    load: Arguments,
}

/// Returns what the command line `bolide load …` finds, in its only phase.
#[track_caller]
fn run(line: &str, file: &File, address: SocketAddr) -> PhaseReport {
    let path = file.0.display();
    let line = format!("load {line} --no-server-watch --scenario {path} http://{address}");
    let arguments = Program::try_parse_from(line.split(' ')).unwrap().load;
    let Job { plan, schedule, .. } = arguments.job().unwrap();
    let Schedule::Fixed(phases) = schedule else { panic!("{schedule:?}") };
    let mut engine = Engine::prepare(&plan, Box::new(Free)).unwrap();
    engine.run(&phases[0], &mut |_| Control::Continue)
}

const SHOPPING: &str = "\
data = 'DATA'
[[user]]
[[user.step]]
name = 'log in'
request = 'POST /login?from={user}'
form = { name = '{row.name}', word = 'a b&c' }
[[user.step]]
name = 'items'
request = 'GET /items'
capture = { item = 'json /items/1/id', tag = 'header etag', csrf = 'regex csrf=([^&]*)&' }
[[user.step]]
name = 'buy'
request = 'POST /cart/{item}'
json = { csrf = '{csrf}', tag = '{tag}', of = { name = '{row.name}' } }
bearer = '{tag}'
expect = { status = '201', contains = 'thank you', fields = { x-cart = '1' } }
";

/// A shop in which each user has a session, and is asked for what only that session was told.
fn shop(came: &Came) -> Reply {
    let session = came.field("cookie").strip_prefix("session=").unwrap_or_default().to_owned();
    match came.target.split('?').next().unwrap() {
        "/login" => {
            assert_eq!(session, "", "a new user has no cookies");
            assert_eq!(came.field("content-type"), "application/x-www-form-urlencoded");
            let form = came.body.strip_suffix("&word=a+b%26c").unwrap();
            let user = came.target.strip_prefix("/login?from=").unwrap();
            let cookie = format!("{}.{user}", form.strip_prefix("name=").unwrap());
            let fields = format!("set-cookie: session={cookie}; Path=/\r\nlocation: welcome\r\n");
            reply(303, &fields, "")
        }
        "/welcome" => {
            assert_eq!((came.method.as_str(), came.body.as_str()), ("GET", ""));
            assert_eq!(came.field("content-type"), "");
            assert!(!session.is_empty());
            reply(200, "", "welcome")
        }
        "/items" => {
            let body = format!(
                "{{\"items\":[{{}},{{\"id\":\"{session}/?\"}}],\"form\":\"csrf=x{session}&\"}}"
            );
            reply(200, &format!("etag: tag-{session}\r\n"), &body)
        }
        _ => {
            assert!(!session.is_empty());
            assert_eq!(came.target, format!("/cart/{session}/?"));
            assert_eq!(came.field("authorization"), format!("Bearer tag-{session}"));
            let name = session.split('.').next().unwrap();
            let body = format!(
                "{{\"csrf\":\"x{session}\",\"of\":{{\"name\":\"{name}\"}},\"tag\":\"tag-{session}\"}}"
            );
            assert_eq!(came.body, body);
            reply(201, "x-cart: 1\r\n", "thank you")
        }
    }
}

#[test]
fn users_keep_their_cookies_and_what_they_captured_to_themselves() {
    let data = File::new("names.csv", "name\nanna\nbert\ncleo\n");
    let text = SHOPPING.replace("DATA", &data.0.display().to_string());
    let file = File::new("shopping", &text);
    let shop = Shop::open(shop);
    let report = run("-n 60 --users 8 -c 3 -t 2", &file, shop.address);
    assert!(report.failures.is_empty(), "{:?} {:?}", report.failures, shop.came().last());
    // Each user sends four requests, one of them to where a redirect leads.
    assert_eq!((report.counts.completed, report.counts.due), (240, 240));
    let users = report.kinds.users.unwrap();
    assert_eq!((users.finished, users.gave_up, users.duration.count), (60, 0, 60));
    let steps: Vec<_> =
        report.kinds.requests.iter().map(|one| one.name.as_deref().unwrap()).collect();
    assert_eq!(steps, ["log in", "items", "buy"]);
    assert!(report.kinds.requests.iter().all(|one| one.completed == 60 && one.failed == 0));
    let came = shop.came();
    let mut logins: Vec<(u64, &str)> = came
        .iter()
        .filter_map(|came| {
            let user = came.target.strip_prefix("/login?from=")?.parse().unwrap();
            Some((user, came.body.strip_prefix("name=")?.split('&').next()?))
        })
        .collect();
    logins.sort_unstable();
    assert_eq!(logins.len(), 60);
    for (user, name) in logins {
        assert_eq!(name, ["anna", "bert", "cleo"][user as usize % 3]);
    }
}

#[test]
fn users_pause_and_their_number_stays() {
    let file = File::new("pauses", "[[user]]\nthink = '100ms'\n[[user.step]]\nrequest = '/a'\n");
    let shop = Shop::open(|_| reply(200, "", "x"));
    let report = run("-D 2s --users 50 -c 2 --warm-up 200ms", &file, shop.address);
    // 50 users, each with a request in 100 ms and what it takes.
    let (completed, due) = (report.counts.completed, report.counts.due);
    assert!((700..=1000).contains(&completed), "{completed}");
    // What began in the warm-up is not due, and counts where it ends; what is under way at the end was due.
    assert!(due.abs_diff(completed) <= 50, "{due} {completed}");
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    let residual = report.course.littles_law_residual.unwrap();
    assert!(residual.abs() < 0.1, "{residual}");
}

#[test]
fn who_waits_for_a_stalled_server_has_waited_since_the_step_was_due() {
    let file = File::new("stall", "[[user]]\n[[user.step]]\nrequest = '/a'\n");
    let stall = Mutex::new(Some(Duration::from_millis(300)));
    let shop = Shop::open(move |_| {
        let pause = stall.lock().unwrap().take();
        std::thread::sleep(pause.unwrap_or_default());
        reply(200, "", "x")
    });
    let begun = Instant::now();
    let report = run("-n 100 --rate 200 -c 1", &file, shop.address);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    assert_eq!((report.counts.completed, report.kinds.users.unwrap().finished), (100, 100));
    // Some 60 users began while none was served; the median of them waited half as long.
    let waited = report.times.latency.percentiles_ns["p75"];
    assert!(waited > 50_000_000, "{waited}");
    assert!(report.times.latency.max_ns >= 295_000_000, "{}", report.times.latency.max_ns);
}

#[test]
fn kinds_of_users_come_by_weight() {
    let text = "[[user]]\nname = 'a'\nweight = 3\n[[user.step]]\nname = 'one'\nrequest = '/a'\n\
                [[user]]\nname = 'b'\n[[user.step]]\nrequest = '/b'\n[[user.step]]\nrequest = '/c'\n";
    let shop = Shop::open(|_| reply(200, "", "x"));
    let report = run("-n 400 --users 10", &File::new("weights", text), shop.address);
    let found: Vec<_> = report.kinds.requests.iter().map(|one| one.name.clone().unwrap()).collect();
    assert_eq!(found, ["a: one", "b: /b", "b: /c"]);
    let [a, b, c] = [0, 1, 2].map(|index: usize| report.kinds.requests[index].completed);
    assert!((250..350).contains(&a) && b == c && a + b == 400, "{a} {b} {c}");
}

/// Returns what came of 20 users whose second step needs what the first one captures.
fn told(what: &str, fields: &'static str, body: &'static str) -> PhaseReport {
    let text = format!(
        "[[user]]\nredirects = 3\n[[user.step]]\nrequest = '/a'\ncapture = {{ x = '{what}' }}\n\
         basic = 'user:secret'\n[[user.step]]\nrequest = '/b/{{x}}'\n"
    );
    let name = format!("told-{}", what.len() * 1000 + fields.len() + body.len());
    let shop = Shop::open(move |came| match came.target.as_str() {
        "/a" => reply(200, fields, body),
        _ => reply(200, "", ""),
    });
    let report = run("-n 20 --users 2", &File::new(&name, &text), shop.address);
    let came = shop.came();
    assert!(came.iter().all(|came| !came.target.contains('\r')));
    report
}

#[test]
fn a_user_who_finds_not_what_the_next_step_needs_gives_up() {
    let found = told("json /x", "", "{\"x\":7}");
    assert_eq!((found.counts.completed, found.kinds.users.unwrap().finished), (40, 20));
    for (what, fields, body) in [
        ("json /x", "", "{\"y\":7}"),
        ("json /x", "", "<html>"),
        ("header x-y", "x-z: 1\r\n", ""),
        ("regex a(b)", "", "ac"),
    ] {
        let report = told(what, fields, body);
        assert_eq!(report.failures, BTreeMap::from([(Failure::Capture, 20)]), "{what}");
        assert_eq!((report.counts.completed, report.kinds.users.unwrap().gave_up), (20, 20));
    }
}

#[test]
fn a_captured_value_can_not_break_out_of_its_place() {
    let report = told("json /x", "", r#"{"x":"a HTTP/1.1\r\nx: y\r\n\r\nGET /c"}"#);
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    assert_eq!(report.counts.completed, 40);
}

#[test]
fn redirects_are_followed_as_often_as_allowed_and_never_to_another_server() {
    let other = Shop::open(|_| reply(200, "", "caught"));
    let elsewhere = format!("http://{}/steal", other.address);
    let text = "[[user]]\nredirects = 3\n[[user.step]]\nrequest = 'POST /a'\nbody = 'x'\n\
                basic = 'user:secret'\n";
    let file = File::new("redirects", text);
    for (location, status, requests) in [("/a", 302, 4), (elsewhere.as_str(), 307, 1)] {
        let fields = format!("location: {location}\r\n");
        let shop = Shop::open(move |_| reply(status, &fields, ""));
        let report = run("-n 10 --users 1", &file, shop.address);
        assert_eq!(report.failures, BTreeMap::from([(Failure::Redirect, 10)]));
        assert_eq!(report.kinds.users.unwrap().gave_up, 10);
        let came = shop.came();
        assert_eq!(came.len(), 10 * requests);
        assert!(came.iter().all(|came| came.field("authorization") == "Basic dXNlcjpzZWNyZXQ="));
        let posts = came.iter().filter(|came| came.method == "POST" && came.body == "x").count();
        assert_eq!(posts, 10);
    }
    assert!(other.came().is_empty(), "secrets went to another server");
}

#[test]
fn floods_of_cookies_and_bodies_without_an_end_are_bounded() {
    let text = "[[user]]\n[[user.step]]\nrequest = '/a'\ncapture = { x = 'regex z(.)' }\n\
                [[user.step]]\nrequest = '/b'\n";
    let cookies: String =
        (0..200).map(|n| format!("set-cookie: n{n}={}; Path=/\r\n", "v".repeat(900))).collect();
    let body = "y".repeat(3 << 20) + "z!";
    let shop = Shop::open(move |came| match came.field("cookie") {
        "" => (200, cookies.clone(), "z.".to_owned()),
        _ => (200, String::new(), body.clone()),
    });
    let file = File::new("floods", text);
    let report = run("-n 5 --users 1", &file, shop.address);
    assert_eq!(report.kinds.users.unwrap().finished, 5);
    let longest = shop.came().iter().map(|came| came.field("cookie").len()).max().unwrap();
    assert!((1000..=17_000).contains(&longest), "{longest}");
    // What lies behind the first MiB is not found.
    let text = "[[user]]\n[[user.step]]\nrequest = '/a'\ncapture = { x = 'regex z(.)' }\n";
    let body = "y".repeat(3 << 20) + "z!";
    let shop = Shop::open(move |_| (200, String::new(), body.clone()));
    let report = run("-n 5 --users 1", &File::new("bodies", text), shop.address);
    assert_eq!(report.failures, BTreeMap::from([(Failure::Capture, 5)]));
}

#[test]
fn steps_go_over_http2_too() {
    let server = Planted::start(Behaviour::default());
    let text = "[[user]]\n[[user.step]]\nrequest = '/a'\nexpect = { contains = 'planted' }\n\
                [[user.step]]\nrequest = 'POST /b'\nbody = '{user}'\n\
                [[user.step]]\nrequest = '/c'\nexpect = { contains = 'nothing' }\n";
    let line = "-n 100 --users 40 -c 2 -m 10 --http2 -t 2";
    let report = run(line, &File::new("http2", text), server.address);
    assert_eq!(report.failures, BTreeMap::from([(Failure::Capture, 100)]));
    assert_eq!((report.counts.completed, server.requests()), (300, 300));
    assert_eq!(report.kinds.users.unwrap().gave_up, 100);
}

#[test]
fn users_of_a_server_that_is_gone_give_up_and_the_run_ends() {
    let server = Planted::start(Behaviour::every(3, crate::planted::Plant::Close));
    let text = "[[user]]\n[[user.step]]\nrequest = '/a'\n[[user.step]]\nrequest = '/b'\n";
    let report = run("-n 90 --users 5 -c 2", &File::new("gone", text), server.address);
    let users = report.kinds.users.unwrap();
    assert_eq!(users.finished + users.gave_up, 90);
    assert_eq!(report.failures.keys().copied().collect::<Vec<_>>(), [Failure::Reset]);
    assert_eq!(report.failures[&Failure::Reset], users.gave_up);
}

#[test]
fn a_log_is_sent_again_at_its_times() {
    let line = |ms: u32, method: &str, target: &str| {
        format!(
            "{{\"time\":\"2026-10-10T13:55:38.{ms:03}Z\",\"duration_us\":3000,\
             \"method\":\"{method}\",\"target\":\"{target}\"}}\n"
        )
    };
    let requests = [(600, "GET", "/c?x=1"), (103, "GET", "/a"), (203, "HEAD", "/b")];
    let text: String =
        requests.iter().map(|(ms, method, target)| line(*ms, method, target)).collect();
    let file = File::new("log", &(text + &line(700, "POST", "/d")));
    let shop = Shop::open(|_| reply(200, "", ""));
    let path = file.0.display();
    for (speed, threads, least_ms, most_ms) in [(1, 1, 497, 800), (5, 2, 99, 400)] {
        let line = format!(
            "load --replay {path} --speed {speed} -t {threads} --no-server-watch http://{}",
            shop.address
        );
        let arguments = Program::try_parse_from(line.split(' ')).unwrap().load;
        let Job { plan, schedule, note, .. } = arguments.job().unwrap();
        assert!(note.unwrap().contains("leaves 1 line(s) out"));
        let Schedule::Fixed(phases) = schedule else { panic!("{schedule:?}") };
        let mut engine = Engine::prepare(&plan, Box::new(Free)).unwrap();
        let report = engine.run(&phases[0], &mut |_| Control::Continue);
        assert_eq!((report.counts.completed, report.counts.due), (3, 3));
        assert_eq!(report.kinds.users.unwrap().finished, 3);
        let took_ms = report.elapsed_ns / 1_000_000;
        assert!((least_ms..most_ms).contains(&took_ms), "{took_ms}");
    }
    let came = shop.came();
    let came: Vec<_> =
        came.iter().map(|came| (came.method.as_str(), came.target.as_str())).collect();
    let once = [("GET", "/a"), ("HEAD", "/b"), ("GET", "/c?x=1")];
    assert_eq!(came, [once, once].concat());
}

/// Returns what a command line with several servers finds in its only phase; the first one is `shop.test`.
fn run_among(
    line: &str,
    file: &File,
    servers: &[(&str, SocketAddr)],
) -> Result<PhaseReport, String> {
    let mut line = format!("load {line} --no-server-watch --scenario {}", file.0.display());
    for (name, address) in servers {
        line += &format!(" --connect-to {name}={address}");
    }
    line += &format!(" http://{}", servers[0].0);
    let arguments = Program::try_parse_from(line.split(' ')).unwrap().load;
    let Job { plan, schedule, .. } = arguments.job()?;
    let Schedule::Fixed(phases) = schedule else { panic!("{schedule:?}") };
    let mut engine = Engine::prepare(&plan, Box::new(Free)).map_err(|error| error.to_string())?;
    Ok(engine.run(&phases[0], &mut |_| Control::Continue))
}

const SIGNING_IN: &str = "\
[[user]]
[[user.step]]
request = '/account?u={user}'
basic = 'anna:secret'
fields = { x-a = 'b' }
[[user.step]]
request = 'POST http://login.test/token'
form = { of = '{user}' }
capture = { token = 'json /token' }
[[user.step]]
request = '/things'
bearer = '{token}'
expect = { contains = 'things of' }
";

/// The shop sends who is not known to another server, which sends them back.
fn signing_shop(came: &Came) -> Reply {
    let (path, query) = came.target.split_once('?').unwrap_or((&came.target, ""));
    assert_eq!(came.field("host"), "shop.test");
    match path {
        "/account" => {
            assert_eq!(came.field("authorization"), "Basic YW5uYTpzZWNyZXQ=");
            let fields = format!(
                "set-cookie: cart={query}; Path=/\r\nlocation: http://login.test/in?{query}\r\n"
            );
            reply(302, &fields, "")
        }
        "/back" => {
            assert_eq!(came.field("cookie"), format!("cart={query}"));
            assert_eq!(came.field("authorization"), "Basic YW5uYTpzZWNyZXQ=");
            reply(200, "", "welcome")
        }
        _ => {
            let of = came.field("cookie").strip_prefix("cart=u=").unwrap();
            assert_eq!(came.field("authorization"), format!("Bearer of-{of}"));
            reply(200, "", &format!("things of {of}"))
        }
    }
}

fn signing_login(came: &Came) -> Reply {
    assert_eq!(came.field("host"), "login.test");
    assert_eq!(came.field("authorization"), "", "credentials are for the server of their step");
    let (path, query) = came.target.split_once('?').unwrap_or((&came.target, ""));
    match path {
        "/in" => {
            assert_eq!((came.field("cookie"), came.field("x-a")), ("", "b"));
            let fields = format!(
                "set-cookie: sso={query}; Path=/; Domain=login.test\r\n\
                 set-cookie: stolen=1; Path=/; Domain=test\r\n\
                 set-cookie: other=1; Path=/; Domain=shop.test\r\n\
                 location: http://shop.test/back?{query}\r\n"
            );
            reply(303, &fields, "")
        }
        _ => {
            let of = came.body.strip_prefix("of=").unwrap();
            assert_eq!(came.field("cookie"), format!("sso=u={of}"));
            reply(200, "", &format!("{{\"token\":\"of-{of}\"}}"))
        }
    }
}

#[test]
fn users_go_from_server_to_server_and_take_no_secret_along() {
    let (shop, login) = (Shop::open(signing_shop), Shop::open(signing_login));
    let servers = [("shop.test", shop.address), ("login.test", login.address)];
    let file = File::new("signing-in", SIGNING_IN);
    for line in ["-n 60 --users 7 -c 9 -t 2", "-n 60 --rate 2k -c 2 -t 1", "-n 60 --users 1"] {
        let report = run_among(line, &file, &servers).unwrap();
        assert!(report.failures.is_empty(), "{line}: {:?}", report.failures);
        assert_eq!(
            (report.counts.completed, report.kinds.users.unwrap().finished),
            (300, 60),
            "{line}"
        );
        assert!(report.kinds.requests.iter().all(|one| one.completed == 60), "{line}");
    }
    assert_eq!((shop.came().len(), login.came().len()), (540, 360));
}

#[test]
fn a_server_among_several_that_is_not_there_is_named() {
    let shop = Shop::open(|_| reply(200, "", ""));
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = "[[user]]\n[[user.step]]\nrequest = '/'\n\
                [[user.step]]\nrequest = 'http://gone.test/'\n";
    let file = File::new("gone-server", text);
    let servers = [("shop.test", shop.address), ("gone.test", gone)];
    let said = run_among("-n 5", &file, &servers).unwrap_err();
    assert!(said.contains(&format!("no connection to {gone}: connection refused")), "{said}");
    assert!(shop.came().is_empty());
    for (line, why) in [
        ("-c 1", "-c 1: each of the 2 servers of the scenario needs a connection"),
        ("-c 3 -t 2", "as many connections to each of 2 servers, but -c is 3"),
        ("--users 2 -c 5", "some would have no user"),
        ("--http3", "--http3 needs TLS"),
        ("--connect-to other.test=127.0.0.1:1", "no request goes to `other.test`"),
    ] {
        let said = run_among(line, &file, &servers).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
}

#[test]
fn a_server_among_several_that_goes_away_ends_the_run() {
    let (shop, other) = (Shop::open(|_| reply(200, "", "")), Planted::start(Behaviour::default()));
    let address = other.address;
    let text = "[[user]]\n[[user.step]]\nrequest = '/'\nthink = '1ms'\n\
                [[user.step]]\nrequest = 'http://other.test/'\n";
    let file = File::new("going-server", text);
    let path = file.0.display();
    let line = format!(
        "load --users 20 -c 4 -n 1000000 --no-server-watch --scenario {path} --connect-to \
         shop.test={} --connect-to other.test={address} http://shop.test",
        shop.address
    );
    let arguments = Program::try_parse_from(line.split(' ')).unwrap().load;
    let Job { plan, schedule, .. } = arguments.job().unwrap();
    let Schedule::Fixed(phases) = schedule else { panic!("{schedule:?}") };
    let mut engine = Engine::prepare(&plan, Box::new(Free)).unwrap();
    let mut other = Some(other);
    let report = engine.run(&phases[0], &mut |_| {
        other = None;
        Control::Continue
    });
    let died = bolide_probe::progress::Runner::server_died_after_ns(&engine).unwrap();
    assert!(died <= report.elapsed_ns, "{died} {}", report.elapsed_ns);
    assert!(report.counts.completed > 0 && report.counts.completed < 1_000_000);
}

//! Non-interference: what a connection is told, and what its upstream is asked on its behalf, is the same whatever another
//! connection of the worker sends.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bolide_connection::Connection;
use bolide_eventloop::Limits as LoopLimits;
use bolide_reverse_proxy::{ProxySettings, ReverseProxy, Upstream};
use bolide_semantics::{
    Content, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, ResponseHead, Role as Side,
};
use bolide_server::{Destination, Limits, Router, StatusCode, worker_service};
use bolide_simnet::{Faults, Random, Simulation, Wire, for_each_seed};

use crate::party::{Orders, Party, Role};
use crate::runs::{LONG, wall_clock};

const SEEDS: u64 = 128;

const UPSTREAM: &str = "203.0.113.1:9000";

/// Requests to the upstream, by the name in the path.
type Log = Rc<RefCell<Vec<String>>>;

/// A server that answers with all that a request says, and notes it.
struct Mirror {
    log: Log,
    open: HashMap<ExchangeId, String>,
}

impl Mirror {
    fn answer(&self, id: ExchangeId, text: String, orders: &mut Orders<'_>) {
        let length = text.len().to_string();
        let fields = [
            FieldRef::known(FieldName::ContentLength, length.as_bytes()),
            FieldRef::named("x-said", text.lines().next().unwrap_or_default().as_bytes()),
        ];
        let head = ResponseHead::new(StatusCode::OK, &fields);
        let follows = Content::Follows;
        self.log.borrow_mut().push(text.clone());
        if orders.connection.send_response(&mut orders.cx, id, &head, follows).is_ok() {
            orders.ordered = true;
            orders.send(id, text.into_bytes());
        }
    }
}

impl Role for Mirror {
    fn event(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        let end = match event {
            ExchangeEvent::Head(end) => {
                let head = &orders.cx.head;
                let mut text = format!("{} {}", head.method(), head.path_and_query());
                for field in head.fields() {
                    text += &format!("\n{}: {}", field.name, field.value.escape_ascii());
                }
                self.open.insert(id, text + "\n");
                end
            }
            ExchangeEvent::Data(data, end) => {
                if let Some(text) = self.open.get_mut(&id) {
                    *text += &data.escape_ascii().to_string();
                }
                end
            }
            ExchangeEvent::Aborted(_) => {
                self.open.remove(&id);
                return;
            }
            _ => End::No,
        };
        if end == End::Yes
            && let Some(text) = self.open.remove(&id)
        {
            self.answer(id, text, orders);
        }
    }

    fn settled(&mut self, _: &mut Orders<'_>) {}
}

/// Pieces that a client sends, and how long it waits after each.
type Script = Vec<(Vec<u8>, Duration)>;

/// A request over HTTP/1.1, whose body comes by length or in chunks.
fn request(name: &str, random: &mut Random) -> Vec<u8> {
    let method = ["GET", "POST", "PUT"][random.within(0..=2)];
    let body = if method == "GET" { 0 } else { random.within(0..=3000) };
    let secret = if random.once_in(2) { format!("cookie: {name}\r\n") } else { String::new() };
    let mut bytes = format!("{method} /{name} HTTP/1.1\r\nhost: a\r\n{secret}").into_bytes();
    let content = name.repeat(body / name.len() + 1);
    let content = &content[..body];
    if method == "GET" {
        bytes.extend(b"\r\n");
    } else if random.once_in(2) {
        bytes.extend(format!("content-length: {body}\r\n\r\n{content}").bytes());
    } else {
        bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
        let pieces = content.as_bytes().chunks(random.within(1..=400));
        for piece in pieces {
            bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
            bytes.extend([piece, b"\r\n"].concat());
        }
        bytes.extend(b"0\r\n\r\n");
    }
    bytes
}

/// Requests in pieces. `wrong_in`: one of so many bytes is another; 0: none.
fn script(name: &str, wrong_in: u32, random: &mut Random) -> Script {
    let count = random.within(1..=6);
    let mut bytes: Vec<u8> = (0..count).flat_map(|_| request(name, random)).collect();
    for byte in &mut bytes {
        if random.once_in(wrong_in) {
            *byte ^= 1 << random.within(0..=6);
        }
    }
    let mut script = Vec::new();
    while !bytes.is_empty() {
        let rest = bytes.split_off(random.within(1..=2000).min(bytes.len()));
        let wait = Duration::from_millis(random.within(0..=3) as u64);
        script.push((std::mem::replace(&mut bytes, rest), wait));
    }
    script
}

fn client(script: &Script) -> impl FnMut(&mut Wire<'_>) + use<> {
    let mut rest: std::collections::VecDeque<_> = script.iter().cloned().collect();
    let mut due = Duration::ZERO;
    move |wire: &mut Wire<'_>| {
        while wire.now() >= due && !wire.was_reset() && !wire.eof() {
            let Some((bytes, wait)) = rest.pop_front() else { break };
            wire.send(&bytes);
            due = wire.now() + wait;
        }
        if !rest.is_empty() && due > wire.now() {
            wire.wake_after(due - wire.now());
        }
    }
}

/// Returns what each of these clients receives through one proxy, and what the upstream was asked for it.
fn play(scheme: &str, scripts: &[(&str, &Script)]) -> Vec<(Vec<u8>, Vec<String>)> {
    let start = Instant::now();
    let upstream = Upstream::parse(&format!("{scheme}://{UPSTREAM}")).expect("an upstream");
    let settings = ProxySettings::new(vec![upstream]).expect("settings");
    let settings = settings.pseudonym("bolide").expect("a name");
    let make = move |_| {
        let router = Router::new().fallback(ReverseProxy::new(&settings));
        worker_service(router, Limits::default(), wall_clock, start)
    };
    let mut simulation = Simulation::with(1, Faults::none(), LoopLimits::default(), make);
    let log = Log::default();
    let noted = Rc::clone(&log);
    let to = Destination::Inet(UPSTREAM.parse().expect("an address"));
    simulation.answer(to, move || {
        let connection = Connection::new(Side::Server, None, start);
        let mirror = Mirror { log: Rc::clone(&noted), open: HashMap::new() };
        let mut party = Party::new(connection, start, mirror);
        move |wire: &mut Wire<'_>| party.advance(wire)
    });
    let clients: Vec<_> =
        scripts.iter().map(|(_, script)| simulation.connect(client(script))).collect();
    simulation.run_for(LONG);
    assert_eq!(simulation.stats().panics, 0);
    let asked = log.borrow();
    let of = |name: &str| asked.iter().filter(|text| text.contains(name)).cloned().collect();
    let received = clients.into_iter().map(|client| simulation.received(client));
    received.zip(scripts).map(|(bytes, (name, _))| (bytes, of(name))).collect()
}

#[test]
fn what_one_client_sends_changes_nothing_of_another_on_either_side_of_the_proxy() {
    for_each_seed(0..SEEDS, |seed| {
        let scheme = ["http", "h2c"][(seed % 2) as usize];
        let mut random = Random::new(seed);
        let victim = script("victim-1", 0, &mut random);
        let wrong_in = [0, 20, 200, 2000][random.within(0..=3)];
        let attacker = script("attack-2", wrong_in, &mut random);
        let alone = play(scheme, &[("victim-1", &victim)]);
        assert!(!alone[0].1.is_empty(), "the upstream is asked");
        let together = play(scheme, &[("victim-1", &victim), ("attack-2", &attacker)]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            alone[0].0 == together[0].0,
            "the victim is told something else: {}\n---\n{}",
            text(&alone[0].0),
            text(&together[0].0)
        );
        assert_eq!(alone[0].1, together[0].1, "the upstream is asked something else");
        assert!(!text(&together[0].0).contains("attack-2"), "the victim got what another sent");
        assert!(!text(&together[1].0).contains("victim-1"), "the attacker got what another sent");
    });
}

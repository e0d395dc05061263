//! RFC 9000 §8, §9, §13.4, §14, RFC 9001 §6: networks that change, and what is said before and after a connection.

use std::time::Duration;

use bolide_quic_pair::{Side, World, address, start, tls};
use bolide_semantics::{Content, End, ExchangeEvent, ExchangeId, ResponseHead, Role};
use bytes::Bytes;
use http::{Method, StatusCode};

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// The port of the client after it has moved.
const OTHER_PORT: u16 = 50_001;

/// Bytes that each side of a transfer sends.
const BODY_BYTES: usize = 300_000;

/// A request with a body, and its response with one, both under way.
struct Transfer {
    id: ExchangeId,
    left: [Bytes; 2],
    came: [usize; 2],
    begun: bool,
}

impl Transfer {
    fn begin(world: &mut World) -> Self {
        let now = world.now;
        let id = world.client().request(now, &Method::POST, "/", End::No);
        let left = [(); 2].map(|()| Bytes::from(vec![7; BODY_BYTES]));
        Self { id, left, came: [0; 2], begun: false }
    }

    /// A step in which both sides give what they can.
    fn step(&mut self, world: &mut World) {
        world.step();
        let now = world.now;
        for at in [CLIENT, SERVER] {
            for (id, event) in std::mem::take(&mut world.sides[at].seen) {
                match event {
                    ExchangeEvent::Head(_) if at == SERVER => {
                        let head = ResponseHead::new(StatusCode::OK, &[]);
                        let follows = Content::Follows;
                        let sent = world.sides[at]
                            .with(now, |http, cx| http.send_response(cx, id, &head, follows));
                        assert!(sent.is_ok(), "{sent:?}");
                        self.begun = true;
                    }
                    ExchangeEvent::Data(bytes, _) => {
                        self.came[at] += bytes.len();
                        world.sides[at].with(now, |http, cx| http.consumed(cx, id, bytes.len()));
                    }
                    ExchangeEvent::Head(_) | ExchangeEvent::Sendable => {}
                    other => panic!("{other:?}"),
                }
            }
            if at == SERVER && !self.begun {
                continue;
            }
            let left = &mut self.left[at];
            while !left.is_empty() {
                let piece = left.slice(..left.len().min(10_000));
                let rest = left.slice(piece.len()..);
                // A response that ends before its request does ends the exchange.
                if rest.is_empty() && at == SERVER && self.came[SERVER] < BODY_BYTES {
                    break;
                }
                let end = if rest.is_empty() { End::Yes } else { End::No };
                let id = self.id;
                let sent = world.sides[at].with(now, |http, cx| http.send_data(cx, id, piece, end));
                match sent {
                    Ok(may_go_on) => {
                        *left = rest;
                        if !may_go_on {
                            break;
                        }
                    }
                    Err(_) => break,
                }
            }
            world.flush(at);
        }
    }

    /// Until both bodies have arrived.
    #[track_caller]
    fn end(&mut self, world: &mut World) {
        for _ in 0..20_000 {
            if self.came == [BODY_BYTES; 2] {
                return;
            }
            self.step(world);
            let closed = world.sides.each_ref().map(|side| side.closed);
            assert_eq!(closed, [None, None], "{:?} came", self.came);
        }
        panic!("it never ends: {:?} came", self.came);
    }

    /// Until a part of both has arrived.
    #[track_caller]
    fn middle(&mut self, world: &mut World) {
        for _ in 0..20_000 {
            if self.came.iter().all(|came| *came >= BODY_BYTES / 10) {
                return;
            }
            self.step(world);
        }
        panic!("it does not get there: {:?} came", self.came);
    }
}

#[test]
fn a_client_that_a_router_gives_another_port_goes_on() {
    let mut world = World::connected(1);
    let mut transfer = Transfer::begin(&mut world);
    transfer.middle(&mut world);
    world.client().address = address(OTHER_PORT);
    transfer.end(&mut world);
    // Before the server has heard of it, it sends to where the client was.
    assert!(world.strays.contains_key(&address(50_000)), "{:?}", world.strays);
}

#[test]
fn who_repeats_a_clients_datagrams_elsewhere_is_not_sent_much() {
    let mut world = World::connected(2);
    let mut transfer = Transfer::begin(&mut world);
    transfer.middle(&mut world);
    let attacker = address(OTHER_PORT);
    let mut repeated = 0;
    for _ in 0..200 {
        // They come from there first.
        let seen = world.wire.iter().find(|(_, at, _)| *at == SERVER).cloned();
        if let Some((_, _, bytes)) = seen {
            repeated += bytes.len();
            world.arrive_from(attacker, SERVER, &bytes);
            world.flush(SERVER);
        }
        transfer.step(&mut world);
    }
    let sent = world.strays.get(&attacker).copied().unwrap_or(0);
    assert!(sent <= 3 * repeated, "{sent} bytes for {repeated}");
    transfer.end(&mut world);
}

#[test]
fn datagrams_become_as_large_as_the_path_lets_through() {
    for (mtu, most) in [(usize::MAX, 1452), (1300, 1300), (1200, 1200)] {
        let mut world = World::connected(3);
        world.mtu = mtu;
        let mut largest = 0;
        for _ in 0..4 {
            let mut transfer = Transfer::begin(&mut world);
            transfer.end(&mut world);
            let arrived = world.wire.iter().map(|(_, _, bytes)| bytes.len()).max();
            largest = largest.max(arrived.unwrap_or(0));
        }
        assert!((most.min(1280)..=most).contains(&largest), "{largest} of {most}");
    }
}

#[test]
fn a_path_that_lets_less_through_than_before_is_found_out_about() {
    let mut world = World::connected(4);
    Transfer::begin(&mut world).end(&mut world);
    let mut transfer = Transfer::begin(&mut world);
    transfer.middle(&mut world);
    world.mtu = 1250;
    transfer.end(&mut world);
}

#[test]
fn ecn_is_used_where_the_network_keeps_it_and_nowhere_else() {
    const ECT0: u8 = 0b10;
    for (network, after) in [(ECT0, ECT0), (0, 0)] {
        let mut world = World::new(5, 0);
        world.ecn = network;
        world.turn();
        assert_eq!(world.sent[CLIENT].ecn, ECT0, "both sides try");
        world.until("streams", |world| world.sides[CLIENT].available() >= 100);
        Transfer::begin(&mut world).end(&mut world);
        assert_eq!(world.sent.map(|sent| sent.ecn), [after; 2]);
    }
}

#[test]
fn keys_change_in_the_middle_of_a_transfer() {
    let mut world = World::connected(6);
    world.loss_percent = 3;
    for round in 0..6 {
        let mut transfer = Transfer::begin(&mut world);
        transfer.middle(&mut world);
        let quic = world.sides[round % 2].quic.as_mut().expect("a connection");
        quic.update_keys();
        transfer.end(&mut world);
    }
}

#[test]
fn a_long_way_is_no_reason_to_give_up() {
    let mut world = World::new(7, 1);
    world.delay = Duration::from_millis(600);
    world.turn();
    world.until("streams", |world| world.sides[CLIENT].available() >= 100);
    Transfer::begin(&mut world).end(&mut world);
}

#[test]
fn a_network_that_is_gone_for_seconds_loses_nothing() {
    let mut world = World::connected(8);
    let mut transfer = Transfer::begin(&mut world);
    transfer.middle(&mut world);
    world.loss_percent = 100;
    let back = world.now + Duration::from_secs(4);
    while world.now < back {
        transfer.step(&mut world);
    }
    world.loss_percent = 0;
    transfer.end(&mut world);
}

#[test]
fn a_client_that_does_not_respond_is_sent_three_times_what_it_has_sent() {
    let mut world = World::new(9, 0);
    world.turn();
    let sent: usize = world.wire.iter().map(|(_, _, bytes)| bytes.len()).sum();
    // There is no client where its Initial comes from.
    world.sides[CLIENT].address = address(OTHER_PORT);
    let initials = std::mem::take(&mut world.wire);
    for (_, _, bytes) in initials {
        world.arrive_from(address(50_000), SERVER, &bytes);
    }
    let mut until_over = 0;
    while world.sides[SERVER].quic.as_ref().is_some_and(|quic| !quic.is_over()) {
        world.flush(SERVER);
        world.wire.clear();
        let server = &mut world.sides[SERVER];
        let quic = server.quic.as_mut().expect("a connection");
        let Some(deadline) = quic.deadline() else { break };
        world.now = world.now.max(deadline);
        quic.advance(&mut server.endpoint, world.now);
        until_over += 1;
        assert!(until_over < 1000, "it is kept for ever");
    }
    let answered = world.strays.values().sum::<usize>();
    assert!(answered > 0 && answered <= 3 * sent, "{answered} bytes for {sent}");
}

#[test]
fn a_connection_that_its_server_has_forgotten_is_reset() {
    let mut world = World::connected(10);
    let server = world.server();
    let quic = server.quic.take().expect("a connection");
    quic.forget(&mut server.endpoint);
    let now = world.now;
    world.client().request(now, &Method::GET, "/", End::Yes);
    world.turn();
    world.until("the reset", |world| world.sides[CLIENT].closed.is_some());
    assert_eq!(world.sides[CLIENT].closed, Some("reset"));
    assert!(world.now - start() < Duration::from_secs(3), "it did not have to wait");
}

#[test]
fn an_unknown_version_is_answered_by_the_known_ones() {
    let (tls, client) = tls();
    let server = Side::new(Role::Server, Some(&tls), 1);
    let mut world = World::between(server, &client, 11, 0);
    for (length, is_answered) in [(1200, true), (1199, false)] {
        let mut initial = vec![0; length];
        initial[..6].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8]);
        initial[6..14].copy_from_slice(b"to-there");
        initial[14] = 8;
        initial[15..23].copy_from_slice(b"and-back");
        world.wire.clear();
        world.arrive(SERVER, &initial);
        let responses: Vec<_> = world.wire.iter().map(|(_, _, bytes)| bytes.clone()).collect();
        assert_eq!(responses.len(), usize::from(is_answered));
        let Some(response) = responses.first() else { continue };
        // RFC 9000 §17.2.1: version 0, the identifiers the other way round, and what is supported.
        assert!(response[0] & 0x80 != 0 && response[1..5] == [0; 4], "{response:x?}");
        assert_eq!(response[5..23], *b"\x08and-back\x08to-there");
        assert!(response[23..].chunks(4).any(|version| version == [0, 0, 0, 1]), "{response:x?}");
        assert!(response.len() < length, "it is smaller than what it answers");
    }
}

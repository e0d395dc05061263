//! RFC 9002 §7: a page of small objects over a path that loses some datagrams, although nothing is congested.

use std::time::Duration;

use bolide_quic::{Congestion, CongestionControl, Endpoint};
use bolide_quic_pair::{CLOCK, Side, World, tls};
use bolide_semantics::{Content, End, ExchangeEvent, ResponseHead, Role};
use bytes::Bytes;
use http::{Method, StatusCode};

const OBJECTS: usize = 32;

/// Sends what was requested; takes what has come for the client, and counts what is complete.
fn turn(world: &mut World) -> usize {
    let now = world.now;
    let server = world.server();
    for (id, event) in std::mem::take(&mut server.seen) {
        assert!(matches!(event, ExchangeEvent::Head(End::Yes)), "{event:?}");
        let sent = server.with(now, |http, cx| {
            let head = ResponseHead::new(StatusCode::OK, &[]);
            let begun = http.send_response(cx, id, &head, Content::Follows);
            begun.and_then(|_| http.send_data(cx, id, Bytes::from(vec![7; 20_000]), End::Yes))
        });
        assert!(sent.is_ok(), "{sent:?}");
    }
    let client = world.client();
    let mut complete = 0;
    for (id, event) in std::mem::take(&mut client.seen) {
        if let ExchangeEvent::Data(bytes, end) = event {
            client.with(now, |http, cx| http.consumed(cx, id, bytes.len()));
            complete += usize::from(end == End::Yes);
        }
    }
    complete
}

/// How long a page takes with its handshake, where a round trip is 50 ms, in milliseconds.
fn page(congestion: Congestion, seed: u64, loss_percent: u64) -> u128 {
    let (server, client) = tls();
    let mut side = Side::new(Role::Server, None, 1);
    let endpoint =
        Endpoint::new(Some(&server), CLOCK, [1; 32]).expect("settings that have TLS 1.3");
    side.endpoint = endpoint.with_congestion(congestion);
    let mut world = World::between(side, &client, seed, loss_percent);
    (world.delay, world.jitter) = (Duration::from_millis(25), Duration::ZERO);
    world.mtu = 1472;
    let begun = world.now;
    world.turn();
    world.until("streams", |world| world.sides[0].available() as usize >= OBJECTS);
    let now = world.now;
    for _ in 0..OBJECTS {
        world.client().request(now, &Method::GET, "/", End::Yes);
    }
    let mut complete = 0;
    while complete < OBJECTS {
        world.step();
        complete += turn(&mut world);
    }
    (world.now - begun).as_millis()
}

/// The median of as many pages.
fn median(congestion: Congestion, loss_percent: u64) -> u128 {
    let mut times: Vec<u128> = (0..41).map(|seed| page(congestion, seed, loss_percent)).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn losses_without_congestion_hardly_slow_bbr_down() {
    let of = |control| Congestion { control, ..Congestion::default() };
    let (cubic, bbr) = (of(CongestionControl::Cubic), of(CongestionControl::Bbr));
    let lossless = page(bbr, 1, 0);
    let (cubic, bbr) = (median(cubic, 2), median(bbr, 2));
    assert!(bbr < lossless + lossless / 4, "{bbr} ms, {lossless} ms without losses");
    assert!(cubic > 2 * bbr, "{cubic} ms with CUBIC, {bbr} ms with BBR");
}

#[test]
fn more_packets_at_first_save_round_trips() {
    let of = |initial_packets| Congestion { initial_packets, ..Congestion::default() };
    let (ten, many) = (of(10), of(32));
    let (slow, fast) = (page(ten, 1, 0), page(many, 1, 0));
    assert!(fast + 50 < slow, "{slow} and {fast} ms without losses");
    let (slow, fast) = (median(ten, 1), median(many, 1));
    assert!(fast + 50 < slow, "{slow} and {fast} ms with losses");
}

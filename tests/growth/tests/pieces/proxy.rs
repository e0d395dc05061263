//! Pieces that pass through the proxy.

use bolide_eventloop::Service;
use bolide_frames::{
    client_preface, data, headers, request, rst_stream, settings, upgrade, websocket_request,
};
use bolide_reverse_proxy::{ProxyLimits, ProxySettings, ReverseProxy, Upstream};
use bolide_server::{Destination, Router};
use bolide_simnet::Simulation;

use crate::cost::Cost;
use crate::table::Carrier;
use crate::talk::{Pace, Talk, measure, network, simulation};
use crate::wire::{CHUNK, chunked};

const UPSTREAM: &str = "203.0.113.1:9000";

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// How many interim responses one exchange has: less than its limit.
const INTERIM: usize = 25;

pub(crate) const CARRIERS: &[Carrier] = &[
    Carrier::new("proxy: request in HTTP/1.1 chunks of 1 byte, to HTTP/1.1", 5000, |count| {
        upload("http", Talk::new(""), count, Pace::OneByOne)
    }),
    Carrier::new("proxy: the same, to HTTP/2", 5000, |count| {
        upload("h2c", Talk::new(settings(&[])), count, Pace::OneByOne)
    }),
    Carrier::new("proxy: the same, to an upstream that doesn't read", 20_000, |count| {
        upload("http", Talk::new("").deaf(), count, Pace::AtOnce)
    }),
    Carrier::new(
        "proxy: the same, while the request waits for a connection",
        20_000,
        waiting_upload,
    ),
    Carrier::new("proxy: request in DATA frames of 1 byte, to HTTP/1.1", 2000, |count| {
        let greeting = [client_preface(&[]), request(1, "POST", "/", false)].concat();
        let client = Talk::new(greeting).pieces(count, Pace::OneByOne, data(1, false, b"x"));
        through("http", vec![client], || Talk::new(""), count)
    }),
    Carrier::new("proxy: response in HTTP/1.1 chunks of 1 byte", 5000, |count| {
        download(Talk::new(GET), count)
    }),
    Carrier::new("proxy: the same, to a client that doesn't read", 20_000, |count| {
        download(Talk::new(GET).deaf(), count)
    }),
    Carrier::new(
        "proxy: response in DATA frames of 1 byte, to a client that doesn't read",
        2000,
        |count| {
            let upstream = move || {
                let talk =
                    Talk::new(settings(&[])).opening(headers(1, false, &[(":status", "200")]));
                talk.pieces(count, Pace::OneByOne, data(1, false, b"x"))
            };
            through("h2c", vec![Talk::new(GET).deaf()], upstream, count)
        },
    ),
    Carrier::new("proxy: interim responses of HTTP/1.1, 25 for each request", 500, |count| {
        let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n";
        let clients = (0..count / INTERIM).map(|_| Talk::new(GET)).collect();
        let upstream = move || Talk::new("").pieces(INTERIM, Pace::AtOnce, interim);
        through("http", clients, upstream, count)
    }),
    Carrier::new("proxy: interim responses of HTTP/2, 25 for each request", 500, |count| {
        let clients = (0..count / INTERIM).map(|_| Talk::new(GET)).collect();
        let upstream = move || {
            let fields = [(":status", "103"), ("link", "</a>; rel=preload")];
            let interim = move |nth: usize| headers((nth / INTERIM) as u32 * 2 + 1, false, &fields);
            Talk::new(settings(&[])).each_piece(count, Pace::AtOnce, interim)
        };
        through("h2c", clients, upstream, count)
    }),
    Carrier::new("proxy: tunnel of HTTP/1.1, reads of 1 byte", 5000, |count| {
        let client = Talk::new(upgrade("/ws", "")).pieces(count, Pace::OneByOne, "x");
        through("http", vec![client], || Talk::new(SWITCHED), count)
    }),
    Carrier::new(
        "proxy: tunnel of HTTP/2 in DATA frames of 1 byte, to HTTP/1.1 that doesn't read",
        10_000,
        |count| {
            let greeting = [client_preface(&[]), websocket_request(1, "/ws")].concat();
            let client = Talk::new(greeting).pieces(count, Pace::OneByOne, data(1, false, b"x"));
            through("http", vec![client], || Talk::new(SWITCHED).deaf(), count)
        },
    ),
    Carrier::new("proxy: requests of HTTP/1.1 that wait for a connection", 500, |count| {
        let clients = (0..count).map(|_| Talk::new("").opening(GET)).collect();
        through("http", clients, || Talk::new(""), count)
    }),
    Carrier::new(
        "proxy: requests of HTTP/2 that wait for a connection and are given up",
        2000,
        given_up,
    ),
];

/// A proxy with one connection to each upstream.
fn proxied(scheme: &str, upstream: impl FnMut() -> Talk + 'static) -> Simulation<impl Service> {
    let url = Upstream::parse(&format!("{scheme}://{UPSTREAM}")).expect("an upstream");
    let few = ProxyLimits { connections_count: 1, ..ProxyLimits::default() };
    let limits = if scheme == "http" { ProxyLimits::default() } else { few };
    with_limits(url, limits, upstream)
}

fn with_limits(
    url: Upstream,
    limits: ProxyLimits,
    upstream: impl FnMut() -> Talk + 'static,
) -> Simulation<impl Service> {
    let settings = ProxySettings::new(vec![url]).expect("settings").limits(limits);
    let settings = settings.pseudonym("bolide").expect("a name");
    let router = move || Router::new().fallback(ReverseProxy::new(&settings));
    let mut simulation = simulation(network(64 * 1024), router);
    simulation.answer(Destination::Inet(UPSTREAM.parse().expect("an address")), upstream);
    simulation
}

fn through(
    scheme: &str,
    clients: Vec<Talk>,
    upstream: impl FnMut() -> Talk + 'static,
    count: usize,
) -> Cost {
    let mut simulation = proxied(scheme, upstream);
    for client in clients {
        simulation.connect(client);
    }
    measure(simulation, count)
}

fn upload(scheme: &str, upstream: Talk, count: usize, pace: Pace) -> Cost {
    let client = Talk::new(chunked("/")).pieces(count, pace, CHUNK);
    let mut upstream = Some(upstream);
    through(scheme, vec![client], move || upstream.take().unwrap_or_else(|| Talk::new("")), count)
}

fn download(client: Talk, count: usize) -> Cost {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let upstream = move || Talk::new("").opening(head).pieces(count, Pace::OneByOne, CHUNK);
    through("http", vec![client], upstream, count)
}

fn one_connection(upstream: impl FnMut() -> Talk + 'static) -> Simulation<impl Service> {
    let url = Upstream::parse(&format!("http://{UPSTREAM}")).expect("an upstream");
    with_limits(url, ProxyLimits { connections_count: 1, ..ProxyLimits::default() }, upstream)
}

fn waiting_upload(count: usize) -> Cost {
    let mut simulation = one_connection(|| Talk::new(""));
    simulation.connect(Talk::new(GET));
    simulation.connect(Talk::new(chunked("/")).pieces(count, Pace::OneByOne, CHUNK));
    measure(simulation, count)
}

/// Requests on 50 connections, of which each cancels what it has asked for. Fewer than the budget for resets takes.
fn given_up(count: usize) -> Cost {
    const EACH: usize = 50;
    let mut simulation = one_connection(|| Talk::new(""));
    simulation.connect(Talk::new(GET));
    for _ in 0..count / EACH {
        let all = |nth: usize| {
            let stream = (nth % EACH) as u32 * 2 + 1;
            match nth < EACH {
                true => request(stream, "GET", "/", true),
                false => rst_stream(stream, 8),
            }
        };
        simulation.connect(Talk::new(client_preface(&[])).each_piece(2 * EACH, Pace::AtOnce, all));
    }
    measure(simulation, count)
}

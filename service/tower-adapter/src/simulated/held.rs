//! Memory that a client makes the adapter keep: each charge is driven to its bound, and what the allocator counts is held against what the worker's
//! account says.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use allocation_counter::{measure, opt_out};
use bolide_frames::{
    INITIAL_WINDOW_SIZE, client_preface, data, headers, request, websocket_request,
};
use bolide_server::{Bytes, Router, WHOLE_BODY_BYTES, worker_service};
use bolide_simnet::{Faults, Simulation, Wire};
use http_body::Frame;
use hyper::upgrade::OnUpgrade;
use tokio::runtime::Builder;

use super::wall_clock;
use crate::handler::{Recipe, TowerHandler};
use crate::{Body, default_limits};

/// Memory that a connection has of its own before it is charged with anything, and that the worker keeps for the next one, in bytes.
const UNCHARGED_BYTES: usize = 64 * 1024;

/// How large the pieces of the service's responses are, in bytes: after a first one of this size a second one is asked for.
const FIRST_BYTES: usize = 16 * 1024;
const SECOND_BYTES: usize = 128 * 1024;

/// Bytes that a client sends by each tunnel.
const PIPED_BYTES: usize = 16 * 1024;

/// The tunnels that the service has taken.
static TAKEN: Mutex<Vec<OnUpgrade>> = Mutex::new(Vec::new());

/// More than a client sends.
const NETWORK_BYTES: usize = 8 << 20;

const REST: Duration = Duration::from_secs(1);

/// Something that a client makes the adapter keep.
struct Charge {
    what: &'static str,
    /// The limits that bound it.
    bound: &'static str,
    /// Bound for one connection, in bytes.
    bound_bytes: usize,
    /// Bytes that the client sends on a stream.
    asks: fn(u32) -> Vec<u8>,
}

const CHARGES: &[Charge] = &[
    Charge {
        what: "requests that a tower service has not responded to",
        bound: "`CONCURRENT_STREAMS_COUNT` heads, and bodies of `WHOLE_BODY_BYTES`",
        bound_bytes: 5 << 20,
        asks: |stream| {
            let long = "a".repeat(8 << 10);
            let fields = [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", "/wait"),
                (":authority", "a"),
                ("x", &long),
            ];
            [headers(stream, false, &fields), data(stream, true, &[7; WHOLE_BODY_BYTES])].concat()
        },
    },
    Charge {
        what: "responses of a tower service whose windows are closed",
        bound: "`CONCURRENT_STREAMS_COUNT` times a piece of at most 16 KiB and the service's next one",
        bound_bytes: 16 << 20,
        asks: |stream| request(stream, "GET", "/pieces", true),
    },
    Charge {
        what: "tunnels that a tower service has not taken",
        bound: "`CONCURRENT_STREAMS_COUNT`",
        bound_bytes: 3 << 20,
        asks: |stream| websocket_request(stream, "/wait"),
    },
    Charge {
        what: "tunnels that a tower service has taken and does not read",
        bound: "`CONCURRENT_STREAMS_COUNT` pipes of 64 KiB",
        bound_bytes: 9 << 20,
        asks: |stream| {
            [websocket_request(stream, "/tunnel"), data(stream, false, &[7; PIPED_BYTES])].concat()
        },
    },
];

/// A body without end whose first piece is small.
struct Pieces {
    next_bytes: usize,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::replace(&mut self.next_bytes, SECOND_BYTES);
        Poll::Ready(Some(Ok(Frame::data(vec![7; bytes].into()))))
    }
}

/// Keeps the request and never answers, unless it is for pieces or a tunnel.
async fn serve(mut request: http::Request<Body>) -> Result<http::Response<Pieces>, Infallible> {
    match request.uri().path() {
        "/pieces" => {}
        "/tunnel" => {
            let taken = hyper::upgrade::on(&mut request);
            TAKEN.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
        }
        _ => std::future::pending().await,
    }
    Ok(http::Response::new(Pieces { next_bytes: FIRST_BYTES }))
}

impl Charge {
    /// Returns what one connection is charged with, and what is allocated for it, in bytes.
    fn drive(&self) -> (usize, usize) {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let recipe = Recipe {
            make: || tower::service_fn(serve),
            runtime: runtime.handle().clone(),
            finish: None,
            extend: Vec::new(),
            informs: false,
            body_bytes_max: u64::MAX,
        };
        let router = Router::new().fallback(TowerHandler::new(recipe));
        let (segment_bytes, buffer_bytes) = (NETWORK_BYTES..=NETWORK_BYTES, NETWORK_BYTES);
        let faults = Faults { segment_bytes, buffer_bytes, ..Faults::none() };
        let mut simulation = Simulation::with(1, faults, Default::default(), |_| {
            worker_service(router, default_limits(), wall_clock, Instant::now())
        });
        simulation.around_network(|work| opt_out(work));
        let mut bytes = client_preface(&[(INITIAL_WINDOW_SIZE, 0)]);
        bytes.extend((1..200).step_by(2).flat_map(self.asks));
        // What a worker allocates once.
        let first = bytes.clone();
        simulation.connect(move |wire: &mut Wire<'_>| {
            if wire.is_new() {
                wire.send(&first);
                wire.wake_after(REST);
            } else if wire.now() >= REST {
                wire.reset();
            }
        });
        simulation.run_for(2 * REST);
        assert_eq!((simulation.stats().open, simulation.stats().held_bytes), (0, 0));
        simulation.connect(move |wire: &mut Wire<'_>| {
            if wire.is_new() {
                wire.send(&bytes);
            }
        });
        let counted = measure(|| simulation.run_for(REST));
        let stats = simulation.stats();
        assert_eq!((stats.open, stats.closed.memory), (1, 0), "{}", self.what);
        (stats.held_bytes as usize, usize::try_from(counted.bytes_current).unwrap_or(0))
    }
}

#[test]
fn every_charge_is_within_its_bound_and_the_allocator_agrees() {
    let page = std::fs::read_to_string("../../docs/MEMORY.md").expect("the page");
    let mut wrong = Vec::new();
    for charge in CHARGES {
        let Charge { what, bound, bound_bytes, .. } = charge;
        let row = format!("| {what} | {bound} |");
        let (held, allocated) = charge.drive();
        println!("{row} {} | {} |", held >> 10, allocated >> 10);
        let is_near = (bound_bytes / 4..=*bound_bytes).contains(&held);
        if !is_near || allocated > held * 13 / 10 + UNCHARGED_BYTES || !page.contains(&row) {
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

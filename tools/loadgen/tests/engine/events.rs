//! Streams of Server-Sent Events from servers that stream, stall, cut and fail as planned.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bolide_probe::plan::{EventsPlan, Plan, RequestKind, StreamFormat};
use bolide_probe::report::Failure;

use crate::early::{read_head, serve};
use crate::plans::{plan, rate, requests, run};

/// Action of one response.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// An event.
    Event,
    /// An event that reports an error.
    Error,
    /// A pause, in milliseconds.
    Pause(u64),
    /// The connection closes.
    Cut,
    /// Nothing follows, and the connection stays.
    Stop,
}

/// A server whose `n`th response, from 0, does `acts(n)`, and the times at which its events left.
fn streaming(
    acts: impl Fn(u64) -> Vec<Act> + Send + Sync + 'static,
) -> (SocketAddr, Arc<Mutex<Vec<Vec<Instant>>>>) {
    let times: Arc<Mutex<Vec<Vec<Instant>>>> = Arc::default();
    let (told, count) = (Arc::clone(&times), AtomicU64::new(0));
    let address = serve(move |socket| {
        while read_head(socket) {
            let mut left = Vec::new();
            let goes_on = respond(socket, &acts(count.fetch_add(1, Ordering::SeqCst)), &mut left);
            told.lock().unwrap().push(left);
            if !goes_on {
                return;
            }
        }
    });
    (address, times)
}

/// Returns whether the connection goes on.
fn respond(socket: &mut BufReader<TcpStream>, acts: &[Act], left: &mut Vec<Instant>) -> bool {
    let stream = socket.get_mut();
    stream.set_nodelay(true).unwrap();
    let mut send = |bytes: &[u8]| {
        let _ = stream.write_all(bytes);
    };
    send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for act in acts {
        match act {
            Act::Event => {
                left.push(Instant::now());
                send(b"9\r\ndata: a\n\n\r\n");
            }
            Act::Error => send(b"19\r\nevent: error\ndata: full\n\n\r\n"),
            Act::Pause(ms) => std::thread::sleep(Duration::from_millis(*ms)),
            Act::Cut => return false,
            Act::Stop => {
                // Until the client gives up.
                return read_head(socket);
            }
        }
    }
    send(b"0\r\n\r\n");
    true
}

fn events_plan(address: SocketAddr) -> Plan {
    let mut plan = plan(address);
    plan.requests[0].response = None;
    plan.kind =
        RequestKind::Events(EventsPlan { stall_ns: 100_000_000, format: StreamFormat::Events });
    (plan.connections, plan.threads) = (1, 1);
    plan
}

#[test]
fn gaps_are_those_that_the_server_made() {
    use Act::{Event, Pause};
    let (address, times) =
        streaming(|_| vec![Pause(5), Event, Pause(20), Event, Pause(20), Event, Pause(120), Event]);
    let report = run(&events_plan(address), &requests(5));
    assert_eq!((report.counts.succeeded, report.counts.failed), (5, 0));
    let events = report.kinds.events.unwrap();
    assert_eq!((events.events, events.streams, events.events_per_stream), (20, 5, 4.0));
    assert_eq!((events.first.count, events.gap.count), (5, 15));
    assert!(events.stalls >= 5 && events.first.min_ns >= 5_000_000);
    let times = times.lock().unwrap();
    let made = times.iter().map(|times| *times.last().unwrap() - times[0]);
    let made_ns = made.sum::<Duration>().as_nanos() as f64;
    let seen_ns = events.gap.mean_ns * 15.0;
    // Each stream's first and last event may have been read late, on a busy machine.
    assert!((seen_ns / made_ns - 1.0).abs() < 0.1, "{seen_ns} of {made_ns}");
}

#[test]
fn in_an_open_loop_the_first_event_counts_from_the_intended_time() {
    let (address, _) = streaming(|_| vec![Act::Pause(20), Act::Event]);
    let mut phase = requests(20);
    phase.load = rate(100.0);
    let report = run(&events_plan(address), &phase);
    assert_eq!(report.counts.succeeded, 20);
    // One after the other, 20 ms each, and intended each 10 ms: the last one waits for 190 ms.
    let first = report.kinds.events.unwrap().first;
    assert!(first.max_ns > 190_000_000, "{}", first.max_ns);
}

#[test]
fn every_way_to_fail_is_counted_as_what_it_is() {
    use Act::{Cut, Error, Event, Pause, Stop};
    let (address, _) = streaming(|number| match number {
        0 => vec![Event, Cut],
        1 => vec![Event, Error],
        2 => vec![Event, Stop],
        3 => vec![],
        // Longer than the timeout as a whole, but never without an event for so long.
        4 => [Event, Pause(200)].repeat(8),
        _ => vec![Event],
    });
    let mut plan = events_plan(address);
    plan.timeouts.request_timeout = Duration::from_millis(1000);
    let report = run(&plan, &requests(6));
    assert_eq!(report.counts.succeeded, 2, "{:?}", report.failures);
    assert_eq!(report.failures.get(&Failure::Reset), Some(&1), "{:?}", report.failures);
    assert_eq!(report.failures.get(&Failure::Events), Some(&2), "{:?}", report.failures);
    assert_eq!(report.failures.get(&Failure::Timeout), Some(&1), "{:?}", report.failures);
    assert_eq!(report.kinds.events.unwrap().streams, 2);
}

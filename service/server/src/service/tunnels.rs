//! Cost of a tunnel while its reader waits: in proportion to what arrives, in however many pieces.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use bolide_eventloop::{Limits as LoopLimits, MioKernel, MioListener, Worker};
use bolide_frames::{client_preface, websocket_request};
use bolide_semantics::End;

use super::*;
use crate::Request;
use crate::websocket::{Kind, Options, Owner, Payload, Socket, WebSocket};

/// Receives nothing.
#[derive(Debug)]
struct Deaf;

impl Owner for Deaf {
    fn on_open(&mut self, socket: &mut Socket<'_, '_>) {
        socket.pause();
    }

    fn on_message(&mut self, _: Kind, _: Payload, _: End, _: &mut Socket<'_, '_>) {}
}

/// Returns what a worker allocates in bytes while a WebSocket that receives nothing is sent this many DATA frames of one byte.
fn allocated_for(frames: usize) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let options = Options::new();
    let accept = move |request: &mut Request<'_>| WebSocket::accept(request, &options, Deaf);
    let router = Router::new().websocket("/ws", accept);
    let mut worker = Worker::new(MioKernel::new().unwrap(), LoopLimits::default(), |_| {
        let now = Instant::now();
        HttpService::new(router, Limits::default(), vec![None], SystemTime::now, now)
    });
    worker.listen(MioListener::new(listener.into()).unwrap(), 0).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let opening = [client_preface(&[]), websocket_request(1, "/ws")].concat();
    client.write_all(&opening).unwrap();
    while worker.stats().accepted == 0 {
        worker.step(Some(Duration::from_millis(1))).unwrap();
    }
    let batch = [0, 0, 1, 0, 0, 0, 0, 0, 1, b'x'].repeat(100);
    let mut sent = opening.len() as u64;
    let counted = allocation_counter::measure(|| {
        for _ in 0..frames / 100 {
            client.write_all(&batch).unwrap();
            sent += batch.len() as u64;
            while worker.stats().bytes_received < sent {
                worker.step(Some(Duration::from_millis(1))).unwrap();
                assert_eq!((worker.stats().open, worker.stats().panics), (1, 0), "it is open");
            }
        }
    });
    counted.bytes_total
}

#[test]
fn bytes_that_wait_in_a_tunnel_are_copied_once_however_many_frames_follow() {
    let (few, many) = (allocated_for(4_000), allocated_for(32_000));
    assert!(many < few + 3 * 28_000, "{few} bytes for 4,000 frames, {many} for 32,000");
}

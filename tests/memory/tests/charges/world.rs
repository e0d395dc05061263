//! A worker on this thread, and connections to it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use bolide_eventloop::{Limits as LoopLimits, MioKernel, MioListener, Stats, Worker};
use bolide_server::{Limits, Router, worker_service};

/// Turns of the loop in which nothing changes, after which nothing more is expected.
const QUIET_TURNS: u32 = 20;

const PATIENCE: Duration = Duration::from_secs(20);

/// A worker, turned by the test.
pub(crate) struct World {
    step: Box<dyn FnMut() -> Stats>,
    pub(crate) address: SocketAddr,
    pub(crate) stats: Stats,
    /// Function that is called between two turns: an upstream's part.
    pub(crate) beside: Box<dyn FnMut()>,
}

impl World {
    pub(crate) fn new(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut worker = Worker::new(MioKernel::new().unwrap(), LoopLimits::default(), |_| {
            worker_service(router, Limits::default(), SystemTime::now, Instant::now())
        });
        worker.listen(MioListener::new(listener.into()).unwrap(), 0).unwrap();
        let step = move || {
            worker.step(Some(Duration::from_millis(1))).unwrap();
            worker.stats()
        };
        let beside = Box::new(|| {});
        Self { step: Box::new(step), address, stats: Stats::default(), beside }
    }

    pub(crate) fn turn(&mut self) {
        (self.beside)();
        self.stats = (self.step)();
        assert_eq!(self.stats.panics, 0);
    }

    /// Turns until nothing moves.
    pub(crate) fn settle(&mut self) {
        let start = Instant::now();
        let mut quiet = 0;
        while quiet < QUIET_TURNS {
            let before = self.stats;
            self.turn();
            let Stats { bytes_received, bytes_sent, held_bytes, open, .. } = self.stats;
            let moved = (bytes_received, bytes_sent, held_bytes, open)
                != (before.bytes_received, before.bytes_sent, before.held_bytes, before.open);
            quiet = if moved { 0 } else { quiet + 1 };
            assert!(start.elapsed() < PATIENCE, "it never settles: {:?}", self.stats);
        }
    }

    /// A connection that was accepted.
    pub(crate) fn connect(&mut self) -> TcpStream {
        let accepted = self.stats.accepted;
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nonblocking(true).unwrap();
        while self.stats.accepted == accepted {
            self.turn();
        }
        stream
    }

    /// Sends as much of `bytes` as is taken.
    pub(crate) fn send(&mut self, stream: &mut TcpStream, mut bytes: &[u8]) {
        let mut quiet = 0;
        while !bytes.is_empty() && quiet < QUIET_TURNS {
            match stream.write(bytes) {
                Ok(count) => {
                    bytes = &bytes[count..];
                    quiet = 0;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock, "the worker closed");
                    quiet += 1;
                }
            }
            self.turn();
        }
        self.settle();
    }

    /// Reads what has come.
    pub(crate) fn drain(&mut self, stream: &mut TcpStream) {
        let mut block = [0; 4096];
        self.settle();
        while stream.read(&mut block).is_ok_and(|count| count > 0) {}
    }
}

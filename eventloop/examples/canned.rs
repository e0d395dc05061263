//! Cost of the loop itself: each read is answered with one canned response, in one write.
//!
//!     canned ADDRESS [WORKERS]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bolide_eventloop::{
    Accepted, After, Config, Listeners, Service, Signal, Signals, Turn, raise_file_limit, run,
};

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\npong";

struct Canned;

impl Service for Canned {
    type Session = ();
    type Message = ();

    fn open(&mut self, _: &Accepted, _: Instant) -> Option<((), After)> {
        Some(((), After::IDLE))
    }

    fn turn(&mut self, (): &mut (), turn: &mut Turn<'_, ()>) -> After {
        if turn.eof {
            return After::FINISHED;
        }
        if !turn.input.is_empty() {
            turn.input.consume(turn.input.len());
            turn.output.tail().extend_from_slice(RESPONSE);
        }
        After::IDLE.by(Some(turn.now + Duration::from_secs(60)))
    }

    fn shut_down(&mut self, (): &mut (), _: &mut Turn<'_, ()>) -> After {
        After::FINISHED
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments.next().ok_or("canned ADDRESS [WORKERS]")?.parse()?;
    let workers = arguments.next().map_or(Ok(1), |count| count.parse())?;
    raise_file_limit()?;
    let mut signals = Signals::new(&[Signal::Terminate, Signal::Interrupt])?;
    let mut listeners = Listeners::new(workers);
    listeners.bind(address)?;
    let handle = run(&Config::default(), listeners, |_, _| Canned)?;
    signals.wait();
    handle.shut_down(Duration::from_secs(1));
    for stats in handle.join()? {
        eprintln!("{stats:?}");
    }
    Ok(())
}

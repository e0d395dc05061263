//! Every part but the first: carries out its share of the phases that part 1 begins.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use bolide_probe::engine::{Engine, Mistake};
use bolide_probe::plan::Phase;
use bolide_probe::progress::{Control, Runner as _};
use bolide_probe::stop::Stop;

use super::clock::Clock;
use super::protocol::{Found, MESSAGE_BYTES, Message};
use super::wire::{Heartbeat, Line};

/// Orders that wait: part 1 never sends as many.
const WAITING_COUNT: usize = 64;

/// How often there is a look at whether the run is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Result of this part.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) completed: u64,
    pub(super) failed: u64,
}

/// A part that has joined.
#[derive(Debug)]
pub(super) struct Other<'a> {
    orders: Receiver<Result<Message, String>>,
    line: Arc<Line>,
    clock: Clock,
    stop: &'a Stop,
    /// Part 1 knows that the run is to end here.
    has_told: bool,
    _heartbeat: Heartbeat,
}

/// How a run ends for this part.
enum End {
    /// As it should.
    Done,
    /// Without part 1.
    Lost(String),
}

impl<'a> Other<'a> {
    pub(super) fn new(stream: TcpStream, clock: Clock, stop: &'a Stop) -> Result<Self, Mistake> {
        let failed = |error: std::io::Error| Mistake::Parts(error.to_string());
        let reader = stream.try_clone().map_err(failed)?;
        let line = Arc::new(Line::new(stream));
        let (sender, orders) = sync_channel(WAITING_COUNT);
        let replies = Arc::clone(&line);
        thread::spawn(move || listen(reader, clock, &replies, &sender));
        let heartbeat = Heartbeat::start(vec![Arc::clone(&line)]);
        Ok(Self { orders, line, clock, stop, has_told: false, _heartbeat: heartbeat })
    }

    /// Carries out what part 1 orders, until the run is over.
    pub(super) fn run(
        mut self,
        engine: impl FnOnce() -> Result<Engine, Mistake>,
    ) -> Result<Done, Mistake> {
        let mut done = Done::default();
        let mut made = None;
        let mut make = Some(engine);
        let end = loop {
            match self.next_order() {
                Err(why) => break End::Lost(why),
                Ok(Message::End) => break End::Done,
                // Nothing runs here.
                Ok(Message::Stop) => {}
                Ok(Message::Prepare) if make.is_some() => {
                    let make = make.take().expect("it was there");
                    made = Some(self.prepare(make)?);
                }
                Ok(Message::Begin(phase)) if made.is_some() => {
                    let engine = made.as_mut().expect("it was there");
                    if let Err(why) = self.carry_out(&phase, engine, &mut done) {
                        break End::Lost(why);
                    }
                }
                Ok(other) => break End::Lost(format!("it said `{}`", other.name())),
            }
        };
        self.line.close();
        match end {
            End::Done => Ok(done),
            End::Lost(why) => Err(Mistake::Parts(format!("part 1 is lost: {why}"))),
        }
    }

    fn prepare(&self, make: impl FnOnce() -> Result<Engine, Mistake>) -> Result<Engine, Mistake> {
        match make() {
            Ok(engine) => {
                let connections = engine.connections_count();
                self.say(&Message::Prepared { connections, threads: engine.threads_count() });
                Ok(engine)
            }
            Err(mistake) => {
                let is_plan = matches!(mistake, Mistake::Plan(_));
                self.say(&Message::Failed { what: mistake.to_string(), is_plan });
                Err(mistake)
            }
        }
    }

    /// Sends a message; what can't be sent shows where the same connection is read.
    fn say(&self, message: &Message) {
        if self.line.say(message).is_err() {
            self.line.close();
        }
    }

    /// The next order, or why there is none any more.
    fn next_order(&mut self) -> Result<Message, String> {
        loop {
            match self.orders.recv_timeout(LOOK) {
                Ok(order) => return order,
                Err(RecvTimeoutError::Timeout) => self.tell_if_asked_to_stop(),
                Err(RecvTimeoutError::Disconnected) => return Err("it says nothing".into()),
            }
        }
    }

    fn tell_if_asked_to_stop(&mut self) {
        if self.stop.is_asked() && !self.has_told {
            self.has_told = true;
            self.say(&Message::Stop);
        }
    }

    /// Returns whether to go on; an order that came meanwhile is one to stop, or the last one.
    fn control(&mut self, lost: &mut Option<String>) -> Control {
        self.tell_if_asked_to_stop();
        match self.orders.try_recv() {
            Ok(Ok(Message::Stop)) => return Control::Stop,
            Ok(Ok(other)) => *lost = Some(format!("it said `{}`", other.name())),
            Ok(Err(why)) => *lost = Some(why),
            Err(_) => {}
        }
        if lost.is_some() { Control::Stop } else { Control::Continue }
    }

    /// Carries out a phase. The error: why part 1 is lost.
    fn carry_out(
        &mut self,
        phase: &Phase,
        engine: &mut Engine,
        done: &mut Done,
    ) -> Result<(), String> {
        let mut lost = None;
        let connected = engine.connect(phase, &mut || self.control(&mut lost));
        if let Some(why) = lost {
            return Err(why);
        }
        let start = if connected == Control::Stop {
            None
        } else {
            self.say(&Message::Ready);
            match self.next_order()? {
                Message::Start { at_ns } => self.clock.instant(at_ns),
                Message::Stop => None,
                other => return Err(format!("it said `{}` instead of `start`", other.name())),
            }
        };
        let counted = engine.count(phase, start, &mut |look| {
            if let Some(look) = look {
                self.say(&Message::Look(Box::new(look)));
            }
            self.control(&mut lost)
        });
        let counts = counted.counts();
        done.completed += counts.completed;
        done.failed += counts.failed;
        let died_after_ns = engine.server_died_after_ns();
        self.say(&Message::Found(Box::new(Found { counted, died_after_ns })));
        lost.map_or(Ok(()), Err)
    }
}

/// Passes on orders, and says at once what the clock says.
fn listen(
    mut stream: TcpStream,
    clock: Clock,
    line: &Line,
    orders: &SyncSender<Result<Message, String>>,
) {
    loop {
        let order = match Message::receive(&mut stream, MESSAGE_BYTES) {
            Ok(Message::Alive) => continue,
            Ok(Message::Ping) => {
                // A connection that does not take it can't be read from either.
                let _ = line.say(&Message::Pong { ns: clock.now_ns() });
                continue;
            }
            order => order,
        };
        let is_last = order.is_err();
        if orders.send(order).is_err() || is_last {
            return;
        }
    }
}

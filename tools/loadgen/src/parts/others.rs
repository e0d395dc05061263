//! The other parts of a run, as part 1 sees them: what they say, and which are lost.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use bolide_probe::report::PartReport;

use super::clock::{Clock, Offset, PINGS_COUNT, Ping};
use super::handshake::{Joined, SILENCE, prepare};
use super::protocol::{MESSAGE_BYTES, Message};
use super::wire::{Heartbeat, Line};

/// Messages that wait for part 1: a part that says more waits.
const WAITING_COUNT: usize = 64;

/// Message of a part, and its time.
#[derive(Debug)]
pub(super) struct News {
    /// The part's place.
    pub(super) place: usize,
    pub(super) at: Instant,
    /// The message, or why there are no more.
    pub(super) message: Result<Message, String>,
}

/// One of the others.
#[derive(Debug)]
pub(super) struct Other {
    /// `None`: it has never come.
    line: Option<Arc<Line>>,
    pub(super) host: String,
    pub(super) offset: Option<Offset>,
    drift_ns: Option<i64>,
    pub(super) connections: usize,
    pub(super) threads: usize,
    /// Why it does not take part any more.
    pub(super) lost: Option<String>,
}

/// All of the others.
#[derive(Debug)]
pub(super) struct Others {
    pub(super) parts: Vec<Other>,
    news: Receiver<News>,
    clock: Clock,
    missing_ok: usize,
    /// Until it is dropped, the others hear that part 1 is there.
    _heartbeat: Heartbeat,
}

impl Others {
    /// Begins to listen to those that have joined.
    pub(super) fn new(
        joined: Vec<Option<Joined>>,
        clock: Clock,
        missing_ok: usize,
    ) -> Result<Self, String> {
        let (sender, news) = sync_channel(WAITING_COUNT);
        let mut parts = Vec::with_capacity(joined.len());
        for (place, joined) in joined.into_iter().enumerate() {
            let Some(Joined { stream, host, offset, .. }) = joined else {
                parts.push(Other::never_came());
                continue;
            };
            prepare(&stream, SILENCE)?;
            let reader = stream.try_clone().map_err(|error| error.to_string())?;
            let sender = sender.clone();
            thread::spawn(move || listen(reader, place, &sender));
            parts.push(Other {
                line: Some(Arc::new(Line::new(stream))),
                host,
                offset: Some(offset),
                drift_ns: None,
                connections: 0,
                threads: 0,
                lost: None,
            });
        }
        let lines = parts.iter().filter_map(|part| part.line.clone()).collect();
        Ok(Self { parts, news, clock, missing_ok, _heartbeat: Heartbeat::start(lines) })
    }

    /// The places of those that take part.
    pub(super) fn alive(&self) -> impl Iterator<Item = usize> {
        let places = self.parts.iter().enumerate();
        places.filter(|(_, part)| part.lost.is_none()).map(|(place, _)| place)
    }

    /// Returns whether more are lost than may be.
    pub(super) fn are_too_few(&self) -> bool {
        self.parts.iter().filter(|part| part.lost.is_some()).count() > self.missing_ok
    }

    /// The next message, if one comes within `wait`.
    pub(super) fn next(&self, wait: Duration) -> Option<News> {
        self.news.recv_timeout(wait).ok()
    }

    /// Tells one that takes part.
    pub(super) fn tell(&mut self, place: usize, message: &Message) {
        let part = &mut self.parts[place];
        if part.lost.is_none()
            && let Some(line) = &part.line
            && let Err(error) = line.say(message)
        {
            self.lose(place, error.kind().to_string());
        }
    }

    /// Tells all that take part.
    pub(super) fn tell_all(&mut self, message: &Message) {
        for place in 0..self.parts.len() {
            self.tell(place, message);
        }
    }

    /// Tells all at what time of their own clocks to begin.
    pub(super) fn start(&mut self, at: Instant) {
        let at_ns = self.clock.at(at);
        for place in 0..self.parts.len() {
            if let Some(offset) = self.parts[place].offset {
                self.tell(place, &Message::Start { at_ns: offset.theirs(at_ns) });
            }
        }
    }

    /// From now on it does not take part.
    pub(super) fn lose(&mut self, place: usize, why: String) {
        let part = &mut self.parts[place];
        part.lost.get_or_insert(why);
        if let Some(line) = &part.line {
            line.close();
        }
    }

    /// The largest bound of those that take part.
    pub(super) fn clock_bound_ns(&self) -> u64 {
        let bounds = self.parts.iter().filter_map(|part| part.offset);
        bounds.map(|offset| offset.bound_ns).max().unwrap_or(0)
    }

    /// Takes the clocks again: how much they have gained.
    pub(super) fn compare_clocks(&mut self) {
        let places: Vec<usize> = self.alive().collect();
        for place in places {
            let pings = self.pings(place);
            let after = Offset::of_fastest(&pings).filter(|_| pings.len() == PINGS_COUNT);
            let part = &mut self.parts[place];
            part.drift_ns = after.zip(part.offset).map(|(after, before)| after.gained_ns(before));
        }
    }

    fn pings(&mut self, place: usize) -> Vec<Ping> {
        let mut pings = Vec::with_capacity(PINGS_COUNT);
        while pings.len() < PINGS_COUNT && self.parts[place].lost.is_none() {
            let sent_ns = self.clock.now_ns();
            self.tell(place, &Message::Ping);
            let latest = Instant::now() + Duration::from_secs(2);
            let pong = loop {
                let left = latest.saturating_duration_since(Instant::now());
                match self.next(left) {
                    Some(News { place: from, at, message: Ok(Message::Pong { ns }) })
                        if from == place =>
                    {
                        break Some((at, ns));
                    }
                    Some(News { place, message: Err(why), .. }) => self.lose(place, why),
                    Some(_) => {}
                    None => break None,
                }
            };
            let Some((at, theirs_ns)) = pong else { break };
            pings.push(Ping { sent_ns, theirs_ns, received_ns: self.clock.at(at) });
        }
        pings
    }

    /// The run is over: tells all, and waits until they have heard it, as long as a part may be silent.
    pub(super) fn end(&mut self) {
        self.tell_all(&Message::End);
        let mut open: Vec<usize> = self.alive().collect();
        let latest = Instant::now() + SILENCE;
        while !open.is_empty() && Instant::now() < latest {
            if let Some(news) = self.next(latest.saturating_duration_since(Instant::now())) {
                open.retain(|place| *place != news.place || news.message.is_ok());
            }
        }
    }

    /// Returns what is reported of them.
    pub(super) fn report(&self) -> Vec<PartReport> {
        let reports = self.parts.iter().zip(2..).map(|(other, part)| PartReport {
            part,
            host: other.host.clone(),
            connections: other.connections,
            threads: other.threads,
            clock_bound_ns: other.offset.map_or(0, |offset| offset.bound_ns),
            clock_drift_ns: other.drift_ns,
            lost: other.lost.clone(),
        });
        reports.collect()
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for part in &self.parts {
            if let Some(line) = &part.line {
                line.close();
            }
        }
    }
}

impl Other {
    fn never_came() -> Self {
        Self {
            line: None,
            host: String::new(),
            offset: None,
            drift_ns: None,
            connections: 0,
            threads: 0,
            lost: Some("it did not join".into()),
        }
    }
}

/// Passes on what a part says, until it says nothing more.
fn listen(mut stream: TcpStream, place: usize, news: &SyncSender<News>) {
    loop {
        let message = Message::receive(&mut stream, MESSAGE_BYTES);
        let is_last = message.is_err();
        if matches!(message, Ok(Message::Alive)) {
            continue;
        }
        let at = Instant::now();
        if news.send(News { place, at, message }).is_err() || is_last {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

//! A contender must answer right before it is timed: status, length, every byte of the body, the
//! protocol that it claims, sizes that nobody could have prepared for, and bodies that arrive in
//! pieces. What is wrong is evidence, in one sentence.

mod grpc;
mod line;

use std::net::SocketAddr;

use bytes::Bytes;
use http::{StatusCode, Version};

pub(crate) use line::{Answer, Ask, Line};

use crate::catalogue::{Cell, Protocol, Route};
use crate::contender::Contender;
use crate::random::Random;
use crate::requests::{self, Requests, filled};

/// The file of 6 bytes.
pub(crate) const FILE_6: &[u8] = b"hello\n";

/// Bodies of random sizes are at most so many bytes.
const RANDOM_BYTES_MAX: usize = 100_000;

/// How many random sizes are tried.
const RANDOM_SIZES_COUNT: usize = 3;

/// The file of 4,096 bytes: lines of 8 bytes with their numbers.
pub(crate) fn file_4k() -> Vec<u8> {
    (0..512).flat_map(|line| format!("{line:07}\n").into_bytes()).collect()
}

/// What is wrong with one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It came, and is not the right one.
    Wrong(String),
    /// It never came: under full load that is no lie.
    Silent(String),
}

/// The right answer's body when a generator asks what the cell asks; it posts nothing but `x`.
pub(crate) fn loaded_body(cell: &Cell) -> Vec<u8> {
    match cell.route {
        Route::Ping | Route::Logged => b"pong".to_vec(),
        Route::Echo | Route::Post => vec![b'x'; cell.size],
        Route::Grpc => grpc::message(&vec![b'x'; cell.size]),
        Route::Static6 | Route::Proxy6 => FILE_6.to_vec(),
        Route::Static4k | Route::Proxy4k => file_4k(),
    }
}

/// What a question must be answered with.
#[derive(Debug, Clone)]
struct Check {
    ask: Ask,
    body: Bytes,
}

/// Where and how a contender is asked.
#[derive(Debug, Clone)]
pub(crate) struct Subject<'a> {
    pub(crate) contender: &'a Contender,
    pub(crate) cell: &'a Cell,
    pub(crate) address: SocketAddr,
}

impl Subject<'_> {
    /// Everything that is asked before timing; `Err` is the evidence against it.
    pub(crate) fn verify(&self, seed: u64) -> Result<(), String> {
        let mut line = Line::open(self.address, self.cell.protocol)?;
        for check in self.checks(&mut Random::new(seed)) {
            // A server may close after any answer; that a new connection works is all that counts.
            let answer = line.ask(&check.ask).or_else(|error| {
                if line.is_broken {
                    return Err(error);
                }
                line = Line::open(self.address, self.cell.protocol)?;
                line.ask(&check.ask)
            });
            self.judge(&check, answer)?;
        }
        Ok(())
    }

    /// One question on a connection of its own, as the cell asks it; for the middle of a run.
    pub(crate) fn sample(&self, seed: u64) -> Result<(), Flaw> {
        let check = self.usual(&mut Random::new(seed));
        let answer =
            Line::open(self.address, self.cell.protocol).and_then(|mut line| line.ask(&check.ask));
        let was_answered = answer.is_ok();
        self.judge(&check, answer).map_err(|evidence| {
            if was_answered { Flaw::Wrong(evidence) } else { Flaw::Silent(evidence) }
        })
    }

    /// What the cell asks, without judging what comes.
    pub(crate) fn question(&self, seed: u64) -> Ask {
        self.usual(&mut Random::new(seed)).ask
    }

    /// The question of the cell itself.
    fn usual(&self, random: &mut Random) -> Check {
        self.of_size(self.cell.size, random, 1)
    }

    /// The same question for another size, where the route has sizes.
    fn of_size(&self, size: usize, random: &mut Random, pieces: usize) -> Check {
        let cell = Cell { size, ..self.cell.clone() };
        let path = self.contender.path(&cell);
        let body: Bytes = match cell.route {
            Route::Post => random_bytes(size, random).into(),
            Route::Grpc => grpc::message(&random_bytes(size, random)).into(),
            _ => loaded_body(&cell).into(),
        };
        let posted = cell.route.has_body().then(|| body.clone());
        let own = match cell.route {
            Route::Post if cell.requests != Requests::Rpc => {
                &[("content-type", "application/octet-stream")]
            }
            route => route.fields(),
        };
        let (connection, request) = (random.below(1000), random.below(1_000_000));
        let targets = requests::targets(&cell, &path);
        let path = filled(&targets[random.below(targets.len())].1, connection, request);
        let fields = own.iter().chain(cell.requests.fields());
        let fields = fields.map(|(name, value)| (*name, filled(value, connection, request)));
        let fields = fields.collect();
        let expected_bytes = body.len();
        Check { ask: Ask { path, body: posted, pieces, fields, expected_bytes }, body }
    }

    fn checks(&self, random: &mut Random) -> Vec<Check> {
        let mut checks = vec![self.usual(random), self.usual(random)];
        if matches!(self.cell.route, Route::Echo | Route::Post | Route::Grpc) {
            let mut sizes = vec![1];
            sizes.extend((0..RANDOM_SIZES_COUNT).map(|_| 1 + random.below(RANDOM_BYTES_MAX)));
            checks.extend(sizes.into_iter().map(|size| self.of_size(size, random, 1)));
        }
        if self.cell.route.has_body() {
            let size = 1000 + random.below(RANDOM_BYTES_MAX);
            checks.push(self.of_size(size, random, 7));
            checks.push(self.of_size(self.cell.size, random, 3));
        }
        checks
    }

    fn judge(&self, check: &Check, answer: Result<Answer, String>) -> Result<(), String> {
        let method = if check.ask.body.is_some() { "POST" } else { "GET" };
        let sent = match &check.ask.body {
            Some(body) => format!(" with {} bytes in {} piece(s)", body.len(), check.ask.pieces),
            None => String::new(),
        };
        let wrong = |what: String| {
            let protocol = self.cell.protocol.title();
            Err(format!("{method} {}{sent} over {protocol}: {what}", check.ask.path))
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return wrong(error),
        };
        let version =
            if self.cell.protocol.is_http2() { Version::HTTP_2 } else { Version::HTTP_11 };
        if answer.version != version {
            return wrong(format!("it spoke {:?}, not {version:?}", answer.version));
        }
        if answer.status != StatusCode::OK {
            return wrong(format!("status {}, not 200", answer.status.as_u16()));
        }
        if let Some(difference) = difference(&answer.body, &check.body) {
            return wrong(difference);
        }
        if self.cell.route == Route::Grpc
            && let Some(what) = grpc::complaint(&answer.trailers)
        {
            return wrong(what);
        }
        let length = answer.fields.iter().find(|(name, _)| name == "content-length");
        match length {
            Some((_, value)) if *value != check.body.len().to_string().into_bytes() => {
                let value = String::from_utf8_lossy(value);
                wrong(format!("content-length is {value}, not {}", check.body.len()))
            }
            _ => Ok(()),
        }
    }
}

fn random_bytes(count: usize, random: &mut Random) -> Vec<u8> {
    (0..count).map(|_| (random.next() >> 56) as u8).collect()
}

/// Where `body` is not as it should be.
fn difference(body: &[u8], right: &[u8]) -> Option<String> {
    if body.len() != right.len() {
        return Some(format!("the body has {} bytes, not {}", body.len(), right.len()));
    }
    let at = body.iter().zip(right).position(|(a, b)| a != b)?;
    let (is, should) = (body[at], right[at]);
    Some(format!("byte {at} of the body is {is:#04x}, not {should:#04x}"))
}

/// The port's role: cleartext HTTP/2 may have one of its own.
pub(crate) fn port_of(protocol: Protocol, ports: &Ports) -> u16 {
    match protocol {
        Protocol::H1 => ports.plain,
        Protocol::H2c => ports.h2c,
        Protocol::H1s | Protocol::H2 => ports.tls,
    }
}

/// The ports that a contender was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) plain: u16,
    pub(crate) h2c: u16,
    pub(crate) tls: u16,
}

#[cfg(test)]
mod tests;

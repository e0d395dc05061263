//! A contender must answer right before it is timed: status, length, every byte of the body, the
//! protocol that it claims, sizes that can't be prepared for, and bodies that arrive in
//! pieces. What is wrong is evidence, in one sentence.

mod carrier;
mod connection;

use std::net::SocketAddr;

use bytes::Bytes;
use fastrand::Rng;

pub(crate) use connection::{Ask, OpenConnection, Response};

use crate::catalogue::{Cell, Protocol, Route};
use crate::contender::Contender;
use crate::grpc;
use crate::requests::{Exchange, filled, posted};

/// Bodies of random sizes are at most so many bytes.
const RANDOM_BYTES_MAX: usize = 100_000;

/// How many random sizes are tried.
const RANDOM_SIZES_COUNT: usize = 3;

/// Flaw of one response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It came, and is not the right one.
    Wrong(String),
    /// It never came: under full load that is no lie.
    Silent(String),
}

/// Response that a question must get.
#[derive(Debug, Clone)]
struct Check {
    ask: Ask,
    body: Bytes,
}

/// Place and manner in which a contender is asked.
#[derive(Debug, Clone)]
pub(crate) struct Subject<'a> {
    pub(crate) contender: &'a Contender,
    pub(crate) cell: &'a Cell,
    pub(crate) address: SocketAddr,
}

impl Subject<'_> {
    /// Everything that is asked before timing; `Err` is the evidence against it. Returns the `content-type` of the responses
    /// to the cell's own requests, which those under load must have, too.
    pub(crate) fn verify(&self, seed: u64) -> Result<Option<String>, String> {
        let mut connection = OpenConnection::open(self.address, self.cell.protocol)?;
        let mut content_type = None;
        for check in self.checks(&mut Rng::with_seed(seed)) {
            // A server may close after any response; that a new connection works is all that counts.
            let response = connection.ask(&check.ask).or_else(|error| {
                if connection.is_broken {
                    return Err(error);
                }
                connection = OpenConnection::open(self.address, self.cell.protocol)?;
                connection.ask(&check.ask)
            });
            let response = self.judge(&check, response)?;
            let value = response.field("content-type").and_then(|value| str::from_utf8(value).ok());
            content_type = value.map(str::to_owned);
        }
        let surprised = self.surprise(seed);
        surprised.map_err(|(Flaw::Wrong(evidence) | Flaw::Silent(evidence))| evidence)?;
        Ok(content_type)
    }

    /// One question on a connection of its own, as the cell asks it; for the middle of a run.
    pub(crate) fn sample(&self, seed: u64) -> Result<(), Flaw> {
        let check = self.usual(&mut Rng::with_seed(seed));
        let mut connection =
            OpenConnection::open(self.address, self.cell.protocol).map_err(Flaw::Silent)?;
        let response = connection.ask(&check.ask);
        // Bytes that were not asked for are no sign of load; an early end is.
        let was_answered = response.is_ok() || (connection.is_broken && !connection.ended);
        self.judge(&check, response).map(drop).map_err(|evidence| {
            if was_answered { Flaw::Wrong(evidence) } else { Flaw::Silent(evidence) }
        })
    }

    /// One question whose response can't be known beforehand, whatever the cell asks; nothing where the contender serves
    /// none.
    pub(crate) fn surprise(&self, seed: u64) -> Result<(), Flaw> {
        let mut random = Rng::with_seed(!seed);
        match self.contender.surprising(self.cell, &mut random) {
            Some(cell) => Subject { cell: &cell, ..self.clone() }.sample(random.u64(..)),
            None => Ok(()),
        }
    }

    /// Returns what the cell asks, without judging what comes.
    pub(crate) fn question(&self, seed: u64) -> Ask {
        self.usual(&mut Rng::with_seed(seed)).ask
    }

    /// One of those that a run sends.
    fn usual(&self, random: &mut Rng) -> Check {
        let exchange = Exchange::any(self.contender, self.cell, random);
        self.check(exchange, random, 1)
    }

    /// The same question for another size, where the route has sizes.
    fn of_size(&self, size: usize, random: &mut Rng, pieces: usize) -> Check {
        let cell = Cell { size, ..self.cell.clone() };
        let path = self.contender.path(&cell);
        let exchange = if cell.route.has_body() {
            Exchange::with_body(path, posted(cell.route, size, random), 1)
        } else {
            let expected = vec![b'x'; size].into();
            Exchange { weight: 1, path, body: None, expected, fields: Vec::new() }
        };
        self.check(exchange, random, pieces)
    }

    fn check(&self, exchange: Exchange, random: &mut Rng, pieces: usize) -> Check {
        let (connection, request) = (random.usize(..1000), random.usize(..1_000_000));
        let path = filled(&exchange.path, connection, request);
        let fields = self.cell.fields();
        let fields = fields.map(|(name, value)| (*name, filled(value, connection, request)));
        let fields = fields.collect();
        let expected_bytes = exchange.expected.len();
        let ask = Ask { path, body: exchange.body, pieces, fields, expected_bytes };
        Check { ask, body: exchange.expected }
    }

    fn checks(&self, random: &mut Rng) -> Vec<Check> {
        let mut checks = vec![self.usual(random), self.usual(random)];
        if matches!(self.cell.route, Route::Echo | Route::Post | Route::Grpc) {
            let mut sizes = vec![1, self.cell.size];
            sizes.extend((0..RANDOM_SIZES_COUNT).map(|_| 1 + random.usize(..RANDOM_BYTES_MAX)));
            checks.extend(sizes.into_iter().map(|size| self.of_size(size, random, 1)));
        }
        if self.cell.route.has_body() {
            let size = 1000 + random.usize(..RANDOM_BYTES_MAX);
            checks.push(self.of_size(size, random, 7));
            checks.push(self.of_size(self.cell.size, random, 3));
        }
        checks
    }

    fn judge(&self, check: &Check, response: Result<Response, String>) -> Result<Response, String> {
        let method = if check.ask.body.is_some() { "POST" } else { "GET" };
        let sent = match &check.ask.body {
            Some(body) => format!(" with {} bytes in {} piece(s)", body.len(), check.ask.pieces),
            None => String::new(),
        };
        let wrong = |what: String| {
            let protocol = self.cell.protocol.title();
            Err(format!("{method} {}{sent} over {protocol}: {what}", check.ask.path))
        };
        let response = match response {
            Ok(response) => response,
            Err(error) => return wrong(error),
        };
        let version = self.cell.protocol.version();
        if response.version != version {
            return wrong(format!(
                "the response used {:?} instead of {version:?}",
                response.version
            ));
        }
        let status = self.cell.route.status();
        if response.status != status {
            return wrong(format!(
                "status {} instead of {}",
                response.status.as_u16(),
                status.as_u16()
            ));
        }
        let found = match self.cell.route {
            Route::SiteRedirect => response.field("location").map(<[u8]>::to_vec),
            Route::SiteApi => response.unzipped(check.body.len()),
            _ => None,
        };
        let has_own_bytes = self.cell.route.has_own_bytes();
        if has_own_bytes && found.is_none() {
            return wrong(
                "it lacks the location, or is not compressed as it was asked to be".to_owned(),
            );
        }
        let found = found.as_ref().unwrap_or(&response.body);
        if let Some(difference) = difference(found, &check.body) {
            return wrong(difference);
        }
        if self.cell.route == Route::Grpc
            && let Some(what) = grpc::complaint(&response.trailers)
        {
            return wrong(what);
        }
        let length = if has_own_bytes { response.body.len() } else { check.body.len() };
        match response.field("content-length") {
            Some(value) if *value != *length.to_string().as_bytes() => {
                let value = String::from_utf8_lossy(value);
                wrong(format!("content-length is {value}, not {length}"))
            }
            _ => Ok(response),
        }
    }
}

/// Returns where `body` is not as it should be.
pub(crate) fn difference(body: &[u8], right: &[u8]) -> Option<String> {
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
        Protocol::H1s | Protocol::H2 | Protocol::H3 => ports.tls,
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

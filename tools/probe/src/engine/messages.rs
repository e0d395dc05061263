//! Messages between the engine and its threads.

use std::collections::BTreeMap;

use bolide_client::Established;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::histograms::encoded;
use super::pacer::Part;
use super::tally::Tally;
use crate::progress::Record;
use crate::report::{Failure, TlsReport};

/// From the engine to a thread.
#[derive(Debug)]
pub(super) enum Command {
    /// Have so many connections, or all; say when they are there, and what prevents it.
    Connect { at_most: usize },
    /// Carry out a part of a phase.
    Begin(Box<Part>),
    /// End the phase with what was done.
    Stop,
    /// End.
    Finish,
}

/// Protocol that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// `http/1.1`, `h2c`, `h2` or `h3`.
    pub(super) protocol: &'static str,
    pub(super) tls: Option<TlsReport>,
}

impl Facts {
    pub(super) fn new(established: &Established) -> Self {
        let tls = established.tls.as_ref().map(|facts| TlsReport {
            version: facts.version.to_owned(),
            cipher_suite: facts.cipher.clone(),
            group: facts.group.map(str::to_owned),
        });
        let protocol = match (established.version, &tls) {
            (http::Version::HTTP_3, _) => "h3",
            (http::Version::HTTP_2, None) => "h2c",
            (http::Version::HTTP_2, Some(_)) => "h2",
            _ => "http/1.1",
        };
        Self { protocol, tls }
    }
}

/// Events since the look before, in one thread or in several.
#[derive(Debug, Serialize, Deserialize)]
pub struct Look {
    /// Which interval of the phase this is the end of.
    pub(super) index: u64,
    /// After the start of the phase, in nanoseconds.
    pub(super) at_ns: u64,
    pub(super) completed: u64,
    pub(super) failures: BTreeMap<Failure, u64>,
    #[serde(with = "encoded")]
    pub(super) latency: Histogram<u64>,
    pub(super) in_flight: u64,
    /// CPU time of the generator's process, for the look of a whole engine.
    pub(super) generator_cpu_ns: u64,
    /// The same of the server, where it is watched.
    pub(super) server_cpu_ns: Option<u64>,
    #[serde(skip)]
    pub(super) records: Vec<Record>,
    /// Since when no connection can be made, in nanoseconds since the engine began.
    #[serde(skip)]
    pub(super) down_since_ns: Option<u64>,
}

impl Look {
    /// Which interval of the phase this is the end of, from 1.
    pub fn index(&self) -> u64 {
        self.index
    }
}

/// From a thread to the engine.
#[derive(Debug)]
pub(super) enum News {
    /// The connections that were asked for are there.
    Connected(Option<Facts>),
    /// A connection could not be made: to which server, and why in words.
    Trouble(usize, String),
    /// Another 100 ms have passed.
    Look(Box<Look>),
    /// The phase is over for this thread.
    Ended(Box<Tally>),
    /// The thread can't go on.
    Broken(String),
}

/// News, and which thread's.
pub(super) type ThreadNews = (usize, News);

//! How a request ended: everything that a line says.

use std::time::Instant;

use super::entry::Asked;
use super::stages::Stages;
use super::text::string;

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The status that was sent; 0: none.
    pub status: u16,
    /// Bytes of content that the client sent.
    pub received_bytes: u64,
    /// Bytes of content that it was sent.
    pub sent_bytes: u64,
    /// When the request's head arrived.
    pub began: Instant,
    /// Why it ended before it was complete.
    pub abort: Option<&'static str>,
}

/// Everything that a line says.
#[derive(Debug)]
pub struct Ended<'a> {
    /// The request.
    pub asked: &'a Asked<'a>,
    /// Which route it had.
    pub route: &'a RoutePiece,
    /// Its outcome.
    pub outcome: &'a Outcome,
    /// Of a request that was not answered at once.
    pub stages: Option<&'a Stages>,
}

/// As much of a route's piece of a line is copied at once, in bytes: a copy whose length is known beforehand is a few
/// moves.
const PIECE_BYTES: usize = 64;

/// Text around the name of a route in JSON.
const BEFORE_ROUTE: &str = "\",\"route\":\"";
const AFTER_ROUTE: &str = "\",\"status\":";

/// The part of a line in JSON about a route, from the end of the target to the status.
#[derive(Debug)]
pub struct RoutePiece {
    /// At least [`PIECE_BYTES`] long.
    text: Box<[u8]>,
    length: usize,
}

impl RoutePiece {
    /// That of the route with this name.
    pub fn new(name: &str) -> Self {
        let mut text = Vec::new();
        string(&mut text, BEFORE_ROUTE, name.as_bytes());
        text.extend_from_slice(AFTER_ROUTE.as_bytes());
        let length = text.len();
        text.resize(length.max(PIECE_BYTES), 0);
        Self { text: text.into(), length }
    }

    /// The name alone, as JSON has it.
    pub(super) fn name(&self) -> &[u8] {
        &self.text[BEFORE_ROUTE.len()..self.length - AFTER_ROUTE.len()]
    }

    /// All but the quote at its front, which would end a target.
    pub(super) fn after_quote(&self) -> &[u8] {
        &self.text[1..self.length]
    }

    #[inline]
    pub(super) fn put(&self, line: &mut Vec<u8>) {
        match self.text.first_chunk::<PIECE_BYTES>() {
            Some(piece) if self.length <= PIECE_BYTES => {
                let end = line.len() + self.length;
                line.extend_from_slice(piece);
                line.truncate(end);
            }
            _ => line.extend_from_slice(&self.text[..self.length]),
        }
    }
}

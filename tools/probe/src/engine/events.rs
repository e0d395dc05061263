//! Responses that are streams of Server-Sent Events (HTML §9.2) or of gRPC's messages: what of them is counted.

use std::collections::BTreeMap;

use bolide_client::EventParser;
use bolide_semantics::Head;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::calls::{MessageReader, STATUSES, status};
use super::histograms::{add, empty, encoded, latencies};
use crate::plan::{EventsPlan, StreamFormat};
use crate::report::{EventsReport, Failure};

/// Counts of all streams of a phase.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EventTally {
    events: u64,
    /// Gaps longer than the plan allows.
    stalls: u64,
    /// Streams that ended as they should, and their events.
    streams: u64,
    events_of_streams: u64,
    tokens: Option<u64>,
    /// Calls of gRPC by status, and those without one.
    statuses: [u64; STATUSES.len()],
    #[serde(with = "encoded")]
    first: Histogram<u64>,
    #[serde(with = "encoded")]
    gap: Histogram<u64>,
}

impl EventTally {
    pub(super) fn new() -> Self {
        Self {
            events: 0,
            stalls: 0,
            streams: 0,
            events_of_streams: 0,
            tokens: None,
            statuses: [0; STATUSES.len()],
            first: empty(),
            gap: empty(),
        }
    }

    /// A stream has ended, as it should or not.
    pub(super) fn ended(&mut self, stream: &Stream, is_right: bool) {
        self.statuses[stream.status] += 1;
        if !is_right {
            return;
        }
        self.streams += 1;
        self.events_of_streams += stream.events;
        if let Some(tokens) = stream.tokens {
            *self.tokens.get_or_insert_default() += tokens;
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.stalls += other.stalls;
        self.streams += other.streams;
        self.events_of_streams += other.events_of_streams;
        if let Some(tokens) = other.tokens {
            *self.tokens.get_or_insert_default() += tokens;
        }
        for (count, more) in self.statuses.iter_mut().zip(other.statuses) {
            *count += more;
        }
        add(&mut self.first, &other.first);
        add(&mut self.gap, &other.gap);
    }

    pub(super) fn report(self, elapsed_ns: u64, plan: &EventsPlan) -> EventsReport {
        let seconds = elapsed_ns as f64 / 1e9;
        let per = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        EventsReport {
            events: self.events,
            rate: per(self.events),
            streams: self.streams,
            events_per_stream: if self.streams > 0 {
                self.events_of_streams as f64 / self.streams as f64
            } else {
                0.0
            },
            stalls: self.stalls,
            stall_ns: plan.stall_ns,
            tokens: self.tokens,
            token_rate: self.tokens.map(per),
            grpc_statuses: (plan.format == StreamFormat::Grpc).then(|| named(&self.statuses)),
            first: latencies(self.first),
            gap: latencies(self.gap),
        }
    }
}

/// The statuses that occurred.
fn named(counts: &[u64; STATUSES.len()]) -> BTreeMap<String, u64> {
    let named = STATUSES.iter().zip(counts).filter(|(_, count)| **count > 0);
    named.map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Parser of a stream.
#[derive(Debug)]
enum Reader {
    Events(EventParser),
    Messages(MessageReader),
}

/// One response while it comes.
#[derive(Debug)]
pub(super) struct Stream {
    reader: Reader,
    events: u64,
    /// When the last event came, in nanoseconds since the engine began.
    last_ns: u64,
    /// Which of gRPC's statuses it ended with.
    status: usize,
    /// An event said that something failed, or is not one, or was longer than a client keeps.
    failed: bool,
    /// `[DONE]` came.
    done: bool,
    /// Tokens that the server has counted, if it said so.
    tokens: Option<u64>,
}

/// Facts in an event of a language model's stream besides its text.
#[derive(Deserialize)]
struct Said {
    error: Option<serde::de::IgnoredAny>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    completion_tokens: Option<u64>,
}

impl Stream {
    /// Nothing has come yet.
    pub(super) fn new(plan: &EventsPlan) -> Self {
        let reader = match plan.format {
            StreamFormat::Events | StreamFormat::OpenAi => Reader::Events(EventParser::default()),
            StreamFormat::Grpc => Reader::Messages(MessageReader::default()),
        };
        let (events, last_ns, status) = (0, 0, STATUSES.len() - 1);
        Self { reader, events, last_ns, status, failed: false, done: false, tokens: None }
    }

    /// Looks for gRPC's status: in the trailers, or in the head of a response without content.
    pub(super) fn look_for_status(&mut self, head: &Head) {
        self.status = status(head);
    }

    /// Returns whether another event has come whole.
    fn next(&mut self, data: &mut &[u8], plan: &EventsPlan) -> bool {
        let parser = match &mut self.reader {
            Reader::Events(parser) => parser,
            Reader::Messages(reader) => {
                let next = reader.next(data);
                self.failed |= next.is_err();
                return next == Ok(true);
            }
        };
        let event = match parser.next_event(data) {
            Ok(Some(event)) => event,
            Ok(None) => return false,
            Err(_) => {
                self.failed = true;
                return false;
            }
        };
        self.failed |= event.kind == "error";
        if plan.format == StreamFormat::OpenAi {
            self.done = event.data == "[DONE]";
            if !self.done {
                self.look_into(&event.data);
            }
        }
        !self.done
    }

    /// A piece of the body has come at `now_ns`. `tally`: what the events count for, if they do.
    pub(super) fn data(
        &mut self,
        mut data: &[u8],
        (begun_ns, now_ns): (u64, u64),
        plan: &EventsPlan,
        mut tally: Option<&mut EventTally>,
    ) {
        while !self.failed && !self.done && self.next(&mut data, plan) {
            self.events += 1;
            if let Some(tally) = &mut tally {
                tally.events += 1;
                if self.events == 1 {
                    tally.first.saturating_record(now_ns - begun_ns);
                } else {
                    let gap_ns = now_ns - self.last_ns;
                    tally.gap.saturating_record(gap_ns);
                    tally.stalls += u64::from(gap_ns > plan.stall_ns);
                }
            }
            self.last_ns = now_ns;
        }
    }

    /// Most events are text alone: only those that may say more are read as JSON.
    fn look_into(&mut self, data: &str) {
        if !data.contains("\"error\"") && !data.contains("\"usage\"") {
            return;
        }
        let Ok(said) = serde_json::from_str::<Said>(data) else { return };
        self.failed |= said.error.is_some();
        self.tokens = said.usage.and_then(|usage| usage.completion_tokens).or(self.tokens);
    }

    /// Fails if something is wrong with the stream: an error, or its end mark or status.
    pub(super) fn verdict(&self, plan: &EventsPlan) -> Result<(), Failure> {
        let (is_right, failure) = match (plan.format, &self.reader) {
            (StreamFormat::OpenAi, _) => (!self.failed && self.done, Failure::Events),
            (_, Reader::Events(_)) => (!self.failed && self.events > 0, Failure::Events),
            (_, Reader::Messages(reader)) if self.failed || reader.is_within() => {
                (false, Failure::Protocol)
            }
            (_, Reader::Messages(_)) => (self.status == 0, Failure::Grpc),
        };
        if is_right { Ok(()) } else { Err(failure) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: EventsPlan = EventsPlan { stall_ns: 50, format: StreamFormat::Events };
    const OPENAI: EventsPlan = EventsPlan { stall_ns: 50, format: StreamFormat::OpenAi };

    fn fed(plan: EventsPlan, pieces: &[(u64, &str)]) -> (Stream, EventTally) {
        let (mut stream, mut tally) = (Stream::new(&plan), EventTally::new());
        for (at_ns, piece) in pieces {
            stream.data(piece.as_bytes(), (1_000, *at_ns), &plan, Some(&mut tally));
        }
        (stream, tally)
    }

    #[test]
    fn the_first_event_counts_from_the_request_and_the_others_from_the_one_before() {
        let pieces = [
            (11_000_000, "data: a\n"),
            (101_000_000, "\ndata: b\n\n"),
            (103_000_000, ": still there\n\n"),
            (141_000_000, "data: c\n\ndata: d"),
        ];
        let plan = EventsPlan { stall_ns: 39_000_000, ..PLAIN };
        let (stream, tally) = fed(plan, &pieces);
        assert!(stream.verdict(&plan).is_ok());
        assert_eq!((stream.events, tally.events, tally.stalls), (3, 3, 1));
        let report = tally.report(1_000_000_000, &plan);
        assert_eq!((report.first.count, report.gap.count, report.rate), (1, 2, 3.0));
        assert_eq!(report.first.max_ns / 1_000_000, 101);
        assert_eq!(report.gap.max_ns / 1_000_000, 40);
    }

    #[test]
    fn an_error_in_the_stream_and_a_missing_end_are_failures() {
        for (plan, text, is_right) in [
            (PLAIN, "data: a\n\n", true),
            (PLAIN, "", false),
            (PLAIN, ": nothing\n\n", false),
            (PLAIN, "data: a\n\nevent: error\ndata: overloaded\n\n", false),
            (OPENAI, "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", true),
            (OPENAI, "data: {\"choices\":[]}\n\n", false),
            (OPENAI, "data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n", false),
            (OPENAI, "data: \"the word \\\"error\\\" in a text\"\n\ndata: [DONE]\n\n", true),
        ] {
            let (stream, _) = fed(plan, &[(2_000, text)]);
            assert_eq!(stream.verdict(&plan).is_ok(), is_right, "{text}");
        }
    }

    #[test]
    fn tokens_are_the_servers_own_count() {
        let text = "data: {\"choices\":[]}\n\ndata: {\"usage\":{\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";
        let (stream, mut tally) = fed(OPENAI, &[(2_000, text)]);
        assert_eq!(stream.events, 2, "the mark at the end is none");
        tally.ended(&stream, true);
        let mut all = EventTally::new();
        all.add(&tally);
        all.add(&tally);
        let report = all.report(2_000_000_000, &OPENAI);
        assert_eq!((report.tokens, report.token_rate), (Some(14), Some(7.0)));
        assert_eq!((report.streams, report.events_per_stream), (2, 2.0));
    }

    #[test]
    fn an_event_without_an_end_fails_and_is_not_kept() {
        let mut stream = Stream::new(&PLAIN);
        let piece = [b'x'; 64 * 1024];
        for _ in 0..1024 {
            stream.data(&piece, (1, 2), &PLAIN, None);
        }
        assert_eq!(stream.verdict(&PLAIN), Err(Failure::Events));
    }

    #[test]
    fn messages_of_a_call_are_counted_and_its_status_judges_it() {
        let plan = EventsPlan { stall_ns: 50, format: StreamFormat::Grpc };
        let ended = |text: &str, status| {
            let (mut stream, tally) = fed(plan, &[(2_000, text)]);
            stream.status = status;
            (stream.verdict(&plan), tally.events)
        };
        let two = "\0\0\0\0\x02ab\0\0\0\0\0";
        assert_eq!(ended(two, 0), (Ok(()), 2));
        assert_eq!(ended("", 0), (Ok(()), 0));
        assert_eq!(ended(two, 14), (Err(Failure::Grpc), 2));
        assert_eq!(ended(two, STATUSES.len() - 1), (Err(Failure::Grpc), 2));
        assert_eq!(ended("\0\0\0\0\x02a", 0), (Err(Failure::Protocol), 0));
        assert_eq!(ended("\x01\0\0\0\0", 0), (Err(Failure::Protocol), 0));
    }
}

//! Responses that are streams of Server-Sent Events (HTML §9.2): what of them is counted.

use bolide_client::EventParser;
use hdrhistogram::Histogram;
use serde::Deserialize;

use super::histograms::{add, empty, latencies};
use crate::plan::EventsPlan;
use crate::report::EventsReport;

/// What is counted of all streams of a phase.
#[derive(Debug)]
pub(super) struct EventTally {
    events: u64,
    /// Gaps longer than the plan allows.
    stalls: u64,
    /// Streams that ended as they should, and their events.
    streams: u64,
    events_of_streams: u64,
    tokens: Option<u64>,
    first: Histogram<u64>,
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
            first: empty(),
            gap: empty(),
        }
    }

    /// A stream has ended as it should.
    pub(super) fn ended(&mut self, stream: &Stream) {
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
        add(&mut self.first, &other.first);
        add(&mut self.gap, &other.gap);
    }

    pub(super) fn report(self, elapsed_ns: u64, stall_ns: u64) -> EventsReport {
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
            stall_ns,
            tokens: self.tokens,
            token_rate: self.tokens.map(per),
            first: latencies(self.first),
            gap: latencies(self.gap),
        }
    }
}

/// One response while it comes.
#[derive(Debug, Default)]
pub(super) struct Stream {
    parser: EventParser,
    events: u64,
    /// When the last event came, in nanoseconds since the engine began.
    last_ns: u64,
    /// An event said that something failed, or an event was longer than a client keeps.
    failed: bool,
    /// `[DONE]` came.
    done: bool,
    /// What the server has counted, if it said so.
    tokens: Option<u64>,
}

/// What an event of a language model's stream may say besides its text.
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
    /// A piece of the body has come at `now_ns`. `tally`: what the events count for, if they do.
    pub(super) fn data(
        &mut self,
        mut data: &[u8],
        (begun_ns, now_ns): (u64, u64),
        plan: &EventsPlan,
        mut tally: Option<&mut EventTally>,
    ) {
        while !self.failed && !self.done {
            let event = match self.parser.next_event(&mut data) {
                Ok(Some(event)) => event,
                Ok(None) => return,
                Err(_) => return self.failed = true,
            };
            self.failed |= event.kind == "error";
            if plan.is_openai {
                if event.data == "[DONE]" {
                    self.done = true;
                    continue;
                }
                self.look_into(&event.data);
            }
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

    /// Whether the stream was what it should be: some events, no error, and its end mark where there is one.
    pub(super) fn is_right(&self, plan: &EventsPlan) -> bool {
        !self.failed && if plan.is_openai { self.done } else { self.events > 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: EventsPlan = EventsPlan { stall_ns: 50, is_openai: false };
    const OPENAI: EventsPlan = EventsPlan { stall_ns: 50, is_openai: true };

    fn fed(plan: EventsPlan, pieces: &[(u64, &str)]) -> (Stream, EventTally) {
        let (mut stream, mut tally) = (Stream::default(), EventTally::new());
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
        assert!(stream.is_right(&plan));
        assert_eq!((stream.events, tally.events, tally.stalls), (3, 3, 1));
        let report = tally.report(1_000_000_000, plan.stall_ns);
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
            assert_eq!(stream.is_right(&plan), is_right, "{text}");
        }
    }

    #[test]
    fn tokens_are_the_servers_own_count() {
        let text = "data: {\"choices\":[]}\n\ndata: {\"usage\":{\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";
        let (stream, mut tally) = fed(OPENAI, &[(2_000, text)]);
        assert_eq!(stream.events, 2, "the mark at the end is none");
        tally.ended(&stream);
        let mut all = EventTally::new();
        all.add(&tally);
        all.add(&tally);
        let report = all.report(2_000_000_000, 50);
        assert_eq!((report.tokens, report.token_rate), (Some(14), Some(7.0)));
        assert_eq!((report.streams, report.events_per_stream), (2, 2.0));
    }

    #[test]
    fn an_event_without_an_end_fails_and_is_not_kept() {
        let mut stream = Stream::default();
        let piece = [b'x'; 64 * 1024];
        for _ in 0..1024 {
            stream.data(&piece, (1, 2), &PLAIN, None);
        }
        assert!(stream.failed && !stream.is_right(&PLAIN));
    }
}

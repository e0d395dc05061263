//! ndt7 v0.11: bulk data in WebSocket messages, and measurements next to them.

use std::hash::{BuildHasher, Hasher, RandomState};

use bolide_semantics::{FieldName, FieldRef, Head, Role};
use bolide_websocket::{CloseCode, Codec, Event, Kind, Settings, handshake};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::limits::MEASUREMENT_BYTES_MAX;
use crate::plan::Direction;
use crate::report::Told;

/// The subprotocol of ndt7.
const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";

/// The first message of an upload, in bytes.
const MESSAGE_BYTES_MIN: usize = 1 << 13;

/// The largest, in bytes: what the reference implementations read at most.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A message grows when it is less than this part of what was sent.
const FRACTION: u64 = 16;

/// Bytes that TLS and heads may add to those of a tunnel, beyond as many again.
const OVERHEAD_BYTES: u64 = 1 << 16;

/// How often the server is told what we count, in nanoseconds (250 ms).
const TELL_NS: u64 = 250_000_000;

/// A number that can't be guessed: the standard library's hasher is keyed by the operating system.
fn unguessable() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The fields of the handshake.
pub(super) fn fields(key: &str) -> [FieldRef<'_>; 4] {
    [
        FieldRef::known(FieldName::Upgrade, handshake::PROTOCOL.as_bytes()),
        FieldRef::known(FieldName::SecWebsocketVersion, handshake::VERSION.as_bytes()),
        FieldRef::known(FieldName::SecWebsocketKey, key.as_bytes()),
        FieldRef::known(FieldName::SecWebsocketProtocol, SUBPROTOCOL.as_bytes()),
    ]
}

/// One subtest, from its handshake to its close frames.
#[derive(Debug)]
pub(super) struct Ndt7 {
    pub(super) key: String,
    direction: Direction,
    codec: Codec,
    is_open: bool,
    /// Of an upload: the next message, encoded. Its bytes are sent repeatedly: their mask was not
    /// to be guessed and their content is zeros, so no peer can choose what is on the wire (RFC 6455 §10.3).
    frame: Bytes,
    message_bytes: usize,
    /// Payload sent.
    sent: u64,
    /// Payload received.
    received: u64,
    /// All bytes of the tunnel that were received.
    tunnelled: u64,
    began_ns: u64,
    told_ns: u64,
    text: Vec<u8>,
    pub(super) told: Option<Told>,
    /// The server has closed.
    pub(super) is_over: bool,
}

impl Ndt7 {
    /// A subtest that begins now.
    pub(super) fn new(direction: Direction, now_ns: u64) -> Self {
        let bytes = (u128::from(unguessable()) << 64) | u128::from(unguessable());
        let settings = Settings { mask_seed: unguessable(), ..Settings::default() };
        Self {
            key: handshake::key(bytes.to_be_bytes()),
            direction,
            codec: Codec::new(Role::Client, settings),
            is_open: false,
            frame: Bytes::new(),
            message_bytes: MESSAGE_BYTES_MIN,
            sent: 0,
            received: 0,
            tunnelled: 0,
            began_ns: now_ns,
            told_ns: now_ns,
            text: Vec::new(),
            told: None,
            is_over: false,
        }
    }

    /// The server has answered the handshake.
    ///
    /// # Errors
    ///
    /// What is wrong with its response.
    pub(super) fn opened(&mut self, head: &Head) -> Result<(), String> {
        match handshake::check_response(head, &self.key, &[SUBPROTOCOL]) {
            Ok(Some(_)) => {
                self.is_open = true;
                Ok(())
            }
            Ok(None) => Err(format!("the server does not agree to the subprotocol {SUBPROTOCOL}")),
            Err(what) => Err(format!("{what} (status {})", head.status())),
        }
    }

    /// Bytes have come. Returns how many of them were a download's payload.
    ///
    /// # Errors
    ///
    /// What the server did wrong.
    pub(super) fn received(&mut self, mut bytes: Bytes, now_ns: u64) -> Result<u64, String> {
        let mut payload_bytes = 0;
        self.tunnelled += bytes.len() as u64;
        while let Some(event) = self.codec.receive(&mut bytes) {
            match event {
                Event::Message { kind: Kind::Binary, payload, .. } => {
                    payload_bytes += payload.len() as u64;
                }
                Event::Message { kind: Kind::Text, payload, end } => {
                    if self.text.len() + payload.len() > MEASUREMENT_BYTES_MAX {
                        return Err(format!(
                            "a measurement has more than {MEASUREMENT_BYTES_MAX} bytes"
                        ));
                    }
                    payload.append_to(&mut self.text);
                    if end == bolide_semantics::End::Yes {
                        self.measured();
                    }
                }
                Event::Ping(_) | Event::Pong(_) => {}
                Event::Closed(close) => {
                    self.is_over = true;
                    if close.code != CloseCode::NORMAL && close.code != CloseCode::NONE {
                        let reason = close.reason();
                        return Err(format!("the server closed with {} {reason}", close.code));
                    }
                }
                Event::Failed(failure) => return Err(failure.what.to_owned()),
            }
        }
        self.received += payload_bytes;
        if self.direction == Direction::Download && now_ns >= self.told_ns + TELL_NS {
            self.told_ns = now_ns;
            let elapsed_us = (now_ns - self.began_ns) / 1000;
            let measurement = json!({
                "AppInfo": { "ElapsedTime": elapsed_us, "NumBytes": self.received },
                "Origin": "client",
                "Test": "download",
            });
            // After a close frame nothing is said any more.
            let _ = self.codec.send(Kind::Text, measurement.to_string());
        }
        Ok(payload_bytes)
    }

    /// A measurement of the server's is complete.
    fn measured(&mut self) {
        let text = std::mem::take(&mut self.text);
        if let Ok(measurement) = serde_json::from_slice(&text) {
            let moved = match self.direction {
                Direction::Download => self.tunnelled,
                Direction::Upload => self.sent,
            };
            // The server has measured what it sent before the measurement, or received until then.
            let bytes_max = moved.saturating_mul(2).saturating_add(OVERHEAD_BYTES);
            self.told = told(&measurement, self.direction, bytes_max).or(self.told);
        }
    }

    /// Returns what is to leave next, and how much payload of an upload is in it. `ends`: its time is over.
    pub(super) fn next(&mut self, ends: bool) -> Option<(Bytes, u64)> {
        if let Some(bytes) = self.codec.pop_output() {
            return Some((bytes, 0));
        }
        if self.direction == Direction::Download || !self.is_open || self.codec.is_closing() {
            return None;
        }
        if ends {
            // It is the first: that was just looked at.
            let _ = self.codec.send_close(CloseCode::NORMAL, "");
            return self.codec.pop_output().map(|bytes| (bytes, 0));
        }
        let grows = self.message_bytes < MESSAGE_BYTES_MAX
            && (self.message_bytes as u64) < self.sent / FRACTION;
        if grows {
            self.message_bytes *= 2;
        }
        if grows || self.frame.is_empty() {
            self.frame = self.encoded();
        }
        self.sent += self.message_bytes as u64;
        Some((self.frame.clone(), self.message_bytes as u64))
    }

    /// A message of zeros as it goes over the wire.
    fn encoded(&mut self) -> Bytes {
        let mut frame = Vec::with_capacity(self.message_bytes + 14);
        // The connection is open and no message is under way: nothing can stand against it.
        let _ = self.codec.send(Kind::Binary, vec![0; self.message_bytes]);
        while let Some(piece) = self.codec.pop_output() {
            frame.extend_from_slice(&piece);
        }
        frame.into()
    }
}

/// Returns what a measurement says of the server's side; a count that can't be is not believed. `bytes_max`: what the
/// connection can have carried.
fn told(measurement: &Value, direction: Direction, bytes_max: u64) -> Option<Told> {
    let info = measurement.get("TCPInfo")?;
    let number = |name: &str| info.get(name).and_then(Value::as_u64);
    let elapsed_us = number("ElapsedTime").filter(|us| *us > 0)?;
    let bytes = number(match direction {
        Direction::Download => "BytesAcked",
        Direction::Upload => "BytesReceived",
    })
    .filter(|bytes| *bytes <= bytes_max);
    let share = |us: u64| us as f64 / elapsed_us as f64;
    Some(Told {
        goodput_bits_per_second: bytes.map(|bytes| bytes as f64 * 8e6 / elapsed_us as f64),
        min_rtt_us: number("MinRTT").map(|us| us as f64),
        retransmitted_bytes: number("BytesRetrans")
            .filter(|bytes| direction == Direction::Download && *bytes <= bytes_max),
        receive_window_limited: number("RWndLimited")
            .map(share)
            .filter(|share| direction == Direction::Download && *share <= 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(direction: Direction) -> Ndt7 {
        Ndt7 { is_open: true, ..Ndt7::new(direction, 0) }
    }

    #[test]
    fn messages_grow_with_what_was_sent() {
        let mut subtest = open(Direction::Upload);
        let mut server = Codec::new(Role::Server, Settings::default());
        let (mut sent, mut largest, mut counted) = (0, 0, 0);
        for _ in 0..200 {
            let (bytes, payload_bytes) = subtest.next(false).unwrap();
            (sent, largest) = (sent + payload_bytes, largest.max(payload_bytes));
            let mut bytes = bytes;
            while let Some(event) = server.receive(&mut bytes) {
                let Event::Message { payload, .. } = event else { panic!("{event:?}") };
                counted += payload.len() as u64;
                assert!(payload.into_bytes().iter().all(|byte| *byte == 0));
            }
        }
        assert_eq!((sent, largest), (counted, MESSAGE_BYTES_MAX as u64));
        let (mut close, payload_bytes) = subtest.next(true).unwrap();
        assert_eq!(payload_bytes, 0);
        let event = server.receive(&mut close).unwrap();
        assert!(matches!(event, Event::Closed(close) if close.code == CloseCode::NORMAL));
        assert!(subtest.next(true).is_none());
    }

    #[test]
    fn a_download_counts_payload_and_reads_what_the_server_measured() {
        let mut subtest = open(Direction::Download);
        let mut server = Codec::new(Role::Server, Settings::default());
        server.send(Kind::Binary, vec![0; 10_000]).unwrap();
        let info = r#"{"TCPInfo":{"ElapsedTime":2000000,"BytesAcked":10000,"MinRTT":150,"BytesRetrans":7,"RWndLimited":500000}}"#;
        server.send(Kind::Text, info).unwrap();
        server.send_close(CloseCode::NORMAL, "Done sending").unwrap();
        let mut payload_bytes = 0;
        while let Some(bytes) = server.pop_output() {
            payload_bytes += subtest.received(bytes, TELL_NS).unwrap();
        }
        assert_eq!((payload_bytes, subtest.is_over), (10_000, true));
        assert_eq!(
            subtest.told,
            Some(Told {
                goodput_bits_per_second: Some(4e4),
                min_rtt_us: Some(150.0),
                retransmitted_bytes: Some(7),
                receive_window_limited: Some(0.25),
            })
        );
        // The reply to the close frame leaves.
        assert!(subtest.next(false).is_some());
    }

    #[test]
    fn what_is_no_measurement_is_nothing() {
        for text in ["{}", r#"{"TCPInfo":{}}"#, r#"{"TCPInfo":{"ElapsedTime":0}}"#] {
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(told(&value, Direction::Upload, 1000), None, "{text}");
        }
    }

    #[test]
    fn counts_that_cannot_be_are_not_believed() {
        let mut subtest = open(Direction::Download);
        let mut server = Codec::new(Role::Server, Settings::default());
        let most = u64::MAX;
        let info = format!(
            r#"{{"TCPInfo":{{"ElapsedTime":1000,"BytesAcked":{most},"BytesRetrans":{most},"RWndLimited":1001}}}}"#
        );
        server.send(Kind::Text, info).unwrap();
        while let Some(bytes) = server.pop_output() {
            subtest.received(bytes, 0).unwrap();
        }
        let told = subtest.told.unwrap();
        assert_eq!(told.goodput_bits_per_second, None);
        assert_eq!((told.retransmitted_bytes, told.receive_window_limited), (None, None));
    }

    #[test]
    fn a_measurement_without_end_is_an_error() {
        let mut subtest = open(Direction::Download);
        let mut server = Codec::new(Role::Server, Settings::default());
        server.send(Kind::Text, "x".repeat(MEASUREMENT_BYTES_MAX + 1)).unwrap();
        let mut said = Ok(0);
        while let Some(bytes) = server.pop_output() {
            said = said.and_then(|_| subtest.received(bytes, 0));
        }
        assert!(said.unwrap_err().contains("more than 65536 bytes"));
    }

    #[test]
    fn a_close_that_is_not_orderly_is_an_error() {
        let mut subtest = open(Direction::Download);
        let mut server = Codec::new(Role::Server, Settings::default());
        server.send_close(CloseCode::INTERNAL, "oops").unwrap();
        let bytes = server.pop_output().unwrap();
        let said = subtest.received(bytes, 0).unwrap_err();
        assert_eq!(said, "the server closed with 1011 oops");
    }
}

//! RFC 9001 §5, left out: packets that are not protected, and a handshake without TLS, so that a fuzzer's bytes reach what is behind them.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig,
    Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError};

/// The key of every packet and header.
struct NoKey;

impl HeaderKey for NoKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        0
    }
}

impl PacketKey for NoKey {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: u64, _: &[u8], _: &mut BytesMut) -> Result<(), CryptoError> {
        Ok(())
    }

    fn tag_len(&self) -> usize {
        0
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
        packet: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
    }
}

/// Configuration of a server for such handshakes.
pub(crate) struct Unprotected;

impl ServerConfig for Unprotected {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, own: &TransportParameters) -> Box<dyn Session> {
        let mut own_parameters = Vec::new();
        own.write(&mut own_parameters);
        Box::new(Handshake { own_parameters, peer: None, keys_given: 0, is_over: false })
    }
}

/// A handshake of two messages of the client's: its transport parameters, and anything.
struct Handshake {
    own_parameters: Vec<u8>,
    peer: Option<TransportParameters>,
    keys_given: u8,
    is_over: bool,
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        !self.is_over
    }

    fn read_handshake(&mut self, mut message: &[u8]) -> Result<bool, TransportError> {
        if self.peer.is_some() {
            self.is_over = true;
        } else {
            self.peer = Some(TransportParameters::read(Side::Server, &mut message)?);
        }
        Ok(!self.is_over)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, message: &mut Vec<u8>) -> Option<Keys> {
        if self.peer.is_none() || self.keys_given == 2 {
            return None;
        }
        self.keys_given += 1;
        message.extend_from_slice(&self.own_parameters);
        Some(keys())
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::{Instant, SystemTime};

    use bolide_buffers::Datagram;
    use bolide_h3::{Quic, QuicEvent};
    use bolide_tls::WallClock;

    use super::*;
    use crate::{Arrived, Connection, Endpoint};

    const OWN: &[u8] = b"mine";

    /// RFC 9000 §17.2: an Initial or a Handshake packet.
    fn long(first: u8, to: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![first, 0, 0, 0, 1, to.len() as u8];
        packet.extend_from_slice(to);
        packet.push(OWN.len() as u8);
        packet.extend_from_slice(OWN);
        packet.extend((first & 0x30 == 0).then_some(0));
        packet.extend((0x4000 | (payload.len() as u16 + 4)).to_be_bytes());
        packet.extend([0, 0, 0, 1]);
        packet.extend_from_slice(payload);
        packet
    }

    fn receive(endpoint: &mut Endpoint, bytes: &[u8], now: Instant) -> Arrived {
        let from = ([192, 0, 2, 1], 50_000).into();
        let datagram = Datagram { from, to: None, ecn: 0, bytes: BytesMut::from(bytes) };
        endpoint.receive(datagram, true, now, &mut Vec::new())
    }

    fn deliver(endpoint: &mut Endpoint, quic: &mut Connection, bytes: &[u8], now: Instant) {
        let Arrived::For(_, delivery) = receive(endpoint, bytes, now) else { panic!("lost") };
        quic.deliver(endpoint, delivery, now);
    }

    /// RFC 9000 §4.5: quinn-proto takes an end of a stream that is before what has come, and counts below zero when the stream is
    /// reset there: without a check, its limit for the connection would be gone.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the base of virtual time, read once")]
    fn an_end_before_what_has_come_ends_the_connection_and_lifts_no_limit() {
        let now = Instant::now();
        let clock = WallClock(|| SystemTime::UNIX_EPOCH);
        let mut endpoint = Endpoint::unprotected(clock, [1; 32]).unwrap();
        let mut hello = vec![6, 0, 10, 0x0f, 4, b'm', b'i', b'n', b'e', 4, 2, 0x60, 0];
        hello.resize(1200, 0);
        let arrived = receive(&mut endpoint, &long(0xc3, b"original", &hello), now);
        let Arrived::New(_, mut quic) = arrived else { panic!("{arrived:?}") };
        let mut sent = Vec::new();
        quic.send(&mut endpoint, &mut sent).unwrap();
        let id = sent[11..11 + usize::from(sent[10])].to_vec();
        deliver(&mut endpoint, &mut quic, &long(0xe3, &id, &[6, 0, 1, 0]), now);
        let short = |frames: &[u8], number: u8| {
            let mut packet = [&[0x43][..], &id, &[0, 0, 0, number], frames].concat();
            packet.resize(40, 0);
            packet
        };
        // Ten bytes of a stream, its end after three, and a reset there.
        deliver(
            &mut endpoint,
            &mut quic,
            &short(&[0x0a, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 2),
            now,
        );
        let end = [0x0f, 0, 3, 0];
        let ended = catch_unwind(AssertUnwindSafe(|| {
            deliver(&mut endpoint, &mut quic, &short(&end, 3), now);
            deliver(&mut endpoint, &mut quic, &short(&[4, 0, 0, 3], 4), now);
            let events = std::iter::from_fn(|| quic.event()).collect::<Vec<_>>();
            assert!(
                events.iter().any(|event| matches!(event, QuicEvent::Closed(_))),
                "it goes on: {events:?}"
            );
        }));
        let panicked = ended.err().and_then(|panic| panic.downcast::<&str>().ok());
        assert!(panicked.is_none_or(|what| what.contains("overflow")), "or it is closed");
    }
}

//! Both roles talk to each other in memory, in pieces of any size.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{
    ClientOptions, ClientTls, Clients, HandshakeRules, Identity, IdentityError, ServerOptions,
    ServerTls, TlsVersion, Trust, WallClock,
};

/// A day on which the certificates of this test are valid.
const CLOCK: WallClock = WallClock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000));

fn pem(name: &str) -> (String, String) {
    let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2036, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

struct Pair {
    client: TlsLayer,
    server: TlsLayer,
    piece: usize,
}

impl Pair {
    fn new(alpn: &[Alpn], piece: usize) -> Self {
        let (chain, key) = pem("localhost");
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        let server = ServerTls::new(&identity, CLOCK).unwrap();
        let client = ClientTls::new(&Trust::Pem(chain.into_bytes()), alpn, CLOCK).unwrap();
        let pair = (client.connect("localhost").unwrap(), server.accept().unwrap());
        Self { client: pair.0, server: pair.1, piece }
    }

    /// Moves what `from` has to send into `to`, piece by piece; returns the plaintext.
    fn carry(
        from: &mut TlsLayer,
        to: &mut TlsLayer,
        queue: &mut SendQueue,
        piece: usize,
    ) -> Vec<u8> {
        let mut wire = Vec::new();
        assert_eq!(from.flush(queue, &mut wire).unwrap(), Flush::Drained);
        let mut received = Vec::new();
        let mut input = ReceiveBuffer::new(65_536);
        let mut plain = ReceiveBuffer::new(65_536);
        for part in wire.chunks(piece) {
            input.start(&[]);
            input.extend(part);
            to.receive(&mut input, &mut plain).unwrap();
            // All but the last byte is used; that byte must come back in front.
            let usable = plain.len().saturating_sub(1);
            received.extend_from_slice(&plain.unread()[..usable]);
            plain.consume(usable);
            to.keep_rest(&mut plain);
        }
        input.start(&[]);
        to.receive(&mut input, &mut plain).unwrap();
        received.extend_from_slice(plain.unread());
        received
    }

    fn client_to_server(&mut self, queue: &mut SendQueue) -> Vec<u8> {
        Self::carry(&mut self.client, &mut self.server, queue, self.piece)
    }

    fn server_to_client(&mut self, queue: &mut SendQueue) -> Vec<u8> {
        Self::carry(&mut self.server, &mut self.client, queue, self.piece)
    }

    fn shake_hands(&mut self) {
        let mut nothing = SendQueue::new();
        for _ in 0..4 {
            self.client_to_server(&mut nothing);
            self.server_to_client(&mut nothing);
        }
        assert!(!self.client.is_handshaking() && !self.server.is_handshaking());
    }
}

#[test]
fn the_handshake_agrees_on_a_protocol() {
    for (offer, agreed) in [
        (&[Alpn::H2, Alpn::Http11][..], Some(Alpn::H2)),
        (&[Alpn::Http11], Some(Alpn::Http11)),
        (&[], None),
    ] {
        let mut pair = Pair::new(offer, usize::MAX);
        assert_eq!(pair.server.facts(), None);
        pair.shake_hands();
        let facts = pair.server.facts().unwrap();
        assert_eq!(facts.alpn, agreed);
        assert_eq!(facts.version, "TLSv1.3");
        assert_eq!(facts.cipher, "TLS_AES_128_GCM_SHA256");
        assert_eq!(facts.server_name.as_deref(), Some("localhost"));
        assert!(!facts.resumed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_pieces_carry_the_same_bytes(
        piece in 1_usize..3000,
        bodies in proptest::collection::vec(0_usize..40_000, 1..4),
    ) {
        let mut pair = Pair::new(&[Alpn::H2], piece);
        pair.shake_hands();
        let mut queue = SendQueue::new();
        let mut expected = Vec::new();
        for (index, length) in bodies.iter().enumerate() {
            let body = vec![index as u8 + 1; *length];
            expected.extend_from_slice(&body);
            queue.push(Bytes::from(body));
            queue.tail().extend_from_slice(b"frame");
            expected.extend_from_slice(b"frame");
        }
        prop_assert_eq!(pair.server_to_client(&mut queue), expected);
    }
}

#[test]
fn one_byte_records_are_opened_some_in_each_turn_and_none_is_lost() {
    const RECORDS: usize = 20_000;
    let mut pair = Pair::new(&[], usize::MAX);
    pair.shake_hands();
    let mut wire = Vec::new();
    for _ in 0..RECORDS {
        let mut queue = SendQueue::new();
        queue.tail().push(b'x');
        pair.client.flush(&mut queue, &mut wire).unwrap();
    }
    pair.client.close();
    pair.client.flush(&mut SendQueue::new(), &mut wire).unwrap();
    let (mut input, mut plain) = (ReceiveBuffer::new(1024), ReceiveBuffer::new(1024));
    input.start(&wire);
    let (mut total, mut turns) = (0, 0);
    while {
        let opened = pair.server.receive_some(&mut input, &mut plain).unwrap();
        assert!(plain.len() <= 2500, "{} records in a turn", plain.len());
        total += plain.len();
        plain.consume(plain.len());
        turns += 1;
        assert!(opened != Opened::All, "the end is in sight");
        opened == Opened::Cut
    } {}
    assert_eq!(total, RECORDS);
    assert!(turns >= 8, "{turns}");
    // Full records have no part in that.
    let mut queue = SendQueue::new();
    queue.push(Bytes::from(vec![7; 900_000]));
    let mut wire = Vec::new();
    pair.server.flush(&mut queue, &mut wire).unwrap();
    input.start(&wire);
    let mut opened = Ok(Opened::Part);
    while opened == Ok(Opened::Part) {
        opened = pair.client.receive_some(&mut input, &mut plain);
    }
    assert_eq!((opened, plain.len()), (Ok(Opened::All), 900_000));
}

#[test]
fn a_broken_record_fails_and_leaves_an_alert() {
    let mut pair = Pair::new(&[Alpn::H2], usize::MAX);
    pair.shake_hands();
    let mut input = ReceiveBuffer::new(1024);
    input.start(b"\x17\x03\x03\x00\x20thirty-two bytes that nobody seal");
    let failure = pair.server.receive(&mut input, &mut ReceiveBuffer::new(1024)).unwrap_err();
    assert!(!failure.in_handshake);
    assert!(pair.server.wants_write());
}

#[test]
fn cleartext_on_a_tls_port_fails_in_the_handshake() {
    let mut pair = Pair::new(&[], usize::MAX);
    let mut input = ReceiveBuffer::new(1024);
    input.start(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let failure = pair.server.receive(&mut input, &mut ReceiveBuffer::new(1024)).unwrap_err();
    assert!(failure.in_handshake);
}

#[test]
fn close_notify_comes_after_the_last_words() {
    let mut pair = Pair::new(&[], usize::MAX);
    pair.shake_hands();
    pair.client.close();
    let mut wire = Vec::new();
    let mut queue = SendQueue::new();
    queue.tail().extend_from_slice(b"last words");
    pair.client.flush(&mut queue, &mut wire).unwrap();
    let mut input = ReceiveBuffer::new(1024);
    input.start(&wire);
    let mut plain = ReceiveBuffer::new(1024);
    assert!(pair.server.receive(&mut input, &mut plain).unwrap());
    assert_eq!(plain.unread(), b"last words");
}

#[test]
fn a_client_that_does_not_trust_the_server_says_so() {
    let (chain, _) = pem("other");
    let mut pair = Pair::new(&[], usize::MAX);
    let client = ClientTls::new(&Trust::Pem(chain.into_bytes()), &[], CLOCK).unwrap();
    pair.client = client.connect("localhost").unwrap();
    pair.client_to_server(&mut SendQueue::new());
    let mut wire = Vec::new();
    pair.server.flush(&mut SendQueue::new(), &mut wire).unwrap();
    let mut input = ReceiveBuffer::new(65_536);
    input.start(&wire);
    let failure = pair.client.receive(&mut input, &mut ReceiveBuffer::new(1024)).unwrap_err();
    assert!(failure.what.contains("certificate"), "{failure}");
}

#[test]
fn a_session_is_resumed_by_ticket() {
    let (chain, key) = pem("localhost");
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let server = ServerTls::new(&identity, CLOCK).unwrap();
    let client = ClientTls::new(&Trust::Any, &[Alpn::H2], CLOCK).unwrap();
    for resumed in [false, true] {
        let mut pair = Pair {
            client: client.connect("localhost").unwrap(),
            server: server.accept().unwrap(),
            piece: usize::MAX,
        };
        pair.shake_hands();
        assert_eq!(pair.server.facts().unwrap().resumed, resumed);
    }
}

#[test]
fn connections_that_begin_at_once_are_all_resumed() {
    let (chain, key) = pem("localhost");
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let server = ServerTls::new(&identity, CLOCK).unwrap();
    let client = ClientTls::new(&Trust::Any, &[Alpn::H2], CLOCK).unwrap();
    for resumed in [false, true] {
        let begun: Vec<_> = (0..50).map(|_| client.connect("localhost").unwrap()).collect();
        for client in begun {
            let server = server.accept().unwrap();
            let mut pair = Pair { client, server, piece: usize::MAX };
            pair.shake_hands();
            assert_eq!(pair.client.facts().unwrap().resumed, resumed);
        }
    }
}

#[test]
fn a_client_that_does_not_resume_shakes_hands_in_full() {
    let (chain, key) = pem("localhost");
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let server = ServerTls::new(&identity, CLOCK).unwrap();
    let trust = Trust::Der(vec![b"not a certificate".to_vec(), identity.certificate_der().into()]);
    let identity = Some(&identity);
    let options = ClientOptions {
        trust: &trust,
        alpn: &[Alpn::H2],
        identity,
        resume: false,
        early_data: false,
    };
    let client = ClientTls::with(&options, CLOCK).unwrap();
    for _ in 0..2 {
        let mut pair = Pair {
            client: client.connect("localhost").unwrap(),
            server: server.accept().unwrap(),
            piece: usize::MAX,
        };
        pair.shake_hands();
        let facts = pair.client.facts().unwrap();
        assert!(!facts.resumed);
        assert_eq!(facts.version, "TLSv1.3");
        assert_eq!(facts.cipher, "TLS_AES_128_GCM_SHA256");
    }
}

#[test]
fn nobody_is_trusted_by_an_empty_store() {
    let options = ClientOptions {
        trust: &Trust::Der(vec![b"nothing".to_vec()]),
        alpn: &[],
        identity: None,
        resume: true,
        early_data: false,
    };
    assert!(matches!(ClientTls::with(&options, CLOCK), Err(IdentityError::NoCertificate)));
}

#[test]
fn identities_say_what_is_wrong() {
    let (chain, key) = pem("a");
    let (_, other) = pem("b");
    let wrong = |chain: &str, key: &str| Identity::from_pem(chain.as_bytes(), key.as_bytes());
    assert!(matches!(wrong(&chain, &other), Err(IdentityError::Mismatch)));
    assert!(matches!(wrong("", &key), Err(IdentityError::NoCertificate)));
    assert!(matches!(wrong(&chain, ""), Err(IdentityError::NoKey)));
    assert!(matches!(wrong(&chain, &chain), Err(IdentityError::NoKey)));
    assert!(wrong(&chain.replace('M', "!"), &key).is_err());
    assert!(wrong(&chain, &key).is_ok());
}

mod settings;

/// Takes so many bytes, then nothing.
struct Narrow(usize);

impl Write for Narrow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match bytes.len().min(self.0) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => {
                self.0 -= count;
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sealed_record_is_charged_until_it_is_written() {
    let mut pair = Pair::new(&[], 65_536);
    pair.shake_hands();
    assert_eq!(pair.server.held_bytes(), 0);
    let mut queue = SendQueue::new();
    queue.push(Bytes::from(vec![7; 4 << 20]));
    assert_eq!(pair.server.flush(&mut queue, &mut Narrow(100_000)).unwrap(), Flush::Blocked);
    let sealed = (4 << 20) - queue.len();
    let held = pair.server.held_bytes();
    assert!((sealed - 100_000..=sealed).contains(&held), "{held} of {sealed}");
    while pair.server.flush(&mut queue, &mut Narrow(usize::MAX)).unwrap() != Flush::Drained {}
    assert_eq!(pair.server.held_bytes(), 0);
}

/// The lengths of the records that `pieces` of `content` bytes are sealed into, behind `head` bytes; the first piece
/// begins `offset` bytes behind the beginning of a page.
fn records(head: usize, content: usize, offset: usize, pieces: usize) -> Vec<usize> {
    let mut pair = Pair::new(&[], 65_536);
    pair.shake_hands();
    let room = vec![7; content * pieces + 2 * PAGE_BYTES];
    let start = room.as_ptr().addr().next_multiple_of(PAGE_BYTES) - room.as_ptr().addr() + offset;
    let room = Bytes::from(room);
    let mut queue = SendQueue::new();
    queue.push(Bytes::from(vec![1; head]));
    for piece in 0..pieces {
        queue.push(room.slice(start + piece * content..start + (piece + 1) * content));
    }
    let mut wire = Vec::new();
    assert_eq!(pair.server.flush(&mut queue, &mut wire).unwrap(), Flush::Drained);
    let (mut lengths, mut rest) = (Vec::new(), &wire[..]);
    while let [_, _, _, high, low, ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(length - 17);
        rest = &rest[5 + length..];
    }
    lengths
}

#[test]
fn records_do_not_begin_with_pages_of_what_they_hold() {
    let (whole, short) = (RECORD_BYTES_MAX, SHORT_COPY_BYTES);
    assert_eq!(records(0, 3 * whole, 0, 1), [short, whole, whole, whole - short]);
    assert_eq!(records(0, 3 * whole, PAGE_BYTES - 4, 1)[0], short);
    assert_eq!(records(0, whole, 0, 2), [short, whole, whole - short]);
    assert_eq!(records(10, 2 * whole, 0, 1), [short, whole, whole - short + 10]);
    assert_eq!(records(0, 3 * whole, 512, 1), [whole, whole, whole]);
    assert_eq!(records(200, 2 * whole, 0, 1), [whole, whole, 200]);
    assert_eq!(records(10, 2 * whole, 522, 1), [whole, whole, 10]);
    assert_eq!(records(0, whole - 1, 0, 1), [whole - 1]);
}

#[test]
fn long_plaintext_is_opened_in_parts_that_follow_each_other() {
    let mut pair = Pair::new(&[], usize::MAX);
    pair.shake_hands();
    let content: Vec<u8> = (0..600_000_u32).map(|at| at as u8).collect();
    let mut queue = SendQueue::new();
    queue.push(Bytes::from(content.clone()));
    let mut wire = Vec::new();
    pair.client.flush(&mut queue, &mut wire).unwrap();
    let (mut input, mut plain) = (ReceiveBuffer::new(1024), ReceiveBuffer::new(1024));
    input.start(&wire);
    let (mut received, mut parts, mut left) = (Vec::new(), 1, 0);
    while pair.server.receive_some(&mut input, &mut plain) == Ok(Opened::Part) {
        let opened = plain.len() - left;
        assert!((PART_BYTES..PART_BYTES + RECORD_BYTES_MAX).contains(&opened), "{opened}");
        // What a parser leaves comes before the next part.
        left = 1000;
        received.extend_from_slice(&plain.unread()[..plain.len() - left]);
        plain.consume(plain.len() - left);
        parts += 1;
    }
    received.extend_from_slice(plain.unread());
    assert!(received == content && parts == 5, "{parts} parts");
}

//! Parts that hold pieces, each by itself.

use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime};

use bolide_buffers::{Chunk, ReceiveBuffer, SendQueue};
use bolide_client::{Pool, PoolLimits};
use bolide_connection::{ClientTls, Identity, ServerTls, TlsLayer, Trust, WallClock};
use bolide_server::Bytes;

use crate::cost::Cost;
use crate::table::Carrier;

pub(crate) const CARRIERS: &[Carrier] = &[
    Carrier::new("TLS records of 1 byte", 10_000, records),
    Carrier::new("pieces of output that wait for the socket", 2000, output),
    Carrier::new("requests that wait while connections to other addresses fail", 2000, elsewhere),
    Carrier::new("requests that wait and are given up", 4000, forgotten),
];

fn tls_pair() -> (TlsLayer, TlsLayer) {
    const CLOCK: WallClock =
        WallClock(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000));
    let mut parameters =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2036, 1, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let chain = parameters.self_signed(&key).expect("a certificate").pem();
    let identity = Identity::from_pem(chain.as_bytes(), key.serialize_pem().as_bytes());
    let server = ServerTls::new(&identity.expect("an identity"), CLOCK).expect("a server");
    let client = ClientTls::new(&Trust::Pem(chain.into_bytes()), &[], CLOCK).expect("a client");
    let mut client = client.connect("localhost").expect("a client's layer");
    let mut server = server.accept().expect("a server's layer");
    for _ in 0..4 {
        pass(&mut client, &mut server);
        pass(&mut server, &mut client);
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    (client, server)
}

fn pass(from: &mut TlsLayer, to: &mut TlsLayer) {
    let mut wire = Vec::new();
    from.flush(&mut SendQueue::new(), &mut wire).expect("memory takes everything");
    let mut input = ReceiveBuffer::new(65_536);
    input.start(&wire);
    to.receive(&mut input, &mut ReceiveBuffer::new(65_536)).expect("a handshake");
}

/// Records of one byte, read by the block.
fn records(count: usize) -> Cost {
    let (mut client, mut server) = tls_pair();
    let mut wire = Vec::new();
    for _ in 0..count {
        let mut queue = SendQueue::new();
        queue.tail().push(b'x');
        client.flush(&mut queue, &mut wire).expect("memory takes everything");
    }
    let mut received = 0;
    let cost = Cost::of(|| {
        let mut input = ReceiveBuffer::new(256 * 1024);
        let mut plain = ReceiveBuffer::new(256 * 1024);
        for block in wire.chunks(256 * 1024) {
            let rest = input.take_rest();
            input.start(&rest);
            input.extend(block);
            while !input.is_empty() {
                let before = input.len();
                server.receive(&mut input, &mut plain).expect("records");
                received += plain.len();
                plain.consume(plain.len());
                if input.len() == before {
                    break;
                }
            }
        }
    });
    assert_eq!(received, count);
    cost
}

/// Takes nothing.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn output(count: usize) -> Cost {
    let file = Bytes::from(vec![7; 16 * 1024]);
    let mut queue = SendQueue::new();
    Cost::of(|| {
        for _ in 0..count {
            queue.push(Chunk::shared(file.clone()));
            queue.flush(&mut Full).expect("it only blocks");
            queue.settle();
        }
    })
}

fn pool(count: usize) -> Pool<usize, usize> {
    let (waiting_count, wait_timeout) = (2 * count, Duration::from_secs(10));
    Pool::new(PoolLimits { connections_count: 256, waiting_count, wait_timeout }, Some(false))
}

fn elsewhere(count: usize) -> Cost {
    let (mut pool, now) = (pool(count), Instant::now());
    Cost::of(|| {
        for request in 0..count {
            pool.wait(request, now).expect("room");
            let key = pool.dial(request);
            pool.elsewhere(key, now);
        }
        assert_eq!(pool.counts(), (0, count));
    })
}

fn forgotten(count: usize) -> Cost {
    let (mut pool, now) = (pool(count), Instant::now());
    Cost::of(|| {
        let keys: Vec<_> =
            (0..count).map(|request| pool.wait(request, now).expect("room")).collect();
        for key in keys.iter().rev() {
            assert!(pool.forget(*key).is_some());
        }
    })
}

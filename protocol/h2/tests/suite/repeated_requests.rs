//! RFC 7541 §2.3, RFC 9113 §8.3: a block that was decoded before is recognised, on a worker whose connections
//! use one head in turn; what is reported is what a connection of its own reports that decodes each.

use bolide_h2::Limits;
use bolide_semantics::{End, Head, Role};
use proptest::prelude::*;

use crate::raw::{self, END_HEADERS, END_STREAM, HEADERS, frame};
use crate::subject::{Seen, Subject};

/// Blocks of requests by name; `octet` is a part of the path or of the authority.
fn block(kind: u8, octet: u8) -> Vec<u8> {
    match kind {
        // Everything stays out of the table.
        0 => vec![0x82, 0x86, 0x04, 2, b'/', octet, 0x01, 1, b'a'],
        // The path enters it.
        1 => vec![0x82, 0x86, 0x44, 2, b'/', octet, 0x01, 1, b'a'],
        // The path is the newest entry, or the one before.
        2 => vec![0x82, 0x86, 0xbe, 0x01, 1, octet],
        3 => vec![0x82, 0x86, 0xbf, 0x01, 1, octet],
        // Malformed: no authority. A secret. A name that is in no table.
        4 => vec![0x82, 0x86, 0x04, 2, b'/', octet],
        5 => vec![0x82, 0x86, 0x04, 2, b'/', octet, 0x01, 1, b'a', 0x1f, 0x08, 1, octet],
        6 => vec![0x82, 0x86, 0x04, 2, b'/', b'x', 0x01, 1, b'a', 0x00, 1, b'n', 1, octet],
        // The table is emptied before two paths enter it.
        _ => {
            let update = [0x20, 0x3f, 0xe1, 0x1f];
            let fields = [0x40, 1, b'n', 1, octet, 0x40, 1, b'm', 1, octet];
            [&update[..], &block(1, octet), &fields].concat()
        }
    }
}

/// What a server reports of requests that come one by one, with the head that it is lent.
struct Server {
    subject: Subject,
    next: u32,
}

impl Server {
    fn new() -> Self {
        let mut server = Self { subject: Subject::new(Role::Server, Limits::default()), next: 1 };
        server.subject.feed(&raw::client_preface(&[]));
        let mut unused = Head::default();
        for octet in [b'p', b'q'] {
            server.ask(&block(1, octet), &mut unused);
        }
        server
    }

    fn ask(&mut self, block: &[u8], head: &mut Head) -> Vec<Seen> {
        let request = frame(HEADERS, END_HEADERS | END_STREAM, self.next, block);
        self.next += 2;
        std::mem::swap(&mut self.subject.head, head);
        let seen = self.subject.feed(&request);
        std::mem::swap(&mut self.subject.head, head);
        if let [Seen::Head(id, ..)] = seen[..] {
            self.subject.answer(id, 200, End::Yes).unwrap();
            self.subject.sent_bytes();
        }
        seen
    }
}

proptest! {
    #[test]
    fn what_comes_again_means_what_it_means_whoever_came_between(
        steps in prop::collection::vec((0..2_usize, 0..8_u8, b'x'..=b'y', 1..4), 1..80),
    ) {
        let mut shared = Head::default();
        let mut servers = [Server::new(), Server::new()];
        let mut oracles = [Server::new(), Server::new()];
        for (at, kind, octet, times) in steps {
            for _ in 0..times {
                let block = block(kind, octet);
                let seen = servers[at].ask(&block, &mut shared);
                prop_assert_eq!(seen, oracles[at].ask(&block, &mut Head::default()));
            }
        }
    }
}

#[test]
fn a_repeated_block_is_recognised() {
    let mut head = Head::default();
    let mut server = Server::new();
    server.ask(&block(0, b'x'), &mut head);
    server.ask(&block(0, b'x'), &mut head);
    let mark = head.mark();
    assert!(mark.is_some());
    server.ask(&block(0, b'x'), &mut head);
    assert_eq!(head.mark(), mark);
    server.ask(&block(2, b'x'), &mut head);
    assert_ne!(head.mark(), mark);
}

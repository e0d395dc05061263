//! Both roles against each other, with and without compression.

use bolide_semantics::{End, Role};
use bolide_websocket::{CloseCode, Codec, Deflate, Kind, Settings};
use proptest::prelude::*;

use crate::wire::{Seen, feed, output};

/// An order to one end.
#[derive(Debug, Clone)]
enum Order {
    Text(String),
    Binary(Vec<u8>),
    Pieces(Vec<Vec<u8>>),
    Ping(Vec<u8>),
}

fn orders() -> impl Strategy<Value = Vec<Order>> {
    let bytes = |count| proptest::collection::vec(0_u8..4, 0..count);
    let order = prop_oneof![
        "\\PC{0,80}".prop_map(Order::Text),
        bytes(5000).prop_map(Order::Binary),
        proptest::collection::vec(bytes(300), 1..5).prop_map(Order::Pieces),
        bytes(125).prop_map(Order::Ping),
    ];
    proptest::collection::vec(order, 0..10)
}

/// Carries the orders out; what the other end must see.
fn send(codec: &mut Codec, orders: Vec<Order>) -> Vec<Seen> {
    let mut expected = Vec::new();
    for order in orders {
        match order {
            Order::Text(text) => {
                codec.send(Kind::Text, text.clone()).unwrap();
                expected.push(Seen::Message(Kind::Text, text.into_bytes()));
            }
            Order::Binary(bytes) => {
                codec.send(Kind::Binary, bytes.clone()).unwrap();
                expected.push(Seen::Message(Kind::Binary, bytes));
            }
            Order::Pieces(pieces) => {
                for (at, piece) in pieces.iter().enumerate() {
                    let end = if at + 1 == pieces.len() { End::Yes } else { End::No };
                    codec.send_piece(Kind::Binary, piece.clone(), end).unwrap();
                }
                expected.push(Seen::Message(Kind::Binary, pieces.concat()));
            }
            Order::Ping(content) => {
                codec.send_ping(content.clone()).unwrap();
                expected.push(Seen::Ping(content));
            }
        }
    }
    codec.send_close(CloseCode::NORMAL, "done").unwrap();
    expected.push(Seen::Closed(1000, "done".to_owned()));
    expected
}

proptest! {
    #[test]
    fn what_one_end_sends_the_other_sees(
        orders in orders(),
        agreed in proptest::option::of((any::<[bool; 2]>(), 8_u8..=15, 8_u8..=15)),
        to_server in any::<bool>(),
        cut in 1_usize..2000,
    ) {
        let deflate = agreed.map(|([server, client], server_bits, client_bits)| Deflate {
            server_no_context_takeover: server,
            client_no_context_takeover: client,
            server_max_window_bits: server_bits,
            client_max_window_bits: client_bits,
        });
        let settings = Settings { deflate, mask_seed: 99, ..Settings::default() };
        let roles = [Role::Client, Role::Server];
        let [from, to] = if to_server { roles } else { [roles[1], roles[0]] };
        let (mut from, mut to) = (Codec::new(from, settings), Codec::new(to, settings));
        let expected = send(&mut from, orders);
        let sent = output(&mut from);
        prop_assert_eq!(feed(&mut to, sent.chunks(cut)), expected);
        let response = output(&mut to);
        let closed = feed(&mut from, [&response[..]]);
        prop_assert_eq!(closed.last(), Some(&Seen::Closed(1000, String::new())));
        prop_assert!(from.is_over() && to.is_over());
    }
}

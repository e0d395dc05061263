//! RFC 9113 §5.2: how long responses waited, and for what.

use std::time::Duration;

use bolide_h2::Stalls;
use bolide_semantics::{End, ExchangeId};

use crate::raw::{self, window_update};
use crate::subject::Subject;

const MS: Duration = Duration::from_millis(1);

#[test]
fn waiting_is_counted_for_what_was_waited_for() {
    let mut server = Subject::server_with(bolide_h2::Limits::default(), &[(4, 100_000)]);
    server.output_limit = 10_000;
    server.feed(&raw::get(1));
    server.answer(1, 200, End::No).unwrap();
    server.give(1, &[0; 200_000], End::Yes).unwrap();
    server.turn();
    // The socket takes nothing for 7 ms, then whatever there is.
    server.after(7 * MS);
    for _ in 0..10 {
        server.sent();
        server.turn();
    }
    // 65,535 bytes have left: the connection's window is used up for 11 ms.
    server.after(11 * MS);
    server.feed(&window_update(0, 1 << 20));
    for _ in 0..10 {
        server.sent();
        server.turn();
    }
    // 100,000 bytes have left: the stream's window is used up for 13 ms.
    server.after(13 * MS);
    server.feed(&window_update(1, 1));
    let expected = Stalls { stream_window_ms: 13, connection_window_ms: 11, socket_ms: 7 };
    assert_eq!(server.connection.stats().stalls, expected);
    assert_eq!(server.connection.stalls(ExchangeId(1)), Some(expected));
    assert_eq!(server.connection.stalls(ExchangeId(3)), None);
}

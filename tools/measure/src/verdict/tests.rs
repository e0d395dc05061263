//! A table of figures and what they mean.

use super::*;

/// A second of 1 Gbit/s in which no core was busy.
fn calm() -> Facts {
    Facts {
        direction: Direction::Download,
        bytes: 125_000_000,
        seconds: 1.0,
        streams: 1,
        connections: 1,
        client_busiest: 0.2,
        client_cores: 0.2,
        server: Some((0.3, 0.3)),
        cores: Some(4),
        stalls: Stalls::default(),
        retransmits: None,
        out_of_order: None,
        receive_window_limited: None,
        round_trip_ns: Some(1_000_000),
    }
}

fn stalled(stalls: Stalls) -> Facts {
    Facts { stalls, ..calm() }
}

const MS: u64 = 1_000_000;

/// A limit, a part of what is said for it, and the figures.
type Row = (Limit, &'static str, Facts);

fn busy_sides() -> Vec<Row> {
    vec![
        (Limit::Network, "no side is busy", calm()),
        (Limit::Network, "not watched", Facts { server: None, ..calm() }),
        (
            Limit::Network,
            "0.5 % of our segments",
            Facts { direction: Direction::Upload, retransmits: Some(432), ..calm() },
        ),
        (
            Limit::Network,
            "0.5 % of the segments arrived out of order",
            Facts { out_of_order: Some(432), ..calm() },
        ),
        (Limit::Client, "Our busiest thread", Facts { client_busiest: 0.97, ..calm() }),
        (Limit::Client, "not watched", Facts { client_busiest: 0.97, server: None, ..calm() }),
        (Limit::Server, "97.0 %", Facts { server: Some((0.97, 0.97)), ..calm() }),
        (
            Limit::Machine,
            "Both were saturated",
            Facts { client_busiest: 1.2, server: Some((0.96, 0.96)), ..calm() },
        ),
        (
            Limit::Machine,
            "1.92 of the machine's 2 cores",
            Facts {
                client_busiest: 0.8,
                client_cores: 0.96,
                server: Some((0.8, 0.96)),
                cores: Some(2),
                ..calm()
            },
        ),
    ]
}

fn windows_and_small_transfers() -> Vec<Row> {
    vec![
        (
            Limit::Window,
            "We waited for the server's stream window 40.0 %",
            stalled(Stalls { peer_stream_ns: 400 * MS, ..Stalls::default() }),
        ),
        (
            Limit::Window,
            "our connection window (--window) 80.0 %",
            stalled(Stalls { own_connection_ns: 800 * MS, ..Stalls::default() }),
        ),
        (
            // Summed over four streams, this is a tenth of each one's time.
            Limit::Network,
            "no side is busy",
            Facts {
                streams: 4,
                ..stalled(Stalls { peer_stream_ns: 400 * MS, ..Stalls::default() })
            },
        ),
        (
            Limit::Window,
            "receiver's TCP window",
            Facts { receive_window_limited: Some(0.5), ..calm() },
        ),
        (
            // Who is full closes windows: that is the cause, and the window is not.
            Limit::Client,
            "Our busiest thread",
            Facts {
                client_busiest: 0.99,
                ..stalled(Stalls { own_stream_ns: 900 * MS, ..Stalls::default() })
            },
        ),
        (
            Limit::Asked,
            "2.0 round trips",
            Facts { seconds: 0.1, round_trip_ns: Some(50 * MS), ..calm() },
        ),
        (Limit::Asked, "More bytes", Facts { seconds: 0.01, round_trip_ns: None, ..calm() }),
        (Limit::Unclear, "Nothing was transferred", Facts { bytes: 0, ..calm() }),
        (Limit::Unclear, "Neither side was saturated", Facts { client_busiest: 0.8, ..calm() }),
    ]
}

#[test]
fn figures_lead_to_their_verdict() {
    for (limit, said, facts) in busy_sides().into_iter().chain(windows_and_small_transfers()) {
        let found = judge(&facts);
        assert_eq!(found.limit, limit, "{facts:?}: {found:?}");
        assert!(found.evidence.join(" ").contains(said), "{said}: {found:?}");
    }
}

#[test]
fn a_limit_is_a_word_in_json() {
    let found = serde_json::to_string(&judge(&calm())).unwrap();
    assert!(found.starts_with(r#"{"limit":"network","evidence":["#), "{found}");
}

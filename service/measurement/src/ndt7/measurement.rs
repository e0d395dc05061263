//! A measurement as JSON.

use std::time::Duration;

use bolide_server::{BbrInfo, TcpInfo};
use serde_json::{Map, Value, json};

use super::Direction;

/// Facts in a measurement about its connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionFacts {
    pub(super) client: String,
    pub(super) server: String,
    pub(super) uuid: String,
    pub(super) start_time: String,
}

/// A measurement of the server's. Times are in microseconds.
pub(super) fn measurement(
    direction: Direction,
    facts: &ConnectionFacts,
    elapsed: Duration,
    bytes: u64,
    tcp: Option<&TcpInfo>,
    bbr: Option<BbrInfo>,
) -> Value {
    // A client divides by it.
    let elapsed = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1);
    let mut measurement = json!({
        "AppInfo": { "ElapsedTime": elapsed, "NumBytes": bytes },
        "ConnectionInfo": {
            "Client": facts.client,
            "Server": facts.server,
            "UUID": facts.uuid,
            "StartTime": facts.start_time,
        },
        "Origin": "server",
        "Test": direction.name(),
    });
    if let Some(tcp) = tcp {
        let mut tcp = tcp_info(tcp);
        tcp.insert("ElapsedTime".to_owned(), elapsed.into());
        measurement["TCPInfo"] = tcp.into();
    }
    if let Some(bbr) = bbr {
        measurement["BBRInfo"] = json!({
            "BW": bbr.bandwidth,
            "MinRTT": bbr.min_rtt,
            "PacingGain": bbr.pacing_gain,
            "CwndGain": bbr.cwnd_gain,
            "ElapsedTime": elapsed,
        });
    }
    measurement
}

/// All of it under the names that ndt7 has for it.
fn tcp_info(tcp: &TcpInfo) -> Map<String, Value> {
    let named = [
        ("State", tcp.state),
        ("CAState", tcp.ca_state),
        ("Retransmits", tcp.retransmits),
        ("Probes", tcp.probes),
        ("Backoff", tcp.backoff),
        ("Options", tcp.options),
        ("WScale", tcp.window_scale),
        ("AppLimited", tcp.app_limited),
        ("RTO", tcp.rto),
        ("ATO", tcp.ato),
        ("SndMSS", tcp.snd_mss),
        ("RcvMSS", tcp.rcv_mss),
        ("Unacked", tcp.unacked),
        ("Sacked", tcp.sacked),
        ("Lost", tcp.lost),
        ("Retrans", tcp.retrans),
        ("Fackets", tcp.fackets),
        ("LastDataSent", tcp.last_data_sent),
        ("LastAckSent", tcp.last_ack_sent),
        ("LastDataRecv", tcp.last_data_recv),
        ("LastAckRecv", tcp.last_ack_recv),
        ("PMTU", tcp.pmtu),
        ("RcvSsThresh", tcp.rcv_ssthresh),
        ("RTT", tcp.rtt),
        ("RTTVar", tcp.rtt_var),
        ("SndSsThresh", tcp.snd_ssthresh),
        ("SndCwnd", tcp.snd_cwnd),
        ("AdvMSS", tcp.adv_mss),
        ("Reordering", tcp.reordering),
        ("RcvRTT", tcp.rcv_rtt),
        ("RcvSpace", tcp.rcv_space),
        ("TotalRetrans", tcp.total_retrans),
        ("PacingRate", tcp.pacing_rate),
        ("MaxPacingRate", tcp.max_pacing_rate),
        ("BytesAcked", tcp.bytes_acked),
        ("BytesReceived", tcp.bytes_received),
        ("SegsOut", tcp.segs_out),
        ("SegsIn", tcp.segs_in),
        ("NotsentBytes", tcp.notsent_bytes),
        ("MinRTT", tcp.min_rtt),
        ("DataSegsIn", tcp.data_segs_in),
        ("DataSegsOut", tcp.data_segs_out),
        ("DeliveryRate", tcp.delivery_rate),
        ("BusyTime", tcp.busy_time),
        ("RWndLimited", tcp.rwnd_limited),
        ("SndBufLimited", tcp.sndbuf_limited),
        ("Delivered", tcp.delivered),
        ("DeliveredCE", tcp.delivered_ce),
        ("BytesSent", tcp.bytes_sent),
        ("BytesRetrans", tcp.bytes_retrans),
        ("DSackDups", tcp.dsack_dups),
        ("ReordSeen", tcp.reord_seen),
    ];
    // A rate without a limit has all bits set: clients read it as a signed number.
    named.into_iter().map(|(name, value)| (name.to_owned(), value.cast_signed().into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_has_every_part() {
        let facts = ConnectionFacts {
            client: "[::1]:1".to_owned(),
            server: "[::1]:2".to_owned(),
            uuid: "u".to_owned(),
            start_time: "t".to_owned(),
        };
        let tcp = TcpInfo { min_rtt: 7, max_pacing_rate: u64::MAX, ..TcpInfo::default() };
        let bbr = BbrInfo { bandwidth: 1 << 33, min_rtt: 7, pacing_gain: 320, cwnd_gain: 512 };
        let elapsed = Duration::from_millis(250);
        let made = measurement(Direction::Upload, &facts, elapsed, 10, Some(&tcp), Some(bbr));
        assert_eq!(made["AppInfo"], json!({ "ElapsedTime": 250_000, "NumBytes": 10 }));
        assert_eq!(made["ConnectionInfo"]["Client"], "[::1]:1");
        assert_eq!((&made["Origin"], &made["Test"]), (&json!("server"), &json!("upload")));
        assert_eq!(made["TCPInfo"]["ElapsedTime"], 250_000);
        assert_eq!(
            (&made["TCPInfo"]["MinRTT"], &made["TCPInfo"]["MaxPacingRate"]),
            (&json!(7), &json!(-1))
        );
        assert_eq!(made["TCPInfo"].as_object().unwrap().len(), 53);
        assert_eq!(made["BBRInfo"]["BW"], 1_u64 << 33);
        assert_eq!(made["BBRInfo"].as_object().unwrap().len(), 5);
        let none = measurement(Direction::Upload, &facts, Duration::ZERO, 0, None, None);
        assert_eq!((none.get("TCPInfo"), none.get("BBRInfo")), (None, None));
        assert_eq!(none["AppInfo"]["ElapsedTime"], 1, "a client divides by it");
    }
}

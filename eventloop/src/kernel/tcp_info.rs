//! TCP's measurements of a path.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::Path;

/// BBR's model of a path (`TCP_CC_INFO`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BbrInfo {
    /// The bandwidth of the bottleneck, in bytes per second.
    pub bandwidth: u64,
    /// The least round-trip time of the last ten seconds, in microseconds.
    pub min_rtt: u64,
    /// How much faster than the bandwidth is sent, in 256ths.
    pub pacing_gain: u64,
    /// How much more than bandwidth × round-trip time may be on its way, in 256ths.
    pub cwnd_gain: u64,
}

/// The path of a socket that no event loop has.
#[derive(Debug, Clone, Copy)]
pub struct SocketPath<'a>(pub BorrowedFd<'a>);

impl Path for SocketPath<'_> {
    fn rtt(&self) -> Option<Duration> {
        rtt(self.0)
    }

    fn retransmits(&self) -> Option<u64> {
        retransmits(self.0)
    }

    fn out_of_order(&self) -> Option<u64> {
        out_of_order(self.0)
    }

    fn tcp_info(&self) -> Option<TcpInfo> {
        all(self.0)
    }

    fn congestion_control(&self) -> Option<String> {
        congestion_control(self.0)
    }

    fn bbr(&self) -> Option<BbrInfo> {
        bbr(self.0)
    }
}

/// Declares [`TcpInfo`] and how it is filled from the kernel's structure.
macro_rules! tcp_info {
    ($($(#[$doc:meta])* $field:ident = $kernel:ident,)*) => {
        /// The kernel's measurements of a connection (`tcp(7)`, `TCP_INFO`). What an older kernel does
        /// not tell is 0. Times are in microseconds unless said otherwise.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct TcpInfo {
            $($(#[$doc])* pub $field: u64,)*
            /// The peer's and our window scale: the lower and the upper four bits.
            pub window_scale: u64,
            /// 1 when the delivery rate was limited by the application.
            pub app_limited: u64,
        }

        #[cfg(target_os = "linux")]
        impl TcpInfo {
            fn of(info: &libc::tcp_info, app_limited: bool) -> Self {
                Self {
                    $($field: u64::from(info.$kernel),)*
                    window_scale: u64::from(info.tcpi_snd_rcv_wscale),
                    app_limited: u64::from(app_limited),
                }
            }
        }
    };
}

tcp_info! {
    /// The state: 1 is established.
    state = tcpi_state,
    /// The state of congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    ca_state = tcpi_ca_state,
    /// Retransmission timeouts in a row.
    retransmits = tcpi_retransmits,
    /// Unanswered window probes and keep-alives.
    probes = tcpi_probes,
    /// Exponent of the retransmission timer's backoff.
    backoff = tcpi_backoff,
    /// Options that were negotiated: 1 time stamps, 2 SACK, 4 window scale, 8 ECN …
    options = tcpi_options,
    /// The retransmission timeout.
    rto = tcpi_rto,
    /// The delayed acknowledgements' timeout.
    ato = tcpi_ato,
    /// The segment size that is sent, in bytes.
    snd_mss = tcpi_snd_mss,
    /// The segment size that is received, in bytes.
    rcv_mss = tcpi_rcv_mss,
    /// Segments sent and not acknowledged.
    unacked = tcpi_unacked,
    /// Of these, segments acknowledged by SACK.
    sacked = tcpi_sacked,
    /// Of these, segments thought lost.
    lost = tcpi_lost,
    /// Of these, segments sent again.
    retrans = tcpi_retrans,
    /// Segments acknowledged forward (not kept by newer kernels).
    fackets = tcpi_fackets,
    /// Since data was last sent, in milliseconds.
    last_data_sent = tcpi_last_data_sent,
    /// Since an acknowledgement was last sent, in milliseconds (not kept).
    last_ack_sent = tcpi_last_ack_sent,
    /// Since data was last received, in milliseconds.
    last_data_recv = tcpi_last_data_recv,
    /// Since an acknowledgement was last received, in milliseconds.
    last_ack_recv = tcpi_last_ack_recv,
    /// The path's largest packet, in bytes.
    pmtu = tcpi_pmtu,
    /// The threshold of the receive window, in bytes.
    rcv_ssthresh = tcpi_rcv_ssthresh,
    /// The smoothed round-trip time.
    rtt = tcpi_rtt,
    /// Its variance.
    rtt_var = tcpi_rttvar,
    /// The slow-start threshold, in segments.
    snd_ssthresh = tcpi_snd_ssthresh,
    /// The congestion window, in segments.
    snd_cwnd = tcpi_snd_cwnd,
    /// The segment size that was announced, in bytes.
    adv_mss = tcpi_advmss,
    /// How far segments are reordered.
    reordering = tcpi_reordering,
    /// The round-trip time as the receiver sees it.
    rcv_rtt = tcpi_rcv_rtt,
    /// The receiver's space, in bytes.
    rcv_space = tcpi_rcv_space,
    /// Segments sent again in all.
    total_retrans = tcpi_total_retrans,
    /// The pacing rate, in bytes per second.
    pacing_rate = tcpi_pacing_rate,
    /// The most that pacing may use, in bytes per second.
    max_pacing_rate = tcpi_max_pacing_rate,
    /// Bytes acknowledged by the peer.
    bytes_acked = tcpi_bytes_acked,
    /// Bytes received in order.
    bytes_received = tcpi_bytes_received,
    /// Segments sent.
    segs_out = tcpi_segs_out,
    /// Segments received.
    segs_in = tcpi_segs_in,
    /// Bytes written and not sent.
    notsent_bytes = tcpi_notsent_bytes,
    /// The least round-trip time of late.
    min_rtt = tcpi_min_rtt,
    /// Segments with data received.
    data_segs_in = tcpi_data_segs_in,
    /// Segments with data sent.
    data_segs_out = tcpi_data_segs_out,
    /// The latest rate of delivery, in bytes per second.
    delivery_rate = tcpi_delivery_rate,
    /// For how long data was on its way.
    busy_time = tcpi_busy_time,
    /// For how long the peer's window held data back.
    rwnd_limited = tcpi_rwnd_limited,
    /// For how long our send buffer held data back.
    sndbuf_limited = tcpi_sndbuf_limited,
    /// Segments delivered.
    delivered = tcpi_delivered,
    /// Of these, segments marked by ECN.
    delivered_ce = tcpi_delivered_ce,
    /// Bytes sent, retransmissions included.
    bytes_sent = tcpi_bytes_sent,
    /// Bytes sent again.
    bytes_retrans = tcpi_bytes_retrans,
    /// Duplicates that the peer has reported.
    dsack_dups = tcpi_dsack_dups,
    /// Reorderings seen.
    reord_seen = tcpi_reord_seen,
}

/// Everything; `None` on a Unix socket.
#[cfg(target_os = "linux")]
pub(super) fn all(socket: BorrowedFd<'_>) -> Option<TcpInfo> {
    use std::mem::offset_of;

    let (info, app_limited) = read(socket, offset_of!(libc::tcp_info, tcpi_pacing_rate))?;
    Some(TcpInfo::of(&info, app_limited))
}

/// The round-trip time as the receiving side measured it, else as the sending side did.
#[cfg(target_os = "linux")]
pub(super) fn rtt(socket: BorrowedFd<'_>) -> Option<Duration> {
    use std::mem::offset_of;

    let (info, _) = read(socket, offset_of!(libc::tcp_info, tcpi_rcv_rtt) + size_of::<u32>())?;
    let micros = if info.tcpi_rcv_rtt > 0 { info.tcpi_rcv_rtt } else { info.tcpi_rtt };
    (micros > 0).then(|| Duration::from_micros(u64::from(micros)))
}

/// Segments that were sent again.
#[cfg(target_os = "linux")]
pub(super) fn retransmits(socket: BorrowedFd<'_>) -> Option<u64> {
    use std::mem::offset_of;

    let (info, _) =
        read(socket, offset_of!(libc::tcp_info, tcpi_total_retrans) + size_of::<u32>())?;
    Some(u64::from(info.tcpi_total_retrans))
}

/// Segments that arrived out of order; older kernels than 5.4 do not count them.
#[cfg(target_os = "linux")]
pub(super) fn out_of_order(socket: BorrowedFd<'_>) -> Option<u64> {
    use std::mem::offset_of;

    let (info, _) = read(socket, offset_of!(libc::tcp_info, tcpi_rcv_ooopack) + size_of::<u32>())?;
    Some(u64::from(info.tcpi_rcv_ooopack))
}

/// The name of what decides how much may be on its way; `None` on a Unix socket.
#[cfg(target_os = "linux")]
fn congestion_control(socket: BorrowedFd<'_>) -> Option<String> {
    rustix::net::sockopt::tcp_congestion(socket).ok()
}

/// Returns what BBR believes; `None` when another congestion control is at work: the kernel tells of each in a
/// structure of its own.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no crate wraps TCP_CC_INFO")]
fn bbr(socket: BorrowedFd<'_>) -> Option<BbrInfo> {
    if congestion_control(socket)? != "bbr" {
        return None;
    }
    // `struct tcp_bbr_info`: the bandwidth's lower and upper half, min_rtt, pacing_gain, cwnd_gain.
    let mut words = [0_u32; 5];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: `words` is writable for `length` bytes, both live through the call, and the kernel writes no
    // more than `length` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CC_INFO,
            words.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result != 0 || (length as usize) < size_of_val(&words) {
        return None;
    }
    let [low, high, min_rtt, pacing_gain, cwnd_gain] = words.map(u64::from);
    Some(BbrInfo { bandwidth: high << 32 | low, min_rtt, pacing_gain, cwnd_gain })
}

/// Everything that the kernel tells, and whether the application limits delivery; `None` when it does not
/// fill the first `needed` bytes: an older one fills fewer, and a Unix socket has none.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no crate wraps TCP_INFO")]
fn read(socket: BorrowedFd<'_>, needed: usize) -> Option<(libc::tcp_info, bool)> {
    /// Offset of the kernel's bit field for delivery, which the structure has no name for.
    const APP_LIMITED: usize = 7;

    let mut bytes = [0_u8; size_of::<libc::tcp_info>()];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: `bytes` is writable for `length` bytes, both live through the call, and the kernel
    // writes no more than `length` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result != 0 || (length as usize) < needed {
        return None;
    }
    // SAFETY: `bytes` is as long as the structure, every field is a plain number, and all of them were
    // zeroed before the call.
    let info = unsafe { bytes.as_ptr().cast::<libc::tcp_info>().read_unaligned() };
    Some((info, bytes[APP_LIMITED] & 1 != 0))
}

/// Not measured in a form that is read here.
#[cfg(not(target_os = "linux"))]
pub(super) fn all(socket: BorrowedFd<'_>) -> Option<TcpInfo> {
    let _ = socket.as_raw_fd();
    None
}

/// Not measured in a form that is read here.
#[cfg(not(target_os = "linux"))]
pub(super) fn rtt(socket: BorrowedFd<'_>) -> Option<Duration> {
    let _ = socket.as_raw_fd();
    None
}

/// Not counted in a form that is read here.
#[cfg(not(target_os = "linux"))]
pub(super) fn retransmits(socket: BorrowedFd<'_>) -> Option<u64> {
    let _ = socket.as_raw_fd();
    None
}

/// Not counted in a form that is read here.
#[cfg(not(target_os = "linux"))]
pub(super) fn out_of_order(socket: BorrowedFd<'_>) -> Option<u64> {
    let _ = socket.as_raw_fd();
    None
}

/// Not told in a form that is read here.
#[cfg(not(target_os = "linux"))]
fn congestion_control(socket: BorrowedFd<'_>) -> Option<String> {
    let _ = socket.as_raw_fd();
    None
}

/// Not told in a form that is read here.
#[cfg(not(target_os = "linux"))]
fn bbr(socket: BorrowedFd<'_>) -> Option<BbrInfo> {
    let _ = socket.as_raw_fd();
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_connection_tells_what_it_has_carried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        let info = all(server.as_fd()).unwrap();
        assert_eq!((info.state, info.bytes_received, info.bytes_sent), (1, 1000, 0));
        assert!(info.snd_mss > 0 && info.snd_cwnd > 0 && info.rtt > 0);
        assert_eq!(all(client.as_fd()).unwrap().bytes_sent, 1000);
        let path = SocketPath(server.as_fd());
        assert_eq!((path.retransmits(), path.out_of_order()), (Some(0), Some(0)));
    }

    #[test]
    fn bbr_is_told_of_where_it_is_at_work_and_nowhere_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        rustix::net::sockopt::set_tcp_congestion(&client, "reno").unwrap();
        let path = SocketPath(client.as_fd());
        assert_eq!(path.congestion_control().as_deref(), Some("reno"));
        assert_eq!(path.bbr(), None);
        // Where the kernel has no BBR, that is all.
        if rustix::net::sockopt::set_tcp_congestion(&client, "bbr").is_ok() {
            client.write_all(&[7; 100_000]).unwrap();
            server.read_exact(&mut [0; 100_000]).unwrap();
            let told = SocketPath(client.as_fd()).bbr().unwrap();
            assert!(told.bandwidth > 0 && told.pacing_gain >= 128, "{told:?}");
        }
    }

    #[test]
    fn a_unix_socket_has_none() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(all(one.as_fd()), None);
        let path = SocketPath(one.as_fd());
        assert_eq!((path.congestion_control(), path.bbr()), (None, None));
        assert_eq!((path.retransmits(), path.out_of_order()), (None, None));
    }
}

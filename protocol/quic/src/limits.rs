//! The limits of QUIC connections and of the endpoint that they share.

use std::time::Duration;

/// Requests that a client may have open at once. Default: 100. Unit: streams. Reason: as over HTTP/2. Against:
/// rapid-reset.
pub const BIDIRECTIONAL_STREAMS_COUNT: u32 = 100;

/// Unidirectional streams that a peer may have open at once. Default: 8. Unit: streams. Reason: three are needed, and
/// others are refused at once. Against: reserved-stream-flood.
pub const UNIDIRECTIONAL_STREAMS_COUNT: u32 = 8;

/// Amount that a client may send on one stream before it is read, where its connection began while the worker had no room. Default: 262144.
/// Unit: bytes. Reason: 100 Mbit/s over 20 ms; the transport can't change it later. Against: window-ignored, stalled-uploads.
pub const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// The same where the worker had room: its account was at most a tenth full. Default: 4194304. Unit: bytes. Reason: 330 Mbit/s over
/// 100 ms, as much as is sent ahead. Against: window-ignored.
pub const STREAM_WINDOW_BYTES_MAX: u32 = 4 << 20;

/// Amount that a client may send on all streams before it is read, at first. Default: 65536. Unit: bytes. Reason: as much as the
/// open streams may have is charged to the connection, for the transport does not tell how much has come; it doubles whenever as much was
/// read. Against: window-ignored.
pub const FIRST_WINDOW_BYTES: u32 = 64 * 1024;

/// Amount that a client may send on all streams before it is read, once it has sent much, in windows of a stream. Default: 2. Unit:
/// windows. Reason: two uploads at once as fast as one. Against: window-ignored.
pub const CONNECTION_WINDOWS_COUNT: u32 = 2;

/// Amount that a server may send on all streams of a connection that was begun here, before it is read. Default: 33554432. Unit:
/// bytes. Reason: 128 responses that are not read keep no other one back. Against: none.
pub const OUTWARD_WINDOW_BYTES: u32 = 32 << 20;

/// How many streams with slow receivers add their windows to that of the connection, so that the others keep all of it. Default: 8.
/// Unit: streams. Reason: requests on the others would wait until such a receiver reads. Against: window-ignored.
pub const STALLED_STREAMS_COUNT: u32 = 8;

/// The most that streams with slow receivers add to the window of the connection. Default: 16777216. Unit: bytes. Reason: four windows of the largest size, and more of smaller ones. Against:
/// window-ignored.
pub const STALLED_BYTES: u32 = 16 << 20;

/// Amount that may be sent and not acknowledged, or wait to be sent, where the congestion window is small. Default: 65536. Unit:
/// bytes. Reason: many small responses at once. Against: none.
pub const SEND_WINDOW_BYTES: u64 = 64 * 1024;

/// The same where it is large: three times the congestion window, but no more. Default: 4194304. Unit: bytes. Reason: 300 Mbit/s
/// over 100 ms, as much as the kernel keeps of a TCP connection. Against: none.
pub const SEND_WINDOW_BYTES_MAX: u64 = 4 << 20;

/// Datagrams (RFC 9221) that have come and were not taken. Default: 65536. Unit: bytes. Reason: they may be lost anywhere.
/// Against: datagram-flood.
pub const DATAGRAM_BYTES: usize = 64 * 1024;

/// How long a connection may be silent. Default: 90 s. Unit: time. Reason: HTTP/3's own limit comes first, where there is
/// anything to wait for. Against: none.
pub const SILENCE: Duration = Duration::from_secs(90);

/// Handshakes of clients whose addresses are not validated, beyond which a client must prove its address first (Retry,
/// RFC 9000 §8.1.2). Default: 64. Unit: handshakes. Reason: Retry costs every client a round trip. Against:
/// initial-flood.
pub const UNVALIDATED_HANDSHAKES_COUNT: usize = 64;

/// How long a client's connection is silent before it sends a PING. Default: 20 s. Unit: time. Reason: peers and routers give
/// up what is silent for 30 s. Against: none.
pub const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Streams that are kept open ahead for requests to come (client). Default: 100. Unit: streams. Reason: as many as a
/// server of ours allows. Against: none.
pub const RESERVED_STREAMS_COUNT: usize = 100;

/// How long handshakes that another process has begun may go on there, from the first that it is asked about. Default: 3 s. Unit:
/// time. Reason: what a client sends again because nothing came reaches the process that has begun with it. Against: none.
pub const TAKEOVER: Duration = Duration::from_secs(3);

/// Datagrams that are sent in one batch. Default: 44. Unit: datagrams. Reason: the kernel takes 64 KiB in one call; a download costs a
/// sixth less than with ten. Against: none.
pub const BATCH_COUNT: usize = 44;

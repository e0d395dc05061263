//! RFC 9114 §6.2, RFC 9204 §4.2: the unidirectional streams of both ends.

use bolide_semantics::{Priority, Role};

use crate::error::Fault;
use crate::frame::{self, Frames, kind};
use crate::goaway::Goaway;
use crate::limits::{CONTROL_OUTPUT_BYTES, Limits};
use crate::priorities::EarlyPriorities;
use crate::settings::{self, Settings};
use crate::transport::{Context, Quic};

/// The types of unidirectional streams; our own have their places by these numbers, but for push.
pub(crate) mod stream_type {
    pub(crate) const CONTROL: u64 = 0;
    pub(crate) const PUSH: u64 = 1;
    pub(crate) const ENCODER: u64 = 2;
    pub(crate) const DECODER: u64 = 3;
}

/// One of our own streams.
#[derive(Debug, Default)]
struct Own {
    id: Option<u64>,
    /// Bytes that the transport has not taken.
    unsent: Vec<u8>,
}

/// Kind of a stream of the peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerKind {
    /// Its type has not come.
    Untyped,
    Control,
    Encoder,
    Decoder,
}

/// A unidirectional stream of the peer's.
#[derive(Debug)]
pub(crate) struct PeerStream {
    pub(crate) id: u64,
    pub(crate) kind: PeerKind,
    pub(crate) frames: Frames,
    /// The beginning of its type, or of a frame's payload.
    pub(crate) partial: Vec<u8>,
}

/// Everything that concerns the connection and no request.
#[derive(Debug)]
pub(crate) struct Control {
    own: [Own; 3],
    pub(crate) peers: Vec<PeerStream>,
    /// Settings that the peer announced, once it has.
    pub(crate) settings: Option<Settings>,
    pub(crate) goaway: Goaway,
    /// The peer's last MAX_PUSH_ID.
    pub(crate) push_max: Option<u64>,
    pub(crate) early: EarlyPriorities,
}

impl Control {
    /// Our own streams begin with their types; the control stream goes on with SETTINGS.
    pub(crate) fn new(role: Role, limits: &Limits, decoder: &bolide_qpack::Decoder) -> Self {
        let of_type = |kind: u64| Own { id: None, unsent: vec![kind as u8] };
        let mut control = of_type(stream_type::CONTROL);
        settings::write(role, limits, decoder, &mut control.unsent);
        Self {
            own: [control, of_type(stream_type::ENCODER), of_type(stream_type::DECODER)],
            peers: Vec::new(),
            settings: None,
            goaway: Goaway::new(),
            push_max: None,
            early: EarlyPriorities::default(),
        }
    }

    /// Returns what is to be sent on our control stream.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.own[0].unsent
    }

    /// Returns what is to be sent on our QPACK encoder stream.
    pub(crate) fn encoder_output(&mut self) -> &mut Vec<u8> {
        &mut self.own[1].unsent
    }

    /// Returns what is to be sent on our QPACK decoder stream.
    pub(crate) fn decoder_output(&mut self) -> &mut Vec<u8> {
        &mut self.own[2].unsent
    }

    /// Sends what the transport takes.
    #[inline]
    pub(crate) fn flush<Q: Quic>(&mut self, cx: &mut Context<'_, Q>) -> Result<(), Fault> {
        for own in &mut self.own {
            if own.unsent.is_empty() {
                continue;
            }
            let Some(id) = own.id.or_else(|| cx.quic.open_unidirectional()) else { continue };
            if own.id.replace(id).is_none() {
                cx.quic.prioritise(id, Priority { urgency: 0, incremental: false });
            }
            let taken = cx.quic.write(id, &own.unsent);
            own.unsent.drain(..taken);
            if own.unsent.len() > CONTROL_OUTPUT_BYTES {
                let what = "the peer does not read the streams that the connection needs";
                return Err(Fault::abuse("control-stream-stalled", what));
            }
        }
        Ok(())
    }

    /// Returns whether the peer has one stream of this kind.
    pub(crate) fn has(&self, kind: PeerKind) -> bool {
        self.peers.iter().any(|peer| peer.kind == kind)
    }

    /// Says which requests are not served, or which pushes.
    pub(crate) fn write_goaway(&mut self, identifier: u64) {
        frame::write_integer(kind::GOAWAY, identifier, self.output());
    }

    /// The memory that this holds besides itself, in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.own.iter().map(|own| own.unsent.capacity()).sum::<usize>()
            + self.peers.capacity() * size_of::<PeerStream>()
            + self.peers.iter().map(|peer| peer.partial.capacity()).sum::<usize>()
    }
}

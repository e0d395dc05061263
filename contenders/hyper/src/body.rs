//! The bodies that are sent: bytes that are there, many times `x`, many zeros, and what
//! the client sends.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

static FILL: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// Bytes that a bulk transfer sends at once.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// A response's body.
pub(crate) enum Content {
    /// All of it, or nothing any more.
    Whole(Bytes),
    /// This many times `x`.
    Fill(u64),
    /// This many zeros.
    Zeros(u64),
    /// The request's body, as it arrives.
    Echo(Incoming),
}

impl Content {
    /// `size` times `x`.
    pub(crate) fn fill(size: u64) -> Self {
        let whole = usize::try_from(size).ok().and_then(|size| FILL.get(..size));
        whole.map_or(Self::Fill(size), |whole| Self::Whole(Bytes::from_static(whole)))
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let piece = match &mut *self {
            Self::Echo(body) => return Pin::new(body).poll_frame(context),
            Self::Whole(bytes) => std::mem::take(bytes),
            Self::Fill(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(FILL.len());
                *left -= count as u64;
                Bytes::from_static(&FILL[..count])
            }
            Self::Zeros(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(ZEROS.len());
                *left -= count as u64;
                Bytes::from_static(&ZEROS[..count])
            }
        };
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Fill(left) | Self::Zeros(left) => *left == 0,
            Self::Echo(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Fill(left) | Self::Zeros(left) => SizeHint::with_exact(*left),
            Self::Echo(body) => body.size_hint(),
        }
    }
}

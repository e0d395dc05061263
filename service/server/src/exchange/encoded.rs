//! The content of a response on its way through an encoder, on the event loop or outside of it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bolide_eventloop::Offload;
use bolide_semantics::{End, FieldRef, Head, HeadKind};
use bytes::Bytes;
use http::Version;
use smallvec::SmallVec;

use super::{Io, Phase, State};
use crate::coding::{BodyEncoder, Codec};
use crate::response::{BodyStream, Pull};

/// The content of one response that is encoded.
#[derive(Debug)]
pub(crate) struct Encoded {
    codec: &'static dyn Codec,
    offload: &'static Offload,
    /// None before the first piece.
    shared: Option<Arc<SharedEncoder>>,
    /// The memory of the encoder, in bytes.
    encoder_bytes: usize,
    /// Another thread encodes so many bytes.
    job: Option<usize>,
    /// Size that was encoded since the receiver could decode everything, in bytes.
    pending_bytes: usize,
    ending: Ending,
}

/// End of the content.
#[derive(Debug)]
enum Ending {
    /// More of it.
    Open,
    /// Its end, once the encoder has said so, and these trailers.
    Due(Option<Box<Head>>),
    /// Nothing: the encoder has said so. What it has made waits to be sent, and these trailers.
    Made(Option<Box<Head>>),
}

/// State that an event loop and another thread share.
#[derive(Debug)]
struct SharedEncoder {
    encoder: Mutex<Box<dyn BodyEncoder>>,
    is_ready: AtomicBool,
    has_failed: AtomicBool,
    /// It is no longer wanted.
    is_abandoned: AtomicBool,
}

/// Step after a piece. Another thread always does more than wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Wait,
    Flush,
    Finish,
}

impl SharedEncoder {
    /// A panic in an encoder is a body that can't be completed.
    fn encoder(&self) -> MutexGuard<'_, Box<dyn BodyEncoder>> {
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encode(&self, data: &[u8], then: Then) -> io::Result<()> {
        let mut encoder = self.encoder();
        encoder.write(data)?;
        match then {
            Then::Wait => Ok(()),
            Then::Flush => encoder.flush(),
            Then::Finish => encoder.finish(),
        }
    }
}

/// Says that a job is over, whatever became of it.
struct Over {
    shared: Arc<SharedEncoder>,
    waker: crate::Waker,
    is_well: bool,
}

impl Over {
    fn run(mut self, data: &[u8], then: Then) {
        let is_abandoned = self.shared.is_abandoned.load(Ordering::Relaxed);
        self.is_well = is_abandoned || self.shared.encode(data, then).is_ok();
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        if !self.is_well {
            self.shared.has_failed.store(true, Ordering::Relaxed);
        }
        self.shared.is_ready.store(true, Ordering::Release);
        self.waker.encoded();
    }
}

impl Drop for Encoded {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.is_abandoned.store(true, Ordering::Relaxed);
        }
    }
}

impl Encoded {
    pub(super) fn new(codec: &'static dyn Codec, offload: &'static Offload) -> Self {
        Self {
            codec,
            offload,
            shared: None,
            encoder_bytes: 0,
            job: None,
            pending_bytes: 0,
            ending: Ending::Open,
        }
    }

    /// The memory that it keeps, in bytes: the encoder, a piece that another thread encodes, and what it makes of it.
    pub(crate) fn held_bytes(&self) -> usize {
        let trailers = match &self.ending {
            Ending::Due(Some(trailers)) | Ending::Made(Some(trailers)) => {
                trailers.allocated_bytes()
            }
            _ => 0,
        };
        size_of::<Self>() + self.encoder_bytes + 2 * self.job.unwrap_or(0) + trailers
    }

    /// The encoder, which is made when it is used first.
    fn shared(&mut self) -> io::Result<Arc<SharedEncoder>> {
        if let Some(shared) = &self.shared {
            return Ok(Arc::clone(shared));
        }
        let encoder = self.codec.encoder()?;
        self.encoder_bytes = encoder.held_bytes();
        let shared = Arc::new(SharedEncoder {
            encoder: Mutex::new(encoder),
            is_ready: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
        });
        Ok(Arc::clone(self.shared.insert(shared)))
    }
}

impl State {
    /// Returns whether the handler has given everything.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_done()
            || self.encoded.as_ref().is_some_and(|encoded| !matches!(encoded.ending, Ending::Open))
    }
}

impl Io<'_> {
    /// Returns whether an encoder takes a piece now, where there is one.
    #[inline]
    pub(super) fn takes_more(&self) -> bool {
        self.state
            .encoded
            .as_ref()
            .is_none_or(|encoded| encoded.job.is_none() && matches!(encoded.ending, Ending::Open))
    }

    /// [`Io::send`] of a piece that is encoded.
    pub(super) fn send_encoded(&mut self, data: Bytes, end: End) -> Result<(), Bytes> {
        if self.state.has_ended() {
            return Ok(());
        }
        if !self.takes_more() {
            return Err(data);
        }
        self.encoding(|io| io.encode(data, end));
        Ok(())
    }

    /// Ends the content that is encoded with these trailers.
    pub(super) fn end_encoded(&mut self, fields: &[FieldRef<'_>]) {
        if self.state.has_ended() {
            return;
        }
        let mut trailers = Box::<Head>::default();
        trailers.clear(HeadKind::Trailers, Version::HTTP_11);
        fields.iter().for_each(|field| trailers.append(field.name, field.value));
        if let Some(encoded) = &mut self.state.encoded {
            encoded.ending = Ending::Due(Some(trailers));
        }
        self.encoding(Self::finish_encoded);
    }

    /// Encodes a piece.
    pub(super) fn encode(&mut self, data: Bytes, end: End) {
        let Some(encoded) = &mut self.state.encoded else { return };
        let mut then = Then::Wait;
        if end == End::Yes {
            encoded.ending = Ending::Made(None);
            then = Then::Finish;
            self.state.stream = None;
        } else if data.is_empty() {
            return;
        }
        self.run_encoder(data, then);
    }

    /// Has the encoder end its content when that is due, and nothing is in its way.
    pub(super) fn finish_encoded(&mut self) {
        let is_sendable = self.state.phase == Phase::Sendable;
        let Some(encoded) = self.state.encoded.as_mut().filter(|_| is_sendable) else { return };
        if encoded.job.is_none()
            && let Ending::Due(trailers) = &mut encoded.ending
        {
            encoded.ending = Ending::Made(trailers.take());
            self.run_encoder(Bytes::new(), Then::Finish);
        }
    }

    /// The source has nothing more for now: the client gets all there is.
    pub(crate) fn pause(&mut self) {
        let is_sendable = self.is_sendable();
        if is_sendable
            && self.state.encoded.as_ref().is_some_and(|encoded| encoded.pending_bytes > 0)
        {
            self.encoding(|io| io.run_encoder(Bytes::new(), Then::Flush));
        }
    }

    /// Encodes on the loop what is small, and has another thread encode what is not.
    fn run_encoder(&mut self, data: Bytes, then: Then) {
        let waker = self.address.waker();
        let Some(encoded) = &mut self.state.encoded else { return };
        let bytes = encoded.pending_bytes + data.len();
        let is_small = bytes <= encoded.codec.inline_bytes();
        let then = if then == Then::Wait && !is_small { Then::Flush } else { then };
        encoded.pending_bytes = if then == Then::Wait { bytes } else { 0 };
        if is_small && then == Then::Finish && encoded.shared.is_none() {
            return match encoded.codec.encode(&data) {
                Ok(whole) => self.pass_encoded(whole.into()),
                Err(_) => self.abort(),
            };
        }
        let Ok(shared) = encoded.shared() else { return self.abort() };
        if !is_small {
            let over = Over { shared: Arc::clone(&shared), waker, is_well: false };
            let data = bolide_buffers::detach(data);
            shared.is_ready.store(false, Ordering::Relaxed);
            encoded.job = Some(data.len());
            // Each response has one job at a time. A pool without threads drops it, which says that it has failed.
            let _ = encoded.offload.resume(move || over.run(&data, then));
            return;
        }
        if shared.encode(&data, then).is_err() {
            return self.abort();
        }
        let made = shared.encoder().take();
        self.pass_encoded(made.into());
    }

    /// Sends what another thread has encoded. Whether the next piece may be given.
    pub(crate) fn collect_encoded(&mut self) -> bool {
        let Some(encoded) = &mut self.state.encoded else { return false };
        let Some(shared) = encoded.shared.as_ref().filter(|_| encoded.job.is_some()) else {
            return false;
        };
        if !shared.is_ready.load(Ordering::Acquire) {
            return false;
        }
        encoded.job = None;
        if shared.has_failed.load(Ordering::Relaxed) {
            self.abort();
            return false;
        }
        let made = shared.encoder().take();
        self.encoding(|io| {
            io.pass_encoded(made.into());
            io.finish_encoded();
        });
        self.pull();
        self.is_sendable()
    }

    /// Sends what the encoder has made, and the end behind it.
    fn pass_encoded(&mut self, made: Bytes) {
        let Some(encoded) = &mut self.state.encoded else { return };
        let (end, trailers) = match &mut encoded.ending {
            Ending::Made(None) => (End::Yes, None),
            Ending::Made(trailers) => (End::No, trailers.take()),
            Ending::Open | Ending::Due(_) => (End::No, None),
        };
        if !made.is_empty() || end == End::Yes {
            self.state.record.sent_bytes += made.len() as u64;
            let sent = self.connection.send_data(&mut self.cx, self.id, made, end);
            self.settle(sent, end);
        }
        if let Some(trailers) = trailers.filter(|_| self.state.phase.is_answering()) {
            self.state.encoded = None;
            let fields: SmallVec<[FieldRef<'_>; 8]> =
                trailers.fields().map(|field| FieldRef::named(field.name, field.value)).collect();
            self.finish_with_fields(&fields);
        }
    }
}

/// A body in memory, in pieces.
#[derive(Debug)]
pub(super) struct WholeBody(pub(super) Bytes);

impl BodyStream for WholeBody {
    fn pull(&mut self, bytes_max: usize) -> Pull {
        if self.0.len() <= bytes_max {
            return Pull::Last(std::mem::take(&mut self.0));
        }
        Pull::Data(self.0.split_to(bytes_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    #[derive(Debug)]
    struct Heavy;

    impl Codec for Heavy {
        fn name(&self) -> &'static str {
            "heavy"
        }

        fn encode(&self, body: &[u8]) -> io::Result<Vec<u8>> {
            Ok(body.to_vec())
        }

        fn encoder(&self) -> io::Result<Box<dyn BodyEncoder>> {
            Ok(Box::new(Self))
        }
    }

    impl BodyEncoder for Heavy {
        fn write(&mut self, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn take(&mut self) -> Vec<u8> {
            Vec::new()
        }

        fn held_bytes(&self) -> usize {
            100_000
        }
    }

    #[test]
    fn what_is_being_encoded_is_charged() {
        static POOL: LazyLock<Offload> = LazyLock::new(Offload::default);
        let mut encoded = Encoded::new(&Heavy, &POOL);
        assert!(encoded.held_bytes() < 1000);
        encoded.shared().unwrap();
        assert!(encoded.held_bytes() > 100_000);
        encoded.job = Some(50_000);
        assert!(encoded.held_bytes() > 200_000);
    }
}

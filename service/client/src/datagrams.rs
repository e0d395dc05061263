//! RFC 9114 §3: connections over QUIC: what comes for a session and what it sends are datagrams of sockets that several share.

use std::ops::{Deref, DerefMut};
use std::time::{Instant, SystemTime};

use bolide_buffers::{Datagram, DatagramSink, Flush};
use bolide_connection::{
    Arrival, IdentityError, Membership, QuicEndpoint, QuicError, QuicStats, WallClock,
};
use bolide_eventloop::{After, DatagramFlush, Outbound, Routed, Token, random_seed};

use crate::{Dial, Session, Speaks, Workbench};

/// A [`Workbench`] with the connections over QUIC of another owner, until it is dropped.
#[derive(Debug)]
pub struct WorkerWorkbench<'a> {
    bench: &'a mut Workbench,
    quic: &'a mut Option<Box<QuicEndpoint<Token>>>,
}

impl Deref for WorkerWorkbench<'_> {
    type Target = Workbench;

    fn deref(&self) -> &Workbench {
        self.bench
    }
}

impl DerefMut for WorkerWorkbench<'_> {
    fn deref_mut(&mut self) -> &mut Workbench {
        self.bench
    }
}

impl Drop for WorkerWorkbench<'_> {
    fn drop(&mut self) {
        std::mem::swap(&mut self.bench.quic, self.quic);
    }
}

impl Workbench {
    /// For a worker of which several benches make connections to the same sockets: those over QUIC belong to the worker.
    pub fn with_quic<'a>(
        &'a mut self,
        quic: &'a mut Option<Box<QuicEndpoint<Token>>>,
    ) -> WorkerWorkbench<'a> {
        std::mem::swap(&mut self.quic, quic);
        WorkerWorkbench { bench: self, quic }
    }

    /// Finds out which session a datagram is for.
    pub fn datagram(
        &mut self,
        datagram: Datagram,
        now: Instant,
        sink: &mut dyn DatagramSink,
    ) -> Routed {
        let Some(endpoint) = &mut self.quic else { return Routed::Nothing };
        // There is one worker of this endpoint, and no other process.
        match endpoint.receive(datagram, true, now, sink) {
            Arrival::For(token) => Routed::For(token),
            // Nothing is accepted.
            Arrival::Nothing
            | Arrival::New(_)
            | Arrival::Elsewhere(..)
            | Arrival::Earlier(..)
            | Arrival::Unclaimed(_) => Routed::Nothing,
        }
    }

    /// Sends what a session has to send.
    pub fn flush_datagrams(
        &mut self,
        session: &mut Session,
        sink: &mut dyn DatagramSink,
    ) -> DatagramFlush {
        let Some(endpoint) = &mut self.quic else {
            return DatagramFlush { flush: Flush::Drained, deadline: None };
        };
        let flushed = session.connection.flush_datagrams(endpoint, sink);
        DatagramFlush { flush: flushed.flush, deadline: flushed.deadline }
    }

    /// A session is about to be [closed](Session::close): nothing more reaches it.
    pub fn forget(&mut self, session: &mut Session, now: Instant) {
        if let Some(endpoint) = &mut self.quic {
            session.connection.forget_datagrams(endpoint, now);
        }
    }
}

impl Session {
    /// A connection that has been asked for: over QUIC if it is one of datagrams.
    ///
    /// # Errors
    ///
    /// When the server's name is none, its address can't be a server's, or the settings are not for TLS.
    pub fn begin(
        dial: &Dial,
        outbound: &Outbound,
        bench: &mut Workbench,
        now: Instant,
    ) -> Result<Self, IdentityError> {
        let Some(to) = outbound.datagrams_to else { return Self::new(dial, bench, now) };
        let Speaks::Tls { settings, server_name, .. } = &dial.speaks else {
            return Err(IdentityError::Unusable("HTTP/3 needs TLS".to_owned()));
        };
        let unusable = |error: QuicError| IdentityError::Unusable(error.to_string());
        let Workbench { limits, quic, .. } = bench;
        let endpoint = match quic.take() {
            Some(endpoint) => endpoint,
            None => {
                let clock = WallClock(SystemTime::now);
                QuicEndpoint::new(None, clock, random_seed(), (0, Membership::default()))
                    .map(Box::new)
                    .map_err(unusable)?
            }
        };
        let connection = quic
            .insert(endpoint)
            .connect((settings, to, server_name), outbound.token, limits, now)
            .map_err(unusable)?;
        Ok(Self::with(connection, None, now + dial.timeout))
    }

    /// Ends the connection at once, whatever is open: the caller knows, and over QUIC the server is told.
    pub fn end(&mut self) -> After {
        self.over = true;
        self.connection.end_datagrams();
        After::SENT
    }

    /// Returns what QUIC has counted, over HTTP/3.
    #[must_use]
    pub fn quic_stats(&self) -> Option<QuicStats> {
        self.connection.quic_stats()
    }
}

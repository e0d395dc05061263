//! RFC 8446 §5, RFC 7301: one connection's records, both roles.

use std::cell::OnceCell;
use std::io::{self, BufRead, IoSlice, Write};
use std::sync::Arc;

use bolide_buffers::{Flush, ReceiveBuffer, SendQueue};
use rustls::{Connection, HandshakeKind, ProtocolVersion};

use crate::failure::{kind_of, text_of};
use crate::limits::{PART_BYTES, PASS_OVERHEAD_BYTES};
use crate::rules::name;
use crate::{Alpn, ClientCertificate, HandshakeFacts, Opened, TlsFailure};

/// How much ciphertext may wait inside rustls before more plaintext is sealed, in bytes. A
/// vectored write of a megabyte costs a third of one of 16 KiB, per byte.
const SEALED_BYTES_MAX: usize = 1024 * 1024;

/// The most that one record holds (RFC 8446 §5.1), in bytes.
const RECORD_BYTES_MAX: usize = 16 * 1024;

/// A copy of that many bytes is too short for the processor's string copy, which takes 15 times as long where source
/// and destination begin a few bytes apart modulo [`PAGE_BYTES`] (decision 0031).
const SHORT_COPY_BYTES: usize = PAGE_BYTES - 64;

/// The unit in which string copies compare addresses, in bytes.
const PAGE_BYTES: usize = 4096;

/// Seals plaintext, and sees to it that no long piece is copied along its pages: a record's content lies a few bytes
/// behind the beginning of a page, so a piece must not be cut where one of its own pages begins.
struct Records<'a>(rustls::Writer<'a>);

impl Write for Records<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some((long, at)) = cut_at_pages(slices) else {
            return self.0.write_vectored(slices);
        };
        let mut first = slices[..=long].to_vec();
        first[long] = IoSlice::new(&slices[long][..at]);
        let written = self.0.write_vectored(&first)?;
        if written < SHORT_COPY_BYTES {
            return Ok(written);
        }
        let mut rest = slices[long..].to_vec();
        rest[0].advance(at);
        Ok(written + self.0.write_vectored(&rest)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The first slice that fills a record, if records would be cut at the beginnings of its pages or close to them, and
/// how much of it makes a first record of [`SHORT_COPY_BYTES`].
fn cut_at_pages(slices: &[IoSlice<'_>]) -> Option<(usize, usize)> {
    let mut before = 0;
    for (long, slice) in slices.iter().enumerate() {
        let at = SHORT_COPY_BYTES.checked_sub(before)?;
        if slice.len() >= RECORD_BYTES_MAX {
            let page = slice.as_ptr().addr().wrapping_sub(before);
            return (page.wrapping_add(16) % PAGE_BYTES < 80).then_some((long, at));
        }
        before += slice.len();
    }
    None
}

/// The TLS layer of one connection.
#[derive(Debug)]
pub struct TlsLayer {
    connection: Box<Connection>,
    /// Plaintext that no parser could use yet.
    rest: Box<[u8]>,
    /// Size of the parts of this turn beyond their content, in bytes.
    overhead_bytes: usize,
    /// Records that wait to be written, by the plaintext in them, in bytes.
    sealed_bytes: usize,
    /// Once everything is sealed, the peer is told that nothing more comes.
    closing: bool,
    /// Facts of the client's certificate, once they were asked for.
    client: OnceCell<Option<Arc<ClientCertificate>>>,
    /// Results of the handshake, once a share in it was asked for.
    facts: OnceCell<Arc<HandshakeFacts>>,
}

impl TlsLayer {
    pub(crate) fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(SEALED_BYTES_MAX));
        Self {
            connection: Box::new(connection),
            rest: Box::default(),
            overhead_bytes: 0,
            sealed_bytes: 0,
            closing: false,
            client: OnceCell::new(),
            facts: OnceCell::new(),
        }
    }

    /// Returns whether the handshake is still under way.
    #[inline]
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Returns what the handshake agreed on, once it is complete.
    #[must_use]
    pub fn facts(&self) -> Option<HandshakeFacts> {
        if self.connection.is_handshaking() {
            return None;
        }
        let version = match self.connection.protocol_version()? {
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "TLSv1.2",
        };
        let suite = self.connection.negotiated_cipher_suite()?.suite();
        let server_name = self.server_name().map(str::to_owned);
        Some(HandshakeFacts {
            version,
            // rustls sets those of TLS 1.3 apart from the others.
            cipher: name(suite),
            group: self
                .connection
                .negotiated_key_exchange_group()
                .and_then(|group| group.name().as_str()),
            alpn: self.alpn(),
            server_name,
            resumed: self.connection.handshake_kind() == Some(HandshakeKind::Resumed),
            client: self.client.get_or_init(|| self.client_certificate()).clone(),
        })
    }

    /// The same, made once: every later call shares it.
    #[must_use]
    pub fn shared_facts(&self) -> Option<Arc<HandshakeFacts>> {
        if self.facts.get().is_none() {
            // None was there, so this one stays.
            let _ = self.facts.set(Arc::new(self.facts()?));
        }
        self.facts.get().cloned()
    }

    fn server_name(&self) -> Option<&str> {
        match &*self.connection {
            Connection::Server(server) => server.server_name(),
            Connection::Client(_) => None,
        }
    }

    fn client_certificate(&self) -> Option<Arc<ClientCertificate>> {
        let Connection::Server(server) = &*self.connection else { return None };
        let certificate = server.peer_certificates()?.first()?;
        Some(Arc::new(ClientCertificate::new(certificate)))
    }

    /// The application protocol, once it is known.
    #[must_use]
    pub fn alpn(&self) -> Option<Alpn> {
        match self.connection.alpn_protocol()? {
            b"h2" => Some(Alpn::H2),
            b"http/1.1" => Some(Alpn::Http11),
            _ => None,
        }
    }

    /// Opens all of `input` into `plain`, after the plaintext that an earlier turn left.
    ///
    /// Returns whether the peer has ended its side with `close_notify`.
    ///
    /// # Errors
    ///
    /// [`TlsFailure`] when the handshake or a record is wrong; an alert waits to be flushed.
    pub fn receive(
        &mut self,
        input: &mut ReceiveBuffer,
        plain: &mut ReceiveBuffer,
    ) -> Result<bool, TlsFailure> {
        Ok(self.open(input, plain, usize::MAX)? == Opened::Ended)
    }

    /// Opens as much of `input` into `plain` as is opened at once, behind what an earlier turn or part left: `input` keeps the rest
    /// if that is a [part](Opened::Part), or [all that one turn may](Opened::Cut).
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    pub fn receive_some(
        &mut self,
        input: &mut ReceiveBuffer,
        plain: &mut ReceiveBuffer,
    ) -> Result<Opened, TlsFailure> {
        self.open(input, plain, PART_BYTES)
    }

    /// Opens records until that much is open.
    fn open(
        &mut self,
        input: &mut ReceiveBuffer,
        plain: &mut ReceiveBuffer,
        part_bytes: usize,
    ) -> Result<Opened, TlsFailure> {
        if plain.is_empty() {
            plain.start(&std::mem::take(&mut self.rest));
        }
        let before_bytes = plain.len();
        // Records are longer than what is in them, and one may have come in part before.
        plain.expect(input.len().min(part_bytes) + RECORD_BYTES_MAX);
        let (mut ended, mut consumed_bytes) = (false, 0);
        while !input.is_empty() {
            let mut records = input.unread();
            let offered = records.len();
            let taken = self.connection.read_tls(&mut records);
            let consumed = offered - records.len();
            input.consume(consumed);
            // The only error is a full buffer of plaintext, which is drained below.
            if taken.is_ok() && consumed == 0 {
                break;
            }
            let state = self.connection.process_new_packets().map_err(|error| TlsFailure {
                what: text_of(&error, self.server_name()),
                kind: kind_of(&error),
                in_handshake: self.connection.is_handshaking(),
            })?;
            ended |= state.peer_has_closed();
            if state.plaintext_bytes_to_read() > 0 {
                self.drain(plain);
            }
            consumed_bytes += consumed;
            let content_bytes = plain.len() - before_bytes;
            if ended || input.is_empty() || part_bytes == usize::MAX {
                continue;
            }
            let overhead_bytes = self.overhead_bytes + consumed_bytes.saturating_sub(content_bytes);
            if overhead_bytes >= PASS_OVERHEAD_BYTES {
                return Ok(Opened::Cut);
            }
            if content_bytes >= part_bytes {
                self.overhead_bytes = overhead_bytes;
                return Ok(Opened::Part);
            }
        }
        Ok(if ended { Opened::Ended } else { Opened::All })
    }

    /// Moves what has been opened into `plain`.
    fn drain(&mut self, plain: &mut ReceiveBuffer) {
        let mut reader = self.connection.reader();
        while let Ok(chunk) = reader.fill_buf() {
            if chunk.is_empty() {
                return;
            }
            chunk.chunks(SHORT_COPY_BYTES).for_each(|part| plain.extend(part));
            let length = chunk.len();
            reader.consume(length);
        }
    }

    /// Keeps the plaintext that no parser could use yet: the turn is over.
    pub fn keep_rest(&mut self, plain: &mut ReceiveBuffer) {
        self.overhead_bytes = 0;
        if !plain.is_empty() {
            self.rest = plain.take_rest();
        }
    }

    /// Tells the peer that nothing more will be sent (`close_notify`), after what is queued.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Seals `queue` and writes the records. Frames of a whole turn share records: one
    /// of 100 bytes costs as much as 2 KiB more of a full one.
    ///
    /// # Errors
    ///
    /// Whatever `sink` reports, except `WouldBlock`.
    pub fn flush(
        &mut self,
        queue: &mut SendQueue,
        sink: &mut (impl Write + ?Sized),
    ) -> io::Result<Flush> {
        let mut sink = sink;
        loop {
            while self.connection.wants_write() {
                match self.connection.write_tls(&mut sink) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => self.sealed_bytes = self.sealed_bytes.saturating_sub(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return Ok(Flush::Blocked);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.sealed_bytes = 0;
            // Plaintext is not handed over before it can be sealed: it would be copied and kept.
            if queue.is_empty() && self.closing {
                self.closing = false;
                self.connection.send_close_notify();
                continue;
            }
            if queue.is_empty() || self.connection.is_handshaking() {
                return Ok(Flush::Drained);
            }
            let before = queue.len();
            queue.flush(&mut Records(self.connection.writer()))?;
            self.sealed_bytes += before - queue.len();
        }
    }

    /// Returns what waits to be parsed or to be written, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.rest.len() + self.sealed_bytes
    }

    /// Returns whether records or alerts wait to be written.
    #[inline]
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }
}

#[cfg(test)]
mod tests;

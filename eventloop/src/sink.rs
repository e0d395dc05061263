//! A socket as what a service writes to.

use std::io::{self, IoSlice, Write};

use crate::kernel::Kernel;
use crate::meter::{Meter, Stage};

/// The socket as a sink that counts.
pub(crate) struct Sink<'a, K: Kernel> {
    pub(crate) kernel: &'a mut K,
    pub(crate) socket: &'a mut K::Socket,
    pub(crate) meter: &'a Meter,
    pub(crate) sent: usize,
}

impl<K: Kernel> Sink<'_, K> {
    /// One call of the kernel.
    #[inline]
    fn send(
        &mut self,
        call: impl FnOnce(&mut K, &mut K::Socket) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let before = self.meter.enter(Stage::SEND);
        let sent = call(self.kernel, self.socket);
        self.meter.enter(before);
        let sent = sent?;
        self.sent += sent;
        Ok(sent)
    }
}

impl<K: Kernel> Write for Sink<'_, K> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(|kernel, socket| kernel.send(socket, bytes))
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(|kernel, socket| kernel.send_vectored(socket, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

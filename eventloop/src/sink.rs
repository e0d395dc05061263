//! A socket as what a service writes to.

use std::io::{self, IoSlice, Write};

use crate::kernel::Kernel;
use crate::meter::{Meter, Stage};

/// The socket as a sink that counts. `MEASURED`: the turn's stages are told apart.
pub(crate) struct Sink<'a, K: Kernel, const MEASURED: bool> {
    pub(crate) kernel: &'a mut K,
    pub(crate) socket: &'a mut K::Socket,
    pub(crate) meter: &'a Meter,
    pub(crate) sent: usize,
}

impl<K: Kernel, const MEASURED: bool> Sink<'_, K, MEASURED> {
    /// One call of the kernel.
    #[inline]
    fn send(
        &mut self,
        call: impl FnOnce(&mut K, &mut K::Socket) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let before = if MEASURED { self.meter.enter(Stage::SEND) } else { Stage::LOOP };
        let sent = call(self.kernel, self.socket);
        if MEASURED {
            self.meter.enter(before);
        }
        let sent = sent?;
        self.sent += sent;
        Ok(sent)
    }
}

impl<K: Kernel, const MEASURED: bool> Write for Sink<'_, K, MEASURED> {
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

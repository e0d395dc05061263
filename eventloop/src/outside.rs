//! Output that is not in memory: ranges of files, from the kernel's memory to the socket.

use std::io;
use std::os::fd::AsFd;

use bolide_buffers::Flush;

use crate::file::{Changed, SharedFile};
use crate::kernel::Kernel;
use crate::meter::Stage;
use crate::service::Service;
use crate::socket::Slot;
use crate::worker_context::WorkerContext;

impl<K: Kernel, S: Service> Slot<K, S> {
    /// A piece of a file is among what is to be sent: until nothing follows at once, segments leave full. Each call
    /// that sends from a file would end with a short one.
    #[cold]
    pub(crate) fn hold_back(&mut self, cx: &mut WorkerContext<K, S>) {
        if !self.state.held_back {
            self.state.held_back = true;
            if let Some(socket) = &mut self.socket {
                cx.kernel.hold_back(socket, true);
            }
        }
    }

    /// A flush has come to a piece of a file: sends it. Anything but `Flush::Blocked`: the flush may go on.
    #[cold]
    pub(crate) fn flush_outside(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        sent: &mut usize,
    ) -> io::Result<Flush> {
        let done = self.send_outside(cx, sent);
        if done.as_ref().is_err_and(Changed::is)
            && let Some(socket) = &mut self.socket
        {
            // What the kernel holds of it must not look like a part of a response.
            cx.kernel.reset_on_close(socket);
        }
        done
    }

    /// Sends from the file that comes next: all of the piece, unless the socket takes no more. A call may come short
    /// for other reasons than that, which would not be reported.
    fn send_outside(
        &mut self,
        cx: &mut WorkerContext<K, S>,
        sent: &mut usize,
    ) -> io::Result<Flush> {
        let Some(socket) = &mut self.socket else { return Ok(Flush::Drained) };
        while let Some(outside) = cx.outputs.queue.outside() {
            let Some(file) = outside.source.downcast_ref::<SharedFile>() else {
                return Err(io::Error::other("the loop sends from files alone"));
            };
            // The version that is there when the bytes are taken is the one before and after.
            file.check()?;
            cx.meter.enter(Stage::SEND);
            let (offset, bytes) = (outside.offset, outside.bytes);
            let taken = cx.kernel.send_file(socket, file.as_fd(), offset, bytes);
            cx.meter.enter(Stage::LOOP);
            match taken {
                Ok(0) => return Err(Changed.into()),
                Ok(count) => {
                    *sent += count;
                    file.check()?;
                    cx.outputs.queue.advance(count);
                    if count == bytes {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Flush::Blocked);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Flush::Drained)
    }
}

//! Pieces of bodies that go from files to sockets.

use bolide_semantics::End;

use super::Io;
use crate::file_piece::FilePiece;
use bolide_observability::HANDLER;

/// The smallest piece of a file that a body is asked for, in bytes: what is sent so takes no memory, and costs some
/// system calls more than bytes do.
const FILE_BYTES_MIN: usize = 64 * 1024;

/// The largest, in bytes: what a connection may send before the others have their turn.
const FILE_BYTES_MAX: usize = 1024 * 1024;

impl Io<'_> {
    /// Sends the next piece of the body stream from a file, if it comes from one and the connection takes that: a
    /// cleartext one of HTTP/1.1, on a system that can. Else nothing has happened, and the piece is to be pulled.
    pub(crate) fn send_file_piece(&mut self) -> bool {
        if self.state.stream.is_none()
            || !self.connection.takes_outside()
            || !self.path.takes_files()
        {
            return false;
        }
        let bytes_max = self.cx.output_room().clamp(FILE_BYTES_MIN, FILE_BYTES_MAX);
        let bytes_max = bytes_max.min(self.allowance());
        let Some(stream) = &mut self.state.stream else { return false };
        let before = self.meter.enter(HANDLER);
        let piece = stream.pull_file(bytes_max);
        self.meter.enter(before);
        let Some(FilePiece { file, offset, bytes, is_last }) = piece else { return false };
        if bytes == 0 && !is_last {
            return false;
        }
        let end = if is_last { End::Yes } else { End::No };
        self.state.record.sent_bytes += bytes as u64;
        let outside = file.piece(offset, bytes);
        let sent = self.connection.send_outside(&mut self.cx, self.id, outside, end);
        self.settle(sent, end);
        true
    }
}

//! Pieces of bodies that are ranges of open files.

use std::sync::Arc;

use bolide_eventloop::SharedFile;
use bolide_semantics::End;

use crate::exchange::Io;
use crate::profile::HANDLER;

/// The smallest piece of a file that a body is asked for, in bytes: what is sent so takes no memory, and costs some
/// system calls more than bytes do.
const FILE_BYTES_MIN: usize = 64 * 1024;

/// The largest, in bytes: what a connection may send before the others have their turn.
const FILE_BYTES_MAX: usize = 1024 * 1024;

/// A range of an open file as a piece of a body: it goes from the kernel's memory to the socket.
#[derive(Debug, Clone)]
pub struct FilePiece {
    /// The file, and the version of it that was promised. Once it has become another, the connection is reset.
    pub file: Arc<SharedFile>,
    /// Where the piece begins in it, in bytes.
    pub offset: u64,
    /// Its length in bytes, all of which the file must have. Not 0, unless it is the last piece.
    pub bytes: usize,
    /// Whether the body ends with it.
    pub is_last: bool,
}

impl Io<'_> {
    /// Sends the next piece of the body stream from a file, if it comes from one and the connection takes that: a
    /// cleartext one of HTTP/1.1, on a system that can. Else nothing has happened, and the piece is to be pulled.
    pub(crate) fn send_file_piece(&mut self) -> bool {
        let Some(stream) = &mut self.state.stream else { return false };
        if !self.connection.takes_outside() || !self.path.takes_files() {
            return false;
        }
        let bytes_max = self.cx.output_room().clamp(FILE_BYTES_MIN, FILE_BYTES_MAX);
        let before = self.meter.enter(HANDLER);
        let piece = stream.pull_file(bytes_max);
        self.meter.enter(before);
        let Some(FilePiece { file, offset, bytes, is_last }) = piece else { return false };
        if bytes == 0 && !is_last {
            return false;
        }
        let end = if is_last { End::Yes } else { End::No };
        self.state.sent_bytes += bytes as u64;
        let outside = file.piece(offset, bytes);
        let sent = self.connection.send_outside(&mut self.cx, self.id, outside, end);
        self.settle(sent, end);
        true
    }
}

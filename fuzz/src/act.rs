//! Actions of one end of a connection.

use arbitrary::Arbitrary;

use crate::frames::Frame;
use crate::messages::Message;

/// How many actions of a script are carried out.
pub(crate) const ACTS_MAX: usize = 64;

/// All that one end of a connection does, in order.
#[derive(Debug, Clone, Arbitrary)]
pub struct Script {
    /// It speaks HTTP/2: begins with the preface, or with SETTINGS.
    pub is_h2: bool,
    /// How long its pieces are on their way, in bytes.
    pub piece: u16,
    /// Its actions.
    pub acts: Vec<Act>,
}

/// One action.
#[derive(Debug, Clone, Arbitrary)]
pub enum Act {
    /// Part of HTTP/1.1, or of a WebSocket on it.
    Message(Message),
    /// A frame of HTTP/2.
    Frame(Frame),
    /// The next action so many times.
    Repeat(u8),
    /// Stops or starts reading.
    Read(bool),
    /// Waits, in milliseconds.
    Pause(u16),
    /// Any bytes.
    Raw([u8; 8]),
    /// Ends its side.
    Finish,
    /// Resets the connection.
    Reset,
}

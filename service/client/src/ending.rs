//! RFC 9110 §9.2.2, RFC 9112 §9.5: how a connection ended, who is to blame, and what may be repeated.

use std::io;

use bolide_eventloop::CloseCause;
use bolide_semantics::{Blame, CloseReason};

/// How far a connection had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There was no connection yet.
    Connecting,
    /// The TLS handshake was under way, or agreed on something else than was required.
    Handshaking,
    /// Requests could be sent.
    Ready,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How far it had come.
    pub step: Step,
    /// Why it ended, and who is to blame.
    pub reason: CloseReason,
    /// Description of TLS's error.
    pub tls: Option<String>,
    /// The socket's error, if the socket failed.
    pub socket: Option<io::ErrorKind>,
}

impl Ending {
    /// The socket, or the worker, ended the connection.
    pub(crate) fn by_loop(step: Step, cause: CloseCause) -> Self {
        let socket = match cause {
            CloseCause::Failed(kind) => Some(kind),
            _ => None,
        };
        let reason = match cause {
            CloseCause::Failed(_) => CloseReason::peer("socket", "the socket failed"),
            CloseCause::Stalled => {
                CloseReason::circumstance("write-stall", "the peer took nothing any more")
            }
            CloseCause::Memory => {
                CloseReason::circumstance("held-bytes-max", "its bytes took too much memory")
            }
            CloseCause::Broken => {
                CloseReason::circumstance("file-changed", "a file changed while it was sent")
            }
            CloseCause::Panicked => CloseReason {
                blame: Some(Blame::Caller),
                name: "panic",
                what: "the session panicked",
                reset: false,
            },
            CloseCause::Finished | CloseCause::Shed | CloseCause::Drained => {
                CloseReason::orderly("finished", "the connection was not wanted any more")
            }
        };
        Self { step, reason, tls: None, socket }
    }

    /// It took too long to get ready.
    pub(crate) fn late(step: Step) -> Self {
        let reason = CloseReason::circumstance("connect-timeout", "the connection took too long");
        Self { step, reason, tls: None, socket: Some(io::ErrorKind::TimedOut) }
    }

    /// Returns whether no request can have been sent: to repeat is safe.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.step != Step::Ready
    }

    /// Returns whether there was no server: the connection was refused or the socket's file is gone.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.step == Step::Connecting
            && matches!(
                self.socket,
                Some(io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_ready_connection_may_have_touched_the_server() {
        let cause = CloseCause::Failed(io::ErrorKind::ConnectionRefused);
        let refused = Ending::by_loop(Step::Connecting, cause);
        assert!(refused.is_untouched() && refused.is_refused());
        let reset =
            Ending::by_loop(Step::Ready, CloseCause::Failed(io::ErrorKind::ConnectionReset));
        assert!(!reset.is_untouched() && !reset.is_refused());
        assert_eq!(reset.reason.blame, Some(Blame::Peer));
        assert!(Ending::late(Step::Handshaking).is_untouched());
    }
}

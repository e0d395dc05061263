//! Informational responses: what a service tells its client before the response (RFC 9110 §15.2).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use bolide_server::{End, HeaderMap, HeaderValue, Io, StatusCode};
use http::header::LINK;

use crate::wake::Bell;

/// Sends informational responses, such as `103 Early Hints`, ahead of the response.
///
/// It is in the extensions of each request of a server that was told to
/// [offer it](crate::Serve::informational), and works from any thread until the service has answered.
/// What is sent leaves when the future returns to its worker: at its next `await` that waits.
///
/// ```
/// use bolide_tower_adapter::Informational;
/// use http::HeaderValue;
///
/// fn hint(extensions: &http::Extensions) {
///     if let Some(informational) = extensions.get::<Informational>() {
///         let style = HeaderValue::from_static("</style.css>; rel=preload; as=style");
///         // A client that has its response, or has gone, needs no hint.
///         let _ = informational.early_hints([style]);
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Informational(Arc<Queue>);

/// Why an informational response can't be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformationalError {
    /// The status is not within 102 and 199. `100 Continue` is sent when the body is asked for, and
    /// `101 Switching Protocols` is a response.
    Status(StatusCode),
    /// The response was begun, or the client has gone.
    Late,
}

impl fmt::Display for InformationalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => {
                write!(formatter, "{status} can't precede a response: use 102 to 199")
            }
            Self::Late => formatter.write_str("the response has begun, or the client is gone"),
        }
    }
}

impl std::error::Error for InformationalError {}

struct Queue {
    bell: Arc<Bell>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<(StatusCode, HeaderMap)>,
    is_late: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Informational {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Informational")
    }
}

impl Informational {
    /// Sends a response with this status and these fields. A client of HTTP/1.0 gets none, for it
    /// would take it for the response (RFC 9110 §15.2).
    ///
    /// # Errors
    ///
    /// When it can't be sent, or comes too late.
    pub fn send(&self, status: StatusCode, fields: HeaderMap) -> Result<(), InformationalError> {
        if !(102..=199).contains(&status.as_u16()) {
            return Err(InformationalError::Status(status));
        }
        let mut state = self.0.lock();
        if state.is_late {
            return Err(InformationalError::Late);
        }
        state.waiting.push((status, fields));
        drop(state);
        self.0.bell.wake_by_ref();
        Ok(())
    }

    /// Sends `103 Early Hints` (RFC 8297) with these values of `Link`.
    ///
    /// # Errors
    ///
    /// When the response was begun, or the client has gone.
    pub fn early_hints(
        &self,
        links: impl IntoIterator<Item = HeaderValue>,
    ) -> Result<(), InformationalError> {
        let fields = links.into_iter().map(|link| (LINK, link)).collect();
        self.send(StatusCode::EARLY_HINTS, fields)
    }
}

/// The worker's end. Dropped, it lets nothing more be sent.
pub(crate) struct Outlet(Arc<Queue>);

/// A handle for a service, and the worker's end.
pub(crate) fn informational(bell: &Arc<Bell>) -> (Informational, Outlet) {
    let queue = Arc::new(Queue { bell: Arc::clone(bell), state: Mutex::default() });
    (Informational(Arc::clone(&queue)), Outlet(queue))
}

impl Outlet {
    /// Returns whether nothing is to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().waiting.is_empty()
    }

    /// Sends what waits.
    pub(crate) fn send(&self, io: &mut Io<'_>) {
        let waiting = std::mem::take(&mut self.0.lock().waiting);
        for (status, fields) in &waiting {
            let fields: Vec<_> = fields.iter().map(Into::into).collect();
            io.start_with(*status, &fields, End::No);
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.0.lock().is_late = true;
    }
}

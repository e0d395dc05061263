//! One exchange, as the caller's thread and the client's own thread share it, and the way between them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bolide_eventloop::{Destination, Mailbox, Token};
use bolide_semantics::{End, ExchangeId};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};

use super::error::ClientError;
use crate::{Dial, WaitKey};

/// The head of a request, as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    pub(crate) scheme: &'static str,
    pub(crate) authority: String,
    pub(crate) path: String,
    pub(crate) fields: HeaderMap,
}

/// The head of a response.
#[derive(Debug, Clone)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) fields: HeaderMap,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for a connection since this time.
    Waiting(Instant),
    /// It is under way; something last moved at this time.
    Sent(Instant),
}

/// State that both threads leave for each other.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// The body of the request.
    pub(crate) upload: Upload,
    pub(crate) response: Option<ResponseHead>,
    /// The response has begun.
    pub(crate) answered: bool,
    pub(crate) down: VecDeque<Bytes>,
    pub(crate) down_ended: bool,
    pub(crate) down_trailers: Option<HeaderMap>,
    /// Bytes that the caller has read, and that are not reported as consumed.
    pub(crate) read_bytes: usize,
    pub(crate) error: Option<ClientError>,
    /// The caller wants nothing more of it.
    pub(crate) abandoned: bool,
    /// Place where it waits for a connection: the server's number, and its place there.
    pub(crate) waits: Option<(usize, WaitKey)>,
    /// It lies on the client's tasks to be looked at.
    pub(crate) listed: bool,
    /// The connection that carries it, and its number there.
    pub(crate) connection: Option<usize>,
    pub(crate) exchange: Option<ExchangeId>,
    /// The connection takes no more of the body for now.
    pub(crate) blocked: bool,
}

/// The body of the request.
#[derive(Debug)]
pub(crate) struct Upload {
    /// The request's body: what is to be sent, and how many bytes these are.
    pub(crate) pieces: VecDeque<Bytes>,
    pub(crate) bytes: usize,
    /// Nothing follows, but these.
    pub(crate) ended: bool,
    pub(crate) trailers: Option<HeaderMap>,
    /// The end was sent.
    pub(crate) finished: bool,
    /// Some of the body has left: it can't be sent again unless it is kept.
    pub(crate) body_left: bool,
}

/// One exchange.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) head: RequestHead,
    state: Mutex<State>,
    changed: Condvar,
    post: Arc<CommandQueue>,
}

/// How long each phase may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) wait: Duration,
    pub(crate) response: Duration,
    /// `None`: a body may pause as long as it likes.
    pub(crate) pause: Option<Duration>,
    /// All of it must be over then.
    pub(crate) latest: Option<Instant>,
}

/// Above this much that was read, it is told before all is read, in bytes.
const TELL_BYTES: usize = 32 * 1024;

impl PendingRequest {
    /// `ends`: the body is complete as it stands in `up`.
    pub(crate) fn new(
        head: RequestHead,
        up: Option<Bytes>,
        ends: bool,
        post: Arc<CommandQueue>,
    ) -> Self {
        let up: VecDeque<Bytes> = up.into_iter().filter(|piece| !piece.is_empty()).collect();
        let up_bytes = up.iter().map(Bytes::len).sum();
        let state = State {
            phase: Phase::Waiting(Instant::now()),
            response: None,
            answered: false,
            down: VecDeque::new(),
            down_ended: false,
            down_trailers: None,
            read_bytes: 0,
            error: None,
            abandoned: false,
            waits: None,
            listed: false,
            connection: None,
            exchange: None,
            blocked: false,
            upload: Upload {
                finished: ends && up.is_empty(),
                pieces: up,
                bytes: up_bytes,
                ended: ends,
                trailers: None,
                body_left: false,
            },
        };
        Self { head, state: Mutex::new(state), changed: Condvar::new(), post }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has come for the caller.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// It did not succeed.
    pub(crate) fn fail(&self, error: ClientError) {
        let mut state = self.lock();
        state.connection = None;
        state.waits = None;
        state.exchange = None;
        state.error.get_or_insert(error);
        drop(state);
        self.notify();
    }

    /// Has the client's thread look at what was left for it.
    fn call(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if std::mem::replace(&mut state.listed, true) {
            return;
        }
        drop(state);
        self.post.look(Arc::clone(self));
    }

    /// Waits until `is_it` finds something, or a phase has taken too long.
    fn wait<T>(
        self: &Arc<Self>,
        patience: &Patience,
        mut is_it: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, ClientError> {
        let mut state = self.lock();
        let begun = Instant::now();
        loop {
            if let Some(found) = is_it(&mut state) {
                return Ok(found);
            }
            if let Some(error) = &state.error {
                return Err(error.clone());
            }
            let now = Instant::now();
            let Some((by, what)) = state.deadline(begun, patience) else {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if now >= by {
                let error = ClientError::timeout(what);
                let waits = matches!(state.phase, Phase::Waiting(_));
                let error = if waits { error } else { error.touched() };
                state.error = Some(error.clone());
                state.abandoned = true;
                self.call(state);
                return Err(error);
            }
            let waited = self.changed.wait_timeout(state, by - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the response's head.
    pub(crate) fn answer(
        self: &Arc<Self>,
        patience: &Patience,
    ) -> Result<ResponseHead, ClientError> {
        self.wait(patience, |state| state.response.take())
    }

    /// Waits for a piece of the response's body: `None` at its end.
    pub(crate) fn piece(
        self: &Arc<Self>,
        patience: &Patience,
    ) -> Result<Option<Bytes>, ClientError> {
        let piece = self.wait(patience, |state| match state.down.pop_front() {
            Some(piece) => Some(Some(piece)),
            None => state.down_ended.then_some(None),
        })?;
        if let Some(piece) = &piece {
            let mut state = self.lock();
            state.read_bytes += piece.len();
            let tells = state.read_bytes >= TELL_BYTES || state.down.is_empty();
            if tells && !state.down_ended {
                self.call(state);
            }
        }
        Ok(piece)
    }

    /// Waits until there is room for a piece of the request's body, and leaves it. `Ok(false)`: the response has
    /// begun or the exchange is over, and nothing waits for it.
    pub(crate) fn push(
        self: &Arc<Self>,
        piece: Bytes,
        room: usize,
        patience: &Patience,
    ) -> Result<bool, ClientError> {
        let wanted = self.wait(patience, |state| {
            if state.down_ended {
                return Some(false);
            }
            (state.upload.bytes < room).then_some(true)
        })?;
        if wanted && !piece.is_empty() {
            let mut state = self.lock();
            state.upload.bytes += piece.len();
            state.upload.pieces.push_back(piece);
            if !state.blocked {
                self.call(state);
            }
        }
        Ok(wanted)
    }

    /// The request's body has ended.
    pub(crate) fn finish(self: &Arc<Self>, trailers: Option<HeaderMap>) {
        let mut state = self.lock();
        if state.upload.ended {
            return;
        }
        state.upload.ended = true;
        state.upload.trailers = trailers;
        self.call(state);
    }

    /// The caller can't go on with it.
    pub(crate) fn give_up(self: &Arc<Self>, error: ClientError) {
        let mut state = self.lock();
        if state.error.is_none() && !state.down_ended {
            state.error = Some(error);
            state.abandoned = true;
            self.changed.notify_all();
            self.call(state);
        }
    }

    /// The caller wants nothing more of it.
    pub(crate) fn abandon(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.abandoned || (state.down_ended && state.upload.finished) || state.error.is_some() {
            return;
        }
        state.abandoned = true;
        self.call(state);
    }
}

impl State {
    /// Until when something must have come that is waited for since `begun`, and what it means if nothing has.
    /// `None`: it is the caller's turn.
    fn deadline(&self, begun: Instant, patience: &Patience) -> Option<(Instant, &'static str)> {
        let phase = match self.phase {
            Phase::Waiting(since) => {
                Some((since + patience.wait, "no connection was ready in time"))
            }
            // The server may wait for the rest of the body.
            Phase::Sent(_) if !self.upload.ended && self.upload.pieces.is_empty() => None,
            Phase::Sent(moved) if self.answered => {
                let by = patience.pause.map(|pause| moved.max(begun) + pause);
                by.map(|by| (by, "the server paused for too long in a body"))
            }
            Phase::Sent(moved) if self.upload.finished => {
                Some((moved + patience.response, "the server did not respond in time"))
            }
            Phase::Sent(moved) => {
                let by = patience.pause.map(|pause| moved.max(begun) + pause);
                by.map(|by| (by, "the server took nothing of the request's body for too long"))
            }
        };
        match (phase, patience.latest) {
            (Some((by, _)), Some(latest)) if by <= latest => phase,
            (_, Some(latest)) => Some((latest, "the request took longer than it may")),
            (phase, None) => phase,
        }
    }

    /// The next part of the request's body to be sent.
    pub(crate) fn next_up(&mut self) -> Option<Up> {
        if let Some(piece) = self.upload.pieces.pop_front() {
            self.upload.bytes -= piece.len();
            let ends = self.upload.ended
                && self.upload.pieces.is_empty()
                && self.upload.trailers.is_none();
            self.upload.finished |= ends;
            return Some(Up::Piece(piece, if ends { End::Yes } else { End::No }));
        }
        if !self.upload.ended || std::mem::replace(&mut self.upload.finished, true) {
            return None;
        }
        Some(self.upload.trailers.take().map_or(Up::Piece(Bytes::new(), End::Yes), Up::Trailers))
    }
}

/// A part of a request's body.
#[derive(Debug)]
pub(crate) enum Up {
    Piece(Bytes, End),
    Trailers(HeaderMap),
}

/// Request with its target and its caller.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) origin: Origin,
    pub(crate) dial: Dial,
    pub(crate) destinations: Vec<Destination>,
    pub(crate) pending: Arc<PendingRequest>,
}

/// Properties that requests have in common that share connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    /// True if it is TLS.
    pub(crate) is_tls: bool,
    /// True if HTTP/2 is spoken without asking.
    pub(crate) is_prior: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Addresses of connections, if not the host's; otherwise empty.
    pub(crate) via: Vec<Destination>,
}

/// Message of a caller to the client's thread.
#[derive(Debug)]
pub(crate) enum Command {
    Begin(Box<Job>),
    Look(Arc<PendingRequest>),
}

/// Names no connection: mail to it wakes the loop and nothing else.
const NOBODY: u64 = u64::MAX;

/// Commands that the client's thread has not read.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    commands: Mutex<Vec<Command>>,
    bell: OnceLock<Mailbox<()>>,
}

impl CommandQueue {
    /// The thread can be woken from here on.
    pub(crate) fn connect(&self, bell: Mailbox<()>) {
        // It is connected once.
        let _ = self.bell.set(bell);
    }

    pub(crate) fn send(&self, command: Command) {
        let first = {
            let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
            commands.push(command);
            commands.len() == 1
        };
        if first && let Some(bell) = self.bell.get() {
            // A thread that has ended has answered everything it was to answer.
            let _ = bell.send(Token::from_key(NOBODY), ());
        }
    }

    pub(crate) fn look(&self, pending: Arc<PendingRequest>) {
        self.send(Command::Look(pending));
    }

    /// Takes what there is, in its order.
    pub(crate) fn take(&self, into: &mut Vec<Command>) {
        into.append(&mut self.commands.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn bell(&self) -> Option<&Mailbox<()>> {
        self.bell.get()
    }
}

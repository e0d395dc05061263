//! One end of a simulated connection that speaks HTTP by our own cores.

use std::collections::VecDeque;
use std::time::Instant;

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_connection::{Connection, Limits};
use bolide_semantics::{Context, End, ExchangeEvent, ExchangeId, Head, Output};
use bolide_server::Bytes;
use bolide_simnet::Wire;

/// How large the pieces of bodies are, in bytes.
const PIECE_BYTES: usize = 3000;

/// Role of a party: told what comes, it gives orders.
pub(crate) trait Role {
    /// Something came. Data has been reported as consumed.
    fn event(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>);

    /// Everything that came has been told.
    fn settled(&mut self, orders: &mut Orders<'_>);

    /// The connection is over, with what was open on it.
    fn closed(&mut self) {}
}

/// The connection, and bodies that wait to be sent.
pub(crate) struct Orders<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) cx: Context<'a>,
    sending: &'a mut VecDeque<(ExchangeId, VecDeque<Bytes>)>,
    pub(crate) ordered: bool,
    pub(crate) finishes: bool,
    pub(crate) resets: bool,
}

impl Orders<'_> {
    /// Sends a body, piece by piece, as the other end takes it.
    pub(crate) fn send(&mut self, id: ExchangeId, body: Vec<u8>) {
        let body = Bytes::from(body);
        let mut pieces: VecDeque<Bytes> = (0..body.len())
            .step_by(PIECE_BYTES)
            .map(|at| body.slice(at..body.len().min(at + PIECE_BYTES)))
            .collect();
        // Of some, the end comes by itself.
        if pieces.is_empty() || id.0 & 2 == 0 {
            pieces.push_back(Bytes::new());
        }
        self.sending.push_back((id, pieces));
        self.go_on(id);
    }

    fn go_on(&mut self, id: ExchangeId) {
        let Some(at) = self.sending.iter().position(|(sending, _)| *sending == id) else { return };
        while let Some(piece) = self.sending[at].1.pop_front() {
            let end = if self.sending[at].1.is_empty() { End::Yes } else { End::No };
            self.ordered = true;
            match self.connection.send_data(&mut self.cx, id, piece, end) {
                Ok(true) => {}
                Ok(false) => return,
                // It was aborted, which has been or will be told.
                Err(_) => break,
            }
        }
        self.sending.remove(at);
    }
}

/// One end of a connection.
pub(crate) struct Party<R> {
    connection: Connection,
    limits: Limits,
    input: ReceiveBuffer,
    output: SendQueue,
    head: Head,
    rest: Box<[u8]>,
    sending: VecDeque<(ExchangeId, VecDeque<Bytes>)>,
    start: Instant,
    read: usize,
    over: bool,
    role: R,
}

impl<R: Role> Party<R> {
    pub(crate) fn new(connection: Connection, start: Instant, role: R) -> Self {
        Self {
            connection,
            limits: Limits::default(),
            input: ReceiveBuffer::new(65_536),
            output: SendQueue::new(),
            head: Head::default(),
            rest: Box::default(),
            sending: VecDeque::new(),
            start,
            read: 0,
            over: false,
            role,
        }
    }

    /// Something happened on the wire.
    pub(crate) fn advance(&mut self, wire: &mut Wire<'_>) {
        if self.over {
            return;
        }
        self.input.start(&self.rest);
        self.input.extend(&wire.received()[self.read..]);
        self.read = wire.received().len();
        if wire.eof() || wire.was_reset() {
            self.connection.receive_eof();
        }
        let (finishes, resets) = self.work(self.start + wire.now());
        self.rest = self.input.take_rest();
        if wire.was_reset() {
            return;
        }
        let mut bytes = Vec::new();
        self.connection.flush(&mut self.output, &mut bytes).expect("memory takes everything");
        wire.send(&bytes);
        if resets {
            wire.reset();
        } else if finishes || self.over {
            wire.finish();
            self.over = true;
        }
    }

    fn work(&mut self, now: Instant) -> (bool, bool) {
        let Self { connection, input, output, head, sending, role, limits, .. } = self;
        let cx = Context { input, output, output_limit: 10_000, head, now };
        let mut orders =
            Orders { connection, cx, sending, ordered: false, finishes: false, resets: false };
        loop {
            match orders.connection.poll(&mut orders.cx, limits) {
                Output::Exchange(id, event) => {
                    if let ExchangeEvent::Data(data, _) = &event {
                        orders.connection.consumed(&mut orders.cx, id, data.len());
                    }
                    if event == ExchangeEvent::Sendable {
                        orders.go_on(id);
                    } else {
                        role.event(id, event, &mut orders);
                    }
                }
                Output::Connection(_) => {}
                Output::Closed(_) => {
                    role.closed();
                    self.over = true;
                    return (true, orders.resets);
                }
                Output::Wait(_) => {
                    orders.ordered = false;
                    role.settled(&mut orders);
                    if !orders.ordered {
                        return (orders.finishes, orders.resets);
                    }
                }
            }
        }
    }
}

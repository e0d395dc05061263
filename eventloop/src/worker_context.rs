//! Resources that a worker lends to the connection whose turn it is.

use std::rc::Rc;
use std::time::Instant;

use bolide_buffers::{ReceiveBuffer, SendQueue};

use crate::agenda::Agenda;
use crate::datagram_sockets::DatagramSockets;
use crate::gather::Gathering;
use crate::kernel::Kernel;
use crate::limits::Limits;
use crate::mailbox::Mailbox;
use crate::meter::Meter;
use crate::service::Service;
use crate::slots::Token;
use crate::stats::Stats;
use crate::ticks::Ticks;

/// Queues with more memory of their own than this are not kept for the next connection, in bytes.
const KEPT_QUEUE_BYTES: usize = 2 * 1024 * 1024;

/// Queues that are kept for connections whose socket is full, in number.
const SPARE_QUEUES_COUNT: usize = 16;

/// Resources that a worker lends to the connection whose turn it is.
pub(crate) struct WorkerContext<K: Kernel, S: Service> {
    pub(crate) kernel: K,
    pub(crate) service: S,
    /// Buffers that sockets are read into.
    pub(crate) inputs: Inputs,
    /// Queues that sockets are written from.
    pub(crate) outputs: Outputs,
    pub(crate) mailbox: Mailbox<S::Message>,
    pub(crate) agenda: Agenda,
    pub(crate) limits: Limits,
    pub(crate) stats: Stats,
    pub(crate) now: Instant,
    pub(crate) ticks: Ticks,
    /// The last deadline and its tick: those of one turn are mostly the same.
    met: (Instant, u64),
    pub(crate) meter: Rc<Meter>,
    pub(crate) gathering: Gathering,
    /// Memory that the session whose turn it is says that it keeps, in bytes.
    pub(crate) session_held_bytes: usize,
    pub(crate) datagram_sockets: DatagramSockets<K, S::Message>,
    /// The connection whose pass it is.
    pub(crate) passing: Token,
}

/// Queues that sockets are written from.
pub(crate) struct Outputs {
    pub(crate) queue: SendQueue,
    #[allow(clippy::vec_box, reason = "the boxes themselves are what is kept for the next slot")]
    pub(crate) spare: Vec<Box<SendQueue>>,
}

/// Buffers that sockets are read into.
pub(crate) struct Inputs {
    /// Buffer that is read into.
    pub(crate) current: ReceiveBuffer,
    /// The other one: the large block, unless that is in use.
    other: ReceiveBuffer,
    is_bulk: bool,
}

impl<K: Kernel, S: Service> WorkerContext<K, S> {
    pub(crate) fn new(
        kernel: K,
        service: S,
        mailbox: Mailbox<S::Message>,
        limits: Limits,
        now: Instant,
    ) -> Self {
        let meter = service.meter();
        Self {
            kernel,
            service,
            mailbox,
            // The first turn begins at once: the service may have something to begin with.
            agenda: Agenda { alarm: Some(now), ..Agenda::default() },
            limits,
            stats: Stats::default(),
            now,
            ticks: Ticks::new(now),
            met: (now, Ticks::new(now).meeting(now)),
            meter,
            gathering: Gathering::default(),
            session_held_bytes: 0,
            datagram_sockets: DatagramSockets::default(),
            passing: Token::NOBODY,
            inputs: Inputs {
                current: ReceiveBuffer::new(limits.turns.block_bytes),
                other: ReceiveBuffer::unallocated(limits.turns.bulk_block_bytes),
                is_bulk: false,
            },
            outputs: Outputs { queue: SendQueue::new(), spare: Vec::new() },
        }
    }

    /// The first tick by which `deadline` has certainly come.
    #[inline]
    pub(crate) fn meeting(&mut self, deadline: Instant) -> u64 {
        if self.met.0 != deadline {
            self.met = (deadline, self.ticks.meeting(deadline));
        }
        self.met.1
    }

    /// Puts the large block in place, or the usual one.
    #[inline]
    pub(crate) fn choose_block(&mut self, bulk: bool) {
        if bulk != self.inputs.is_bulk {
            std::mem::swap(&mut self.inputs.current, &mut self.inputs.other);
            self.inputs.is_bulk = bulk;
        }
    }

    /// Takes over what a connection has unsent.
    pub(crate) fn take_unsent(&mut self, mut unsent: Box<SendQueue>) {
        std::mem::swap(&mut self.outputs.queue, &mut *unsent);
        if self.outputs.spare.len() < SPARE_QUEUES_COUNT
            && unsent.allocated_bytes() < KEPT_QUEUE_BYTES
        {
            self.outputs.spare.push(unsent);
        }
    }

    /// Gives up the memory of an output queue that was once very long.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.outputs.queue.allocated_bytes() > KEPT_QUEUE_BYTES {
            self.outputs.queue = SendQueue::new();
        }
    }

    /// Gives back what is still unsent after a pass. `grown`: something may have been added.
    #[inline]
    pub(crate) fn keep_unsent(&mut self, grown: bool) -> Option<Box<SendQueue>> {
        if self.outputs.queue.is_empty() { None } else { self.keep(grown) }
    }

    #[cold]
    fn keep(&mut self, grown: bool) -> Option<Box<SendQueue>> {
        let mut kept = self.outputs.spare.pop().unwrap_or_default();
        std::mem::swap(&mut self.outputs.queue, &mut *kept);
        if grown {
            kept.settle();
        }
        Some(kept)
    }
}

//! A thread that carries the packets of one direction through a delay line: from a TUN device, to
//! which the router sends them, back into it, from which the router sends them on.

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::Mistake;
use crate::limits::LINE_BATCH_COUNT;
use crate::line::{Counts, Line, Nanos};
use crate::linux::namespace::{batch, inside};
use crate::linux::shaping::in_bursts;
use crate::linux::topology::{LEFT, RIGHT};
use crate::shape::Shape;
use crate::spec::{Node, Spec};

/// Size of the header that the kernel puts in front of a packet that may be a burst (`virtio_net_hdr`).
const BURST_HEADER_BYTES: usize = 10;

/// The largest packet, a burst with its header.
const BLOCK_BYTES: usize = 65_536 + BURST_HEADER_BYTES;

/// Packets below that size are copied out of the block that they were read into.
const COPY_BYTES: usize = 16 * 1024;

/// Blocks that are kept for the next packets.
const SPARE_COUNT: usize = 256;

/// How long a carrier sleeps at most before it looks whether it is to end.
const LOOK_INTERVAL: Nanos = 20_000_000;

/// Server to client, or client to server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Down,
    Up,
}

/// Counts of a carrier so far.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// The fates of packets.
    pub counts: Counts,
    /// Packets that came out.
    pub out: u64,
    /// By how much packets came out late, summed, in nanoseconds: the line's own part of the delay.
    pub late_ns: u64,
    /// By how much the latest came out late, in nanoseconds.
    pub latest_ns: u64,
    /// Packets that the kernel refused.
    pub refused: u64,
}

/// The device of a direction, ready to be carried from.
pub(crate) struct Device {
    tun: SyncDevice,
    bursts: bool,
}

impl Device {
    /// Makes it in the router and routes the direction through it.
    pub(crate) fn open(spec: &Spec, direction: Direction, shape: &Shape) -> Result<Self, Mistake> {
        let (name, from, table) = match direction {
            Direction::Down => ("line-down", RIGHT, 102),
            Direction::Up => ("line-up", LEFT, 101),
        };
        let router = spec.namespace(Node::Router);
        let bursts = in_bursts(shape);
        let tun = inside(&router, || {
            DeviceBuilder::new().name(name).mtu(1500).offload(bursts).build_sync()
        })?
        .map_err(|error| {
            Mistake::Failed(format!(
                "cannot open /dev/net/tun, which the delay line needs: {error}; the device must \
                 exist and be readable and writable for this user (mode 0666 is usual)"
            ))
        })?;
        tun.set_nonblocking(true).map_err(Mistake::io(name))?;
        let lines = [
            format!("link set dev {name} txqueuelen 10000"),
            format!("link set dev {name} up"),
            format!("route add default dev {name} table {table}"),
            format!("rule add iif {from} lookup {table} priority {table}"),
        ];
        batch("ip", Some(&router), &lines)?;
        Ok(Self { tun, bursts })
    }
}

#[derive(Debug, Default)]
struct Control {
    ends: AtomicBool,
    carried: Mutex<Carried>,
}

/// A running carrier.
#[derive(Debug)]
pub(crate) struct Carrier {
    control: Arc<Control>,
    thread: JoinHandle<Device>,
}

impl Carrier {
    /// Starts to carry with an empty line.
    pub(crate) fn start(device: Device, shape: Shape, seed: u64) -> Result<Self, Mistake> {
        let control = Arc::new(Control::default());
        let told = Arc::clone(&control);
        let thread = thread::Builder::new()
            .name("line".to_owned())
            .spawn(move || {
                carry(&device, shape, seed, &told);
                device
            })
            .map_err(Mistake::io("a carrier can't be started"))?;
        Ok(Self { control, thread })
    }

    /// Stops; what is on the way is lost.
    pub(crate) fn stop(self) -> Result<Device, Mistake> {
        self.control.ends.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Mistake::Failed("a carrier panicked".to_owned()))
    }

    /// Returns what to ask for [`Carried`] later.
    pub(crate) fn counter(&self) -> Counter {
        Counter(Arc::clone(&self.control))
    }
}

/// Tells what a carrier has done so far.
#[derive(Debug, Clone)]
pub(crate) struct Counter(Arc<Control>);

impl Counter {
    pub(crate) fn read(&self) -> Carried {
        *self.0.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn carry(device: &Device, shape: Shape, seed: u64, control: &Control) {
    // By default Linux adds up to 50 µs to every sleep.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let began = Instant::now();
    let now = || Nanos::try_from(began.elapsed().as_nanos()).unwrap_or(Nanos::MAX);
    let header = if device.bursts { BURST_HEADER_BYTES } else { 0 };
    let mut line: Line<Vec<u8>> = Line::new(shape, seed);
    let mut carried = Carried::default();
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let mut block = vec![0; BLOCK_BYTES];
    while !control.ends.load(Ordering::Relaxed) {
        let more = take(device, header, &mut line, &mut block, &mut spare, &now, &mut carried);
        let moment = now();
        while let Some((due, packet)) = line.pop(moment) {
            match device.tun.send(&packet) {
                Ok(_) => carried.out += 1,
                Err(_) => carried.refused += 1,
            }
            let late = moment - due;
            carried.late_ns += late;
            carried.latest_ns = carried.latest_ns.max(late);
            if packet.capacity() >= BLOCK_BYTES && spare.len() < SPARE_COUNT {
                spare.push(packet);
            }
        }
        carried.counts = line.counts();
        *control.carried.lock().unwrap_or_else(PoisonError::into_inner) = carried;
        if !more {
            let until = line.deadline().map_or(LOOK_INTERVAL, |due| due.saturating_sub(now()));
            wait(device, until.min(LOOK_INTERVAL));
        }
    }
}

/// Takes packets until there are none, or a batch is full: whether there may be more.
fn take(
    device: &Device,
    header: usize,
    line: &mut Line<Vec<u8>>,
    block: &mut Vec<u8>,
    spare: &mut Vec<Vec<u8>>,
    now: &impl Fn() -> Nanos,
    carried: &mut Carried,
) -> bool {
    for _ in 0..LINE_BATCH_COUNT {
        let length = match device.tun.recv(block) {
            Ok(length) if length > header => length,
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => {
                carried.refused += 1;
                return false;
            }
        };
        let packet = if length < COPY_BYTES {
            block[..length].to_vec()
        } else {
            let next = spare.pop().map(|mut next| {
                next.resize(BLOCK_BYTES, 0);
                next
            });
            let mut full = std::mem::replace(block, next.unwrap_or_else(|| vec![0; BLOCK_BYTES]));
            full.truncate(length);
            full
        };
        line.push(now(), packet, length - header);
    }
    true
}

/// Until there is a packet, or so many nanoseconds have passed.
fn wait(device: &Device, nanos: Nanos) {
    let time = Duration::from_nanos(nanos);
    let timeout =
        Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: i64::from(time.subsec_nanos()) };
    let mut polled = [PollFd::new(&device.tun, PollFlags::IN)];
    // A signal only makes it look earlier.
    let _ = poll(&mut polled, Some(&timeout));
}

//! The process that keeps a lab: it builds it, measures it, carries the packets of its delay lines,
//! and removes it when it is asked to end. One line of JSON comes in on its standard input; lines of
//! JSON go out until the lab is ready.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::Mistake;
use crate::linux::carrier::{Carried, Carrier, Counter, Device, Direction};
use crate::linux::shaping::{self, Kernel, Shaper};
use crate::linux::verify::{self, Report};
use crate::linux::{namespace, topology};
use crate::shape::Shape;
use crate::spec::{Node, Spec};

/// How long what the delay line carries at most is measured, for each direction.
const MOST_TIME: Duration = Duration::from_millis(250);

/// How the system is asked to prefer the delay lines to other work (-20 to 19, lower is sooner).
const PRIORITY: i32 = -15;

/// Order to a keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) spec: Spec,
    /// The socket on which it tells what its lines have carried.
    pub(crate) socket: PathBuf,
}

/// Message of a keeper while it sets up.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// Step that it takes now.
    Step(String),
    /// It is ready; what tells its namespaces from others, and what was measured.
    Ready { namespaces: Vec<u64>, report: Option<Report> },
    /// It has failed, and removed what it had made.
    Failed { usage: bool, sentence: String },
}

/// Response of a keeper on its socket.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Live {
    /// Server to client, if the delay line shapes it.
    pub down: Option<Carried>,
    /// Client to server, if the delay line shapes it.
    pub up: Option<Carried>,
}

/// Keeps a lab until SIGTERM.
pub(crate) fn keep() -> ExitCode {
    let mut line = String::new();
    // The process that started it has died if there is no order.
    let order: Option<Order> =
        io::stdin().read_line(&mut line).ok().and_then(|_| serde_json::from_str(&line).ok());
    let Some(order) = order else {
        eprintln!("bolide net: keeps a lab for `bolide net up`, and has got no order");
        return ExitCode::from(2);
    };
    // Ctrl-C in the terminal of `net up` isn't meant for the lab.
    let _ = rustix::process::setsid();
    // A router is no slower because the machine is busy; only root may ask for that.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    let mut signals = match Signals::new([SIGTERM, SIGINT]) {
        Ok(signals) => signals,
        Err(error) => {
            eprintln!("bolide net: can't watch signals: {error}");
            return ExitCode::FAILURE;
        }
    };
    let kept = set_up(&order);
    let code = match kept {
        Ok(_carriers) => {
            signals.forever().next();
            ExitCode::SUCCESS
        }
        Err(mistake) => {
            let usage = matches!(mistake, Mistake::Usage(_));
            // The process that waited for it may be gone: then this is why it failed.
            let _ = say(&Word::Failed { usage, sentence: mistake.to_string() });
            ExitCode::FAILURE
        }
    };
    if let Err(mistake) = topology::remove(&order.spec) {
        eprintln!("bolide net: {mistake}");
    }
    code
}

fn say(word: &Word) -> Result<(), Mistake> {
    let text = serde_json::to_string(word).map_err(|error| Mistake::Failed(error.to_string()))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(Mistake::io("no process waits for the lab"))
}

/// Builds, shapes, measures.
fn set_up(order: &Order) -> Result<Vec<Carrier>, Mistake> {
    let spec = &order.spec;
    // Before the file system is changed, since the socket lies in it.
    let socket = UnixListener::bind(&order.socket).map_err(Mistake::io(order.socket.display()))?;
    if spec.rootless {
        own_names()?;
    }
    say(&Word::Step("namespaces and links".to_owned()))?;
    topology::build(spec)?;
    let router = spec.namespace(Node::Router);
    let kernel = Kernel::probe(&router);
    let shapers =
        [&spec.down, &spec.up].map(|shape| shaping::shaper(shape, kernel, spec.only_line));
    let [down, up] = shapers;
    let mut devices = Vec::new();
    for (direction, shape, shaper) in
        [(Direction::Down, &spec.down, down), (Direction::Up, &spec.up, up)]
    {
        if shaper == Shaper::Line {
            devices.push((direction, shape, Device::open(spec, direction, shape)?));
        }
    }
    let mut most = [None, None];
    if !devices.is_empty() && spec.verify {
        say(&Word::Step("what the delay line carries at most".to_owned()))?;
        (devices, most) = measured(spec, devices)?;
    }
    shaping::apply(spec, down, up)?;
    let mut carriers = start(devices, spec.seed)?;
    let report = if spec.verify {
        say(&Word::Step("round trip and rates".to_owned()))?;
        let report = verify::measure(spec, shapers, most)?;
        // What the measurement has left in queues would delay the first who comes.
        carriers = renewed(carriers, spec)?;
        Some(report)
    } else {
        None
    };
    let counters = carriers.iter().map(|(direction, c)| (*direction, c.counter())).collect();
    thread::spawn(move || tell(&socket, counters));
    let namespaces =
        Node::ALL.iter().filter_map(|node| namespace::inode(&spec.namespace(*node))).collect();
    say(&Word::Ready { namespaces, report })?;
    // Who started it waits no longer, and what it was started with is no place to write to.
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
    Ok(carriers.into_iter().map(|(_, carrier)| carrier).collect())
}

type Devices<'a> = Vec<(Direction, &'a Shape, Device)>;
type Carriers = Vec<(Direction, Carrier)>;

fn start(devices: Devices<'_>, seed: u64) -> Result<Carriers, Mistake> {
    devices
        .into_iter()
        .map(|(direction, shape, device)| {
            // Both directions must not lose in step.
            let seed = seed.wrapping_mul(2).wrapping_add(direction as u64);
            Ok((direction, Carrier::start(device, shape.clone(), seed)?))
        })
        .collect()
}

fn renewed(carriers: Carriers, spec: &Spec) -> Result<Carriers, Mistake> {
    let devices = carriers.into_iter().map(|(direction, carrier)| {
        let shape = match direction {
            Direction::Down => &spec.down,
            Direction::Up => &spec.up,
        };
        Ok((direction, shape, carrier.stop()?))
    });
    start(devices.collect::<Result<_, Mistake>>()?, spec.seed)
}

/// Returns what TCP gets through each direction that has a line, when lines do nothing but carry.
fn measured<'a>(
    spec: &Spec,
    devices: Devices<'a>,
) -> Result<(Devices<'a>, [Option<f64>; 2]), Mistake> {
    let nothing = Shape::default();
    let kinds: Vec<_> = devices.iter().map(|(direction, shape, _)| (*direction, *shape)).collect();
    let plain = devices.into_iter().map(|(direction, _, device)| (direction, &nothing, device));
    let carriers = start(plain.collect(), 0)?;
    let mut most = [None, None];
    for (direction, _) in &kinds {
        most[*direction as usize] = Some(verify::free(spec, *direction, MOST_TIME)?);
    }
    let stopped = carriers.into_iter().zip(kinds);
    let devices =
        stopped.map(|((direction, carrier), (_, shape))| Ok((direction, shape, carrier.stop()?)));
    Ok((devices.collect::<Result<_, Mistake>>()?, most))
}

/// Answers everybody who connects with what the lines have done.
fn tell(socket: &UnixListener, counters: Vec<(Direction, Counter)>) {
    for stream in socket.incoming() {
        let Ok(mut stream) = stream else { continue };
        let mut live = Live::default();
        for (direction, counter) in &counters {
            match direction {
                Direction::Down => live.down = Some(counter.read()),
                Direction::Up => live.up = Some(counter.read()),
            }
        }
        if let Ok(text) = serde_json::to_vec(&live) {
            // Who asked may have gone.
            let _ = stream.write_all(&text);
        }
    }
}

/// Puts an empty directory where `ip netns` keeps its names: in a user namespace the system's can't be
/// written.
fn own_names() -> Result<(), Mistake> {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    let failed = |error: rustix::io::Errno| {
        Mistake::Usage(format!(
            "in a user namespace of this system no file system can be mounted ({error}); run it as root"
        ))
    };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(failed)?;
    let place = if std::path::Path::new(namespace::DIRECTORY).is_dir() {
        namespace::DIRECTORY
    } else {
        "/run"
    };
    mount("lab", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None::<&std::ffi::CStr>)
        .map_err(failed)
}

//! How the parts of a run come together at part 1.

use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use bolide_probe::engine::Mistake;
use bolide_probe::stop::Stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::handshake::{Introduction, Joined, Refusal, admit, join};
use super::identity::Rendezvous;

/// How often there is a look at whether to go on.
const LOOK: Duration = Duration::from_millis(100);

/// Between two attempts to reach part 1, which may start later.
const PAUSE: Duration = Duration::from_millis(200);

/// Handshakes at the same time: strangers beyond it are turned away.
const HANDSHAKES_COUNT: usize = 64;

/// Listens where the parts meet. On an address that other hosts reach, only with a secret.
pub(super) fn listen(at: &Rendezvous, has_secret: bool) -> Result<TcpListener, String> {
    let hosts: &[&str] = match (at.is_loopback(), at.host.as_str()) {
        (true, host) => &[host],
        // The name may be that of a service, or of an address outside of a container.
        (false, _) if has_secret => &["::", "0.0.0.0"],
        (false, _) => {
            return Err(format!(
                "the parts meet at {at}, which other hosts reach: set BOLIDE_SECRET to the same text for all parts, \
                 such as the output of `openssl rand -hex 32`"
            ));
        }
    };
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for host in hosts {
        result = TcpListener::bind((*host, at.port));
        if result.is_ok() {
            break;
        }
    }
    let listener = result.map_err(|error| format!("part 1 can't listen at {at}: {error}"))?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    Ok(listener)
}

/// Waits until all parts have joined: an entry for each but the first, `None` where one is missing after `timeout` and
/// that is allowed. `trouble` says why it is of no use to wait on.
pub(super) fn gather(
    listener: &TcpListener,
    us: &Introduction,
    (timeout, missing_ok): (Duration, usize),
    stop: &Stop,
    trouble: &mut dyn FnMut() -> Option<String>,
) -> Result<Vec<Option<Joined>>, Mistake> {
    let us = Arc::new(us.clone());
    let (sender, results) = channel();
    let mut parts: Vec<Option<Joined>> = (1..us.share.count()).map(|_| None).collect();
    let (mut busy, mut refused) = (0, None);
    let latest = Instant::now() + timeout;
    while parts.iter().any(Option::is_none) {
        if stop.is_asked() {
            return Err(Mistake::Parts("interrupted before all parts had come".into()));
        }
        if let Some(what) = trouble() {
            return Err(Mistake::Parts(what));
        }
        if Instant::now() >= latest {
            break;
        }
        while let Some(stream) = next(listener) {
            if busy == HANDSHAKES_COUNT {
                continue;
            }
            busy += 1;
            let (us, sender) = (Arc::clone(&us), sender.clone());
            let from = stream.peer_addr().map_or_else(|_| "?".into(), |from| from.to_string());
            thread::spawn(move || {
                // The run may have begun without it.
                let _ = sender.send((from, admit(stream, &us)));
            });
        }
        while let Ok((from, result)) = results.try_recv() {
            busy -= 1;
            match result {
                Ok(joined) if parts[joined.number - 1].is_none() => {
                    let number = joined.number;
                    parts[number - 1] = Some(joined);
                }
                Ok(joined) => {
                    let number = joined.number + 1;
                    return Err(Mistake::Plan(format!("part {number} has come twice")));
                }
                Err(Refusal::Differs(why)) => return Err(Mistake::Plan(why)),
                Err(Refusal::Stranger(why)) => {
                    refused = Some(format!("; {from} was refused: {why}"))
                }
            }
        }
        wait(listener, if busy > 0 { LOOK / 20 } else { LOOK });
    }
    let missing: Vec<String> = (2..)
        .zip(&parts)
        .filter(|(_, part)| part.is_none())
        .map(|(number, _)| number.to_string())
        .collect();
    if missing.len() > missing_ok {
        let (missing, refused) = (missing.join(", "), refused.unwrap_or_default());
        return Err(Mistake::Parts(format!(
            "part {missing} of {} did not join within {} s{refused}",
            us.share.count(),
            timeout.as_secs_f64()
        )));
    }
    Ok(parts)
}

fn next(listener: &TcpListener) -> Option<TcpStream> {
    let stream = listener.accept().ok()?.0;
    stream.set_nonblocking(false).ok().map(|()| stream)
}

/// Waits until a connection comes, but not forever.
fn wait(listener: &TcpListener, at_most: Duration) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(at_most.subsec_nanos()) };
    // A signal is a reason to look, too.
    let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout));
}

/// Joins at part 1, which may not be there yet.
pub(super) fn reach(
    at: &Rendezvous,
    us: &Introduction,
    host: &str,
    timeout: Duration,
    stop: &Stop,
) -> Result<TcpStream, Mistake> {
    let latest = Instant::now() + timeout;
    loop {
        let why = match dial(at) {
            Ok(mut stream) => {
                let joined = join(&mut stream, us, host);
                let refused = |why| Mistake::Plan(format!("not admitted by part 1 at {at}: {why}"));
                return joined.map(|()| stream).map_err(refused);
            }
            Err(why) => why,
        };
        if stop.is_asked() || Instant::now() >= latest {
            return Err(Mistake::Parts(format!("part 1 can't be reached at {at}: {why}")));
        }
        // Nothing tells when part 1 begins to listen.
        thread::sleep(PAUSE);
    }
}

fn dial(at: &Rendezvous) -> Result<TcpStream, String> {
    let addresses = (at.host.as_str(), at.port).to_socket_addrs();
    let addresses = addresses.map_err(|error| error.to_string())?;
    let mut why = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, Duration::from_secs(2)) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error.kind().to_string(),
        }
    }
    Err(why)
}

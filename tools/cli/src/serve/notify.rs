//! Messages to a service manager: the protocol of sd_notify(3), datagrams to the socket that it names.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide::server::Pulse;

/// Tells the service manager, if there is one.
#[derive(Debug)]
pub(super) struct Notifier {
    manager: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants a sign of life at least.
    watchdog: Option<Duration>,
}

impl Notifier {
    /// To the socket that `NOTIFY_SOCKET` names, with the watchdog of `WATCHDOG_USEC` (if `WATCHDOG_PID` is this
    /// process, or missing).
    pub(super) fn from_environment() -> Result<Self, String> {
        let manager = match env::var_os("NOTIFY_SOCKET") {
            None => None,
            Some(name) => {
                let failed =
                    |error: io::Error| format!("NOTIFY_SOCKET {}: {error}", name.to_string_lossy());
                let address = address(&name).map_err(failed)?;
                Some((UnixDatagram::unbound().map_err(failed)?, address))
            }
        };
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|microseconds| is_ours && *microseconds > 0);
        let watchdog = watchdog.filter(|_| manager.is_some()).map(Duration::from_micros);
        Ok(Self { manager, watchdog })
    }

    fn tell(&self, state: &str) {
        let Some((socket, address)) = &self.manager else { return };
        // A manager that has gone is no reason to end.
        let _ = socket.send_to_addr(state.as_bytes(), address);
    }

    /// Every listener takes connections.
    pub(super) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// The configuration is read again, until [`Self::ready`].
    pub(super) fn reloading(&self) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reloading", monotonic()));
    }

    /// Says that what is open comes to its end.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=draining: waiting for open exchanges");
    }

    /// Another process is the server from here on.
    pub(super) fn handed_over(&self, successor: u32, status: &str) {
        self.tell(&format!("MAINPID={successor}\nREADY=1\nSTATUS={status}"));
    }

    /// Gives signs of life as long as every worker does, at half of the interval that is asked for.
    pub(super) fn watch(&self, pulse: Pulse) -> io::Result<Option<Watchdog>> {
        let (Some(interval), Some((socket, address))) = (self.watchdog, &self.manager) else {
            return Ok(None);
        };
        let (socket, address) = (socket.try_clone()?, address.clone());
        let manager = Some((socket, address));
        let notifier = Self { manager, watchdog: None };
        Watchdog::start(notifier, pulse, interval / 2).map(Some)
    }
}

/// The address that `name` stands for: a path, or behind an @ a name without a file.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name),
        #[cfg(target_os = "linux")]
        [b'@', abstract_name @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(abstract_name)
        }
        _ => {
            let what = "not a path, and not the name of an abstract socket after an @";
            Err(io::Error::new(io::ErrorKind::InvalidInput, what))
        }
    }
}

/// The clock that the manager compares with, in microseconds.
fn monotonic() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let (seconds, nanoseconds) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        seconds * 1_000_000 + nanoseconds / 1000
    }
    #[cfg(not(target_os = "linux"))]
    0
}

/// A thread that gives signs of life; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    fn start(notifier: Notifier, pulse: Pulse, interval: Duration) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("life-sign".to_owned()).spawn(move || {
            let mut next = Duration::ZERO;
            while stopped.recv_timeout(next) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                if pulse.beats(interval) {
                    notifier.tell("WATCHDOG=1");
                }
                next = interval.saturating_sub(began.elapsed());
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It can't panic, and there is nothing to learn if it did.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_path_or_abstract() {
        assert!(address(OsStr::new("/run/systemd/notify")).is_ok());
        #[cfg(target_os = "linux")]
        assert!(address(OsStr::new("@manager")).is_ok());
        let error = address(OsStr::new("vsock:2:1234")).unwrap_err();
        assert!(error.to_string().contains("not a path"), "{error}");
    }
}

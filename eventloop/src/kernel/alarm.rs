//! A wake-up to the microsecond: the poller rounds its timeouts up to a millisecond.

use std::io;
use std::time::{Duration, Instant};

/// Linux: a timer's descriptor among those that are polled.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// Made when it is first needed.
    timer: Option<std::os::fd::OwnedFd>,
    armed: Option<Instant>,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Alarm {
    /// Sees to it that a wait ends at `at`; returns the timeout to wait with.
    pub(super) fn arm(
        &mut self,
        at: Instant,
        timeout: Option<Duration>,
        registry: &mio::Registry,
        key: mio::Token,
    ) -> io::Result<Option<Duration>> {
        use std::os::fd::AsRawFd;

        use mio::Interest;
        use mio::unix::SourceFd;
        use rustix::time::{
            Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
            timerfd_settime,
        };

        if self.armed == Some(at) {
            return Ok(timeout);
        }
        if self.timer.is_none() {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&timer.as_raw_fd()), key, Interest::READABLE)?;
            self.timer = Some(timer);
        }
        let Some(timer) = &self.timer else { return Ok(timeout) };
        let left = at.saturating_duration_since(Instant::now());
        // Zero would disarm it.
        let left = left.max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        self.armed = Some(at);
        Ok(timeout)
    }
}

/// Elsewhere: kqueue's timeouts are precise.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Debug, Default)]
pub(super) struct Alarm;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Alarm {
    /// Returns the timeout to wait with, so that the wait ends at `at`.
    pub(super) fn arm(
        &mut self,
        at: Instant,
        timeout: Option<Duration>,
        _: &mio::Registry,
        _: mio::Token,
    ) -> io::Result<Option<Duration>> {
        let left = at.saturating_duration_since(Instant::now());
        Ok(Some(timeout.map_or(left, |timeout| timeout.min(left))))
    }
}

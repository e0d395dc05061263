//! Output of h2load.

use std::io;
use std::time::Duration;

use bolide_probe::progress::Progress;
use bolide_probe::report::{Failure, Latencies, PhaseReport, Report, Spread};

use super::Settings;
use crate::compat::{responses, within_deviation};

/// Prints as h2load does.
#[derive(Debug)]
pub struct Text {
    requests: u64,
    clients: u64,
    threads: u64,
    duration: Option<Duration>,
    warm_up: Duration,
    /// Progress lines that are already there.
    progressed: u64,
    has_warmed_up: bool,
    has_named_protocol: bool,
}

impl Text {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            requests: settings.requests,
            clients: settings.clients,
            threads: settings.threads,
            duration: settings.duration,
            warm_up: settings.warm_up,
            progressed: 0,
            has_warmed_up: false,
            has_named_protocol: false,
        }
    }

    pub(crate) fn begin(&mut self, out: &mut dyn io::Write, protocol: &str) -> io::Result<()> {
        writeln!(out, "starting benchmark...")?;
        for thread in 0..self.threads {
            let clients = dealt(self.clients, self.threads, thread);
            write!(out, "spawning thread #{thread}: {clients} total client(s). ")?;
            match self.duration {
                Some(duration) => writeln!(
                    out,
                    "Timing-based test with {}s of warm-up time and {}s of main duration for \
                     measurements.",
                    self.warm_up.as_secs_f64(),
                    duration.as_secs_f64()
                )?,
                None => {
                    let requests = dealt(self.requests, self.threads, thread);
                    writeln!(out, "{requests} total requests")?;
                }
            }
        }
        if self.duration.is_some() {
            for thread in 0..self.threads {
                writeln!(out, "Warm-up started for thread #{thread}.")?;
            }
            for percent in steps(dealt(self.clients, self.threads, 0)) {
                writeln!(out, "progress: {percent}% of clients started")?;
            }
        }
        self.name_protocol(out, protocol)?;
        out.flush()
    }

    fn name_protocol(&mut self, out: &mut dyn io::Write, protocol: &str) -> io::Result<()> {
        if protocol.is_empty() || self.has_named_protocol {
            return Ok(());
        }
        self.has_named_protocol = true;
        writeln!(out, "Application protocol: {protocol}")
    }

    pub(crate) fn progress(
        &mut self,
        out: &mut dyn io::Write,
        progress: &Progress,
    ) -> io::Result<()> {
        if self.duration.is_some() {
            if progress.elapsed >= self.warm_up {
                self.warmed_up(out)?;
            }
        } else {
            self.progressed_to(out, progress.completed + progress.failed())?;
        }
        out.flush()
    }

    fn warmed_up(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        if self.has_warmed_up {
            return Ok(());
        }
        self.has_warmed_up = true;
        for thread in 0..self.threads {
            writeln!(out, "Warm-up phase is over for thread #{thread}.")?;
            writeln!(out, "Main benchmark duration is started for thread #{thread}.")?;
        }
        Ok(())
    }

    /// As many lines as the first thread's share of `done` requests calls for.
    fn progressed_to(&mut self, out: &mut dyn io::Write, done: u64) -> io::Result<()> {
        let share = dealt(self.requests, self.threads, 0);
        let own = dealt(done.min(self.requests), self.threads, 0);
        let lines = own / interval(share);
        for percent in steps(share).skip(usize::try_from(self.progressed).unwrap_or(usize::MAX)) {
            if self.progressed >= lines {
                break;
            }
            self.progressed += 1;
            writeln!(out, "progress: {percent}% done")?;
        }
        Ok(())
    }

    pub(crate) fn end(
        &mut self,
        out: &mut dyn io::Write,
        report: &Report,
        phase: &PhaseReport,
    ) -> io::Result<()> {
        if let Some(tls) = &report.tls {
            writeln!(out, "TLS Protocol: {}", tls.version)?;
            writeln!(out, "Cipher: {}", tls.cipher_suite)?;
            if let Some(group) = &tls.group {
                writeln!(out, "Server Temp Key: {}", temporary_key(group))?;
            }
        }
        self.name_protocol(out, &report.protocol)?;
        if self.duration.is_some() {
            self.warmed_up(out)?;
            for thread in 0..self.threads {
                writeln!(
                    out,
                    "Main benchmark duration is over for thread #{thread}. Stopping all clients."
                )?;
                writeln!(out, "Stopped all clients for thread #{thread}")?;
            }
        } else {
            self.progressed_to(out, phase.counts.completed)?;
        }
        self.summary(out, phase)?;
        out.flush()
    }

    /// Nothing could be sent: h2load prints a summary all the same.
    pub(crate) fn refused(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        let none = Latencies::default();
        let total = if self.duration.is_some() { 0 } else { self.requests };
        let counts = [total, 0, 0, 0, total, total, 0].map(|count: u64| count.to_string());
        writeln!(out, "\nfinished in {}, 0.00 req/s, 0B/s", duration(0.0))?;
        requests_line(out, &counts)?;
        writeln!(out, "status codes: 0 2xx, 0 3xx, 0 4xx, 0 5xx")?;
        writeln!(out, "traffic: 0B (0) total, 0B (0) headers (space savings 0.00%), 0B (0) data")?;
        // All clients were alike: each did nothing.
        let rates = Spread { within_deviation: 1.0, ..Spread::default() };
        rows(out, [&none, &none, &none], Some(&rates))
    }

    fn summary(&self, out: &mut dyn io::Write, phase: &PhaseReport) -> io::Result<()> {
        let counts = &phase.counts;
        let failed_with = |kind| phase.failures.get(&kind).copied().unwrap_or(0);
        let unanswered: u64 = phase
            .failures
            .iter()
            .filter(|(kind, _)| !matches!(kind, Failure::Status | Failure::Body))
            .map(|(_, count)| count)
            .sum();
        let right = responses(phase, 200..400);
        let total = if self.duration.is_some() {
            counts.completed + unanswered
        } else {
            self.requests.max(counts.completed)
        };
        let started = if self.duration.is_some() { total } else { counts.started.min(total) };
        let errored = if self.duration.is_some() { unanswered } else { total - counts.completed };
        let done = (counts.completed + unanswered).min(total);
        let elapsed_s = phase.elapsed_ns as f64 / 1e9;
        let measured_s = self.duration.map_or(elapsed_s, |duration| duration.as_secs_f64());
        let per_second = |sum: u64| if measured_s > 0.0 { sum as f64 / measured_s } else { 0.0 };
        let traffic = &phase.traffic;
        let bytes = traffic.wire_received_bytes;
        let savings = match traffic.head_decoded_bytes {
            0 => 0.0,
            decoded => 1.0 - traffic.head_wire_bytes as f64 / decoded as f64,
        };
        writeln!(
            out,
            "\nfinished in {}, {:.2} req/s, {}B/s",
            duration(elapsed_s + self.warm_up.as_secs_f64()),
            per_second(counts.completed),
            bytes_with_unit(per_second(bytes) as u64)
        )?;
        let timeouts = failed_with(Failure::Timeout);
        let line = [total, started, done, right, total - right.min(total), errored, timeouts];
        requests_line(out, &line.map(|count| count.to_string()))?;
        writeln!(
            out,
            "status codes: {} 2xx, {} 3xx, {} 4xx, {} 5xx",
            responses(phase, 200..300),
            responses(phase, 300..400),
            responses(phase, 400..500),
            responses(phase, 500..600)
        )?;
        writeln!(
            out,
            "traffic: {}B ({bytes}) total, {}B ({}) headers (space savings {:.2}%), {}B ({}) data",
            bytes_with_unit(bytes),
            bytes_with_unit(traffic.head_wire_bytes),
            traffic.head_wire_bytes,
            savings.max(0.0) * 100.0,
            bytes_with_unit(traffic.payload_received_bytes),
            traffic.payload_received_bytes
        )?;
        if let Some(quic) = &phase.quic {
            let (sent, received) = (quic.datagrams_sent, quic.datagrams_received);
            writeln!(out, "UDP datagram: {sent} sent, {received} received")?;
        }
        // h2load's connect time has the TLS handshake in it.
        let connect = joined(&phase.times.connect, &phase.times.handshake);
        rows(
            out,
            [&phase.times.latency, &connect, &phase.times.first_byte],
            phase.connection_rates.as_ref(),
        )
    }
}

fn requests_line(out: &mut dyn io::Write, counts: &[String; 7]) -> io::Result<()> {
    let [total, started, done, succeeded, failed, errored, timeout] = counts;
    writeln!(
        out,
        "requests: {total} total, {started} started, {done} done, {succeeded} succeeded, {failed} \
         failed, {errored} errored, {timeout} timeout"
    )
}

fn rows(
    out: &mut dyn io::Write,
    latencies: [&Latencies; 3],
    rates: Option<&Spread>,
) -> io::Result<()> {
    writeln!(out, "                     min         max         mean         sd        +/- sd")?;
    let names = ["time for request", "time for connect", "time to 1st byte"];
    for (name, latencies) in names.into_iter().zip(latencies) {
        let seconds = |ns: f64| duration(ns / 1e9);
        writeln!(
            out,
            "{name}: {:>10}  {:>10}  {:>10}  {:>10}{:>9}%",
            seconds(latencies.min_ns as f64),
            seconds(latencies.max_ns as f64),
            seconds(latencies.mean_ns),
            seconds(latencies.deviation_ns),
            two_digits(within_deviation(latencies) * 100.0)
        )?;
    }
    let rates = rates.copied().unwrap_or_default();
    writeln!(
        out,
        "req/s           : {:>10.2}  {:>10.2}  {:>10.2}  {:>10.2}{:>9}%",
        rates.min,
        rates.max,
        rates.mean,
        rates.deviation,
        two_digits(rates.within_deviation * 100.0)
    )
}

/// Returns what follows something else: means add up exactly; the rest as if both were independent.
fn joined(first: &Latencies, second: &Latencies) -> Latencies {
    if second.count == 0 {
        return first.clone();
    }
    Latencies {
        mean_ns: first.mean_ns + second.mean_ns,
        deviation_ns: first.deviation_ns.hypot(second.deviation_ns),
        min_ns: first.min_ns + second.min_ns,
        max_ns: first.max_ns + second.max_ns,
        ..second.clone()
    }
}

/// The share of a thread when a number is dealt to all.
fn dealt(number: u64, threads: u64, thread: u64) -> u64 {
    number / threads + u64::from(thread < number % threads)
}

/// After how many of `total` a progress line is due.
fn interval(total: u64) -> u64 {
    (total / 10).max(1)
}

/// The percentages of the progress lines.
fn steps(total: u64) -> impl Iterator<Item = u64> {
    let interval = interval(total);
    (1..=total / interval).map(move |step| step * interval * 100 / total)
}

/// Microseconds are whole; the rest has two digits.
fn duration(seconds: f64) -> String {
    if seconds >= 1.0 {
        format!("{}s", two_digits(seconds))
    } else if seconds >= 0.001 {
        format!("{}ms", two_digits(seconds * 1e3))
    } else {
        format!("{}us", (seconds * 1e6) as u64)
    }
}

fn two_digits(value: f64) -> String {
    let hundredths = (value * 100.0).round() as u64;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Without the `B`.
fn bytes_with_unit(bytes: u64) -> String {
    let scaled = |shift: u32, unit: char| {
        format!("{}{unit}", two_digits(bytes as f64 / f64::from(1_u32 << shift)))
    };
    match bytes {
        0..0x400 => bytes.to_string(),
        0x400..0x10_0000 => scaled(10, 'K'),
        0x10_0000..0x4000_0000 => scaled(20, 'M'),
        _ => scaled(30, 'G'),
    }
}

/// The server's key as h2load names it: curves of NIST by their names there, and how long keys are.
fn temporary_key(group: &str) -> &str {
    match group {
        "X25519" => "X25519 253 bits",
        "secp256r1" => "ECDH P-256 256 bits",
        "secp384r1" => "ECDH P-384 384 bits",
        other => other,
    }
}

#[cfg(test)]
mod tests;

//! The client: `bolide measure` as a process at the lab's client, whose JSON is read.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::interrupt::Interrupt;
use crate::process::spawn_on;

/// How often a client that runs is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Part of its JSON that is used here.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Measured {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) goodput_bits_per_second: f64,
    pub(super) congestion_control: Option<String>,
    pub(super) client: Cost,
    pub(super) verdict: Verdict,
    pub(super) error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Cost {
    pub(super) cpu_seconds: f64,
    pub(super) peak_memory_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Verdict {
    pub(super) limit: String,
}

/// Runs `bolide measure` to its end, on `cores`, for at most `time`.
pub(super) fn run(
    command: Command,
    cores: &[usize],
    time: Duration,
    interrupt: &Interrupt,
) -> Result<Measured, String> {
    read(&text(command, cores, time, interrupt)?)
}

/// Runs a client to its end, on `cores`, for at most `time`: its output, if there is any.
pub(super) fn text(
    mut command: Command,
    cores: &[usize],
    time: Duration,
    interrupt: &Interrupt,
) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn_on(command, cores)
        .map_err(|error| format!("the client can't be started: {error}"))?;
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let began = Instant::now();
    let (status, out, errors) = thread::scope(|scope| {
        let read = |pipe: Option<Box<dyn Read + Send>>| {
            let mut text = String::new();
            if let Some(mut pipe) = pipe {
                // What came until then says enough.
                let _ = pipe.read_to_string(&mut text);
            }
            text
        };
        let out = out.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        let errors = errors.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        let out = scope.spawn(move || read(out));
        let errors = scope.spawn(move || read(errors));
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Ok(status),
                Err(error) => break Err(error.to_string()),
                Ok(None) if began.elapsed() > time || interrupt.has_come() => {
                    // It has not ended, so this is no other process.
                    let _ = child.kill();
                    let _ = child.wait();
                    break Err(format!("it took more than {} s", time.as_secs()));
                }
                Ok(None) => thread::sleep(LOOK_INTERVAL),
            }
        };
        (status, out.join().unwrap_or_default(), errors.join().unwrap_or_default())
    });
    interrupt.check()?;
    let status = status?;
    if out.is_empty() {
        let words = errors.lines().next_back().unwrap_or("it said nothing");
        return Err(format!("the client failed ({status}): {}", words.trim()));
    }
    Ok(out)
}

/// Reads its JSON.
fn read(text: &str) -> Result<Measured, String> {
    let measured: Measured = serde_json::from_str(text)
        .map_err(|error| format!("no JSON of `bolide measure`: {error}"))?;
    match &measured.error {
        Some(error) => Err(error.clone()),
        None if measured.bytes == 0 => Err("nothing was transferred".to_owned()),
        None => Ok(measured),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"url":"http://x","protocol":"h2c","bytes":1073741824,"seconds":0.5,
        "goodput_bits_per_second":1.7e10,"congestion_control":"cubic","client":{"cpu_seconds":0.1,
        "cpu_seconds_per_gib":0.1,"peak_memory_bytes":5000000,"busiest_thread":0.2},"server":null,
        "verdict":{"limit":"server","evidence":["full"]},"error":null}"#;

    #[test]
    fn the_json_of_a_measurement_is_read() {
        let measured = read(JSON).unwrap();
        assert_eq!((measured.bytes, measured.verdict.limit.as_str()), (1 << 30, "server"));
        assert_eq!(measured.congestion_control.as_deref(), Some("cubic"));
    }

    #[test]
    fn what_failed_is_said() {
        let failed = JSON.replace("\"error\":null", "\"error\":\"404\"");
        assert_eq!(read(&failed).unwrap_err(), "404");
        let empty = JSON.replace("\"bytes\":1073741824", "\"bytes\":0");
        assert!(read(&empty).unwrap_err().contains("nothing was transferred"));
        assert!(read("{}").unwrap_err().contains("no JSON of `bolide measure`"));
    }

    #[test]
    fn a_client_that_does_not_end_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("100");
        let time = Duration::from_millis(20);
        let error = run(command, &[], time, &Interrupt::default()).unwrap_err();
        assert!(error.contains("took more than"), "{error}");
    }
}

//! The series and the percentiles as one long table (RFC 4180): a row for each figure.

use std::io::{self, Write};

use bolide_probe::report::{Latencies, PhaseReport, Report};

use super::text::model;

const HEAD: &str = "phase,model,kind,at_ns,name,value";

/// Writes the table.
///
/// `kind` is `count`, `sample`, `latency`, `first_byte`, `first_event`, `event_gap`, `connect` or `handshake`; `at_ns` is set for
/// samples only, counted from the start of the phase; durations are in nanoseconds.
///
/// # Errors
///
/// Those of `out`.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEAD}\r")?;
    for phase in &report.phases {
        write_phase(phase, out)?;
    }
    out.flush()
}

fn write_phase(report: &PhaseReport, out: &mut dyn Write) -> io::Result<()> {
    let start = format!("{},{}", field(&report.phase.name), field(model(&report.phase.load)));
    let counts = &report.counts;
    for (name, count) in [
        ("elapsed_ns", report.elapsed_ns),
        ("due", counts.due),
        ("started", counts.started),
        ("completed", counts.completed),
        ("succeeded", counts.succeeded),
        ("failed", counts.failed),
        ("connections", counts.connections),
    ] {
        writeln!(out, "{start},count,,{name},{count}\r")?;
    }
    for (status, count) in &report.statuses {
        writeln!(out, "{start},count,,status_{status},{count}\r")?;
    }
    if let Some(events) = &report.kinds.events {
        for (name, count) in
            [("events", events.events), ("streams", events.streams), ("stalls", events.stalls)]
        {
            writeln!(out, "{start},count,,{name},{count}\r")?;
        }
        write_latencies(&format!("{start},first_event"), &events.first, out)?;
        write_latencies(&format!("{start},event_gap"), &events.gap, out)?;
    }
    if let Some(websocket) = &report.kinds.websocket {
        for (name, count) in [("compressed", websocket.compressed), ("pushed", websocket.pushed)] {
            writeln!(out, "{start},count,,{name},{count}\r")?;
        }
        for (code, count) in &websocket.closes {
            writeln!(out, "{start},count,,close_{code},{count}\r")?;
        }
        write_latencies(&format!("{start},upgrade"), &websocket.upgrade, out)?;
    }
    for (kind, latencies) in [
        ("latency", &report.times.latency),
        ("first_byte", &report.times.first_byte),
        ("connect", &report.times.connect),
        ("handshake", &report.times.handshake),
    ] {
        write_latencies(&format!("{start},{kind}"), latencies, out)?;
    }
    for sample in &report.course.series {
        let start = format!("{start},sample,{}", sample.at_ns);
        writeln!(out, "{start},rate,{}\r", sample.rate)?;
        for (name, value) in [
            ("p50_ns", sample.p50_ns),
            ("p99_ns", sample.p99_ns),
            ("failed", sample.failed),
            ("in_flight", sample.in_flight),
        ] {
            writeln!(out, "{start},{name},{value}\r")?;
        }
        writeln!(out, "{start},generator_cores,{}\r", sample.generator_cores)?;
        if let Some(cores) = sample.server_cores {
            writeln!(out, "{start},server_cores,{cores}\r")?;
        }
    }
    Ok(())
}

fn write_latencies(start: &str, all: &Latencies, out: &mut dyn Write) -> io::Result<()> {
    if all.count == 0 {
        return Ok(());
    }
    writeln!(out, "{start},,count,{}\r", all.count)?;
    writeln!(out, "{start},,mean,{}\r", all.mean_ns)?;
    writeln!(out, "{start},,min,{}\r", all.min_ns)?;
    for (name, ns) in &all.percentiles_ns {
        writeln!(out, "{start},,{name},{ns}\r")?;
    }
    writeln!(out, "{start},,max,{}\r", all.max_ns)
}

/// In quotes where it has to be.
fn field(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use bolide_probe::plan::Load;

    use super::*;
    use crate::fabricated::{OPEN_1000, quiet, report};

    #[test]
    fn each_figure_has_a_row_of_six_fields() {
        let mut closed = quiet(Load::Closed);
        closed.phase.name = "closed loop, 10 \"in flight\"".into();
        let mut out = Vec::new();
        write(&report(vec![closed, quiet(OPEN_1000)]), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines[0], HEAD);
        let quoted = "\"closed loop, 10 \"\"in flight\"\"\",closed loop";
        assert_eq!(lines[1], format!("{quoted},count,,elapsed_ns,1000000000"));
        for line in lines.iter().filter(|line| line.starts_with("measured")) {
            assert_eq!(line.split(',').count(), 6, "{line}");
        }
        for line in [
            "measured,open loop,count,,status_200,1000",
            "measured,open loop,sample,100000000,rate,990",
            "measured,open loop,sample,100000000,server_cores,0.4",
            "measured,open loop,latency,,max,1000000",
        ] {
            assert!(lines.contains(&line), "{line}: {text}");
        }
        assert!(!text.contains("handshake"), "there was none");
        assert!(!text.contains("200000000,server_cores"), "it was not known then");
    }
}

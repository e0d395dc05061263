//! Labs and figures for the terminal.

use serde::Serialize;

use crate::iperf::Outcome;
use crate::lab::{Carried, Lab, Live, Rate, Report};
use crate::quantity::{shown_rate, shown_time};
use crate::spec::{DEFAULT_NAME, Node, Spec};
use crate::text_table::aligned;

/// A lab as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Described<'a> {
    spec: &'a Spec,
    keeper: u32,
    kept: bool,
    report: Option<&'a Report>,
    complaints: Vec<String>,
    lines: Option<Live>,
}

impl<'a> Described<'a> {
    pub(super) fn of(lab: &'a Lab, kept: bool) -> Self {
        Self {
            spec: lab.spec(),
            keeper: lab.keeper(),
            kept,
            report: lab.report(),
            complaints: lab.report().map(Report::complaints).unwrap_or_default(),
            lines: lab.live(),
        }
    }
}

/// A lab: where its nodes are, what was asked, what was measured, what its lines have done.
pub(super) fn lab(lab: &Lab, kept: bool) -> String {
    let spec = lab.spec();
    let state = match (kept, spec.rootless) {
        (false, _) => "stale: its keeper has exited; the next `net up` removes it".to_owned(),
        (true, true) => format!("in a user namespace, kept by process {}", lab.keeper()),
        (true, false) => format!("kept by process {}", lab.keeper()),
    };
    let mut text = format!(
        "{}   {state}\n  client {} – {} router {} – {} server   congestion control {}\n",
        spec.name,
        spec.left.host(),
        spec.left.router(),
        spec.right.router(),
        spec.right.host(),
        spec.congestion
    );
    let row = |words: [&str; 5]| words.map(str::to_owned).to_vec();
    let mut rows = vec![row(["", "requested", "measured", "shaper", "at most"])];
    let report = lab.report();
    if let Some(report) = report {
        let asked = if spec.down.delays() || spec.up.delays() || spec.down.rate.is_some() {
            shown_time(report.rtt_asked)
        } else {
            "nothing".to_owned()
        };
        rows.push(row(["  round trip", &asked, &shown_time(report.rtt), "", ""]));
    }
    for (name, shape, rate) in [
        ("  download", &spec.down, report.map(|report| &report.down)),
        ("  upload", &spec.up, report.map(|report| &report.up)),
    ] {
        let measured =
            rate.map_or_else(|| "not measured".to_owned(), |rate| shown_rate(rate.measured));
        let shaper = rate.map_or("", |rate| rate.shaper.name());
        rows.push(row([name, &shape.shown(), &measured, shaper, &most(rate)]));
    }
    text += &aligned(&rows, &[1, 2, 3, 4]);
    if let Some(live) = lab.live().filter(|_| kept) {
        for (name, carried) in [("download", live.down), ("upload", live.up)] {
            let carried = carried.filter(|carried| carried.out > 0);
            text += &carried.map_or_else(String::new, |carried| line(name, &carried));
        }
    }
    text
}

fn most(rate: Option<&Rate>) -> String {
    rate.and_then(|rate| rate.line_at_most)
        .map_or_else(String::new, |most| format!("{} through the line", shown_rate(most)))
}

/// Returns what a delay line has done.
fn line(name: &str, carried: &Carried) -> String {
    let counts = carried.counts;
    let mean = carried.late_ns.checked_div(carried.out).unwrap_or(0);
    let mut text = format!(
        "  the delay line of the {name} carried {} packets; late by {} on average, {} at most",
        counts.carried,
        shown_time(std::time::Duration::from_nanos(mean)),
        shown_time(std::time::Duration::from_nanos(carried.latest_ns)),
    );
    for (count, what) in [
        (counts.queue_full, "dropped: queue full"),
        (counts.codel, "dropped by CoDel"),
        (counts.lost, "lost as requested"),
        (counts.memory, "dropped: out of memory"),
        (carried.refused, "refused by the kernel"),
    ] {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    text + "\n"
}

/// Returns what to do with a lab.
pub(super) fn hint(spec: &Spec) -> String {
    let name =
        if spec.name == DEFAULT_NAME { String::new() } else { format!(" --name {}", spec.name) };
    format!(
        "Ready: bolide net exec{name} {} -- COMMAND; bolide net down{name}\n",
        Node::Client.name()
    )
}

/// Raw TCP.
pub(super) fn iperf(lab: &Lab, outcome: &Outcome) -> String {
    let cores = outcome.cores.map_or_else(
        || "one core for both".to_owned(),
        |[server, client]| format!("server on core {server}, client on core {client}"),
    );
    let heads = [
        "raw TCP",
        "goodput",
        "retransmits",
        "sender CPU-s/GiB",
        "receiver CPU-s/GiB",
        "saturated",
    ];
    let figures = [
        outcome.direction.clone(),
        shown_rate(outcome.bits_per_second),
        outcome.retransmits.map_or_else(|| "?".to_owned(), |count| count.to_string()),
        format!("{:.3}", outcome.sender_cpu_seconds_per_gib),
        format!("{:.3}", outcome.receiver_cpu_seconds_per_gib),
        outcome.full.clone(),
    ];
    let rows = [heads.map(str::to_owned).to_vec(), figures.to_vec()];
    format!(
        "lab {}, congestion control {}, 1 MiB writes, {:.1} s, {cores}\n{}",
        lab.spec().name,
        outcome.congestion_control,
        outcome.seconds,
        aligned(&rows, &[])
    )
}

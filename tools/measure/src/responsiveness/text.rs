//! The score, for people.

use std::fmt::Write as _;

use bolide_semantics::in_one_line;

use super::{Report, Scored};
use crate::output::speed;

/// Returns what was found, in lines.
pub fn summary(report: &Report) -> String {
    let mut text = format!("{}  responsiveness (draft-ietf-ippm-responsiveness-09)\n", report.url);
    for (name, scored) in [("download", &report.download), ("upload", &report.upload)] {
        if let Some(scored) = scored {
            // Writing to a string can't fail.
            let _ = write(&mut text, name, scored);
        }
    }
    if let Some(error) = &report.error {
        let _ = writeln!(text, "  failed    {}", in_one_line(error));
    }
    text
}

fn write(text: &mut String, name: &str, scored: &Scored) -> std::fmt::Result {
    let Scored { score, means, .. } = scored;
    let plural = if scored.connections == 1 { "" } else { "s" };
    writeln!(
        text,
        "  {name:<9} {:.0} RPM, {}; confidence {}; {} over {} connection{plural}",
        score.rpm,
        scored.class,
        scored.confidence.name(),
        speed(scored.goodput_bits_per_second),
        scored.connections,
    )?;
    let tls = means.tls_foreign_ms.map(|ms| format!("TLS {ms:.2} ms, ")).unwrap_or_default();
    writeln!(
        text,
        "            new connections {:.0} RPM: TCP {:.2} ms, {tls}request {:.2} ms",
        score.foreign_rpm, means.tcp_foreign_ms, means.http_foreign_ms
    )?;
    writeln!(
        text,
        "            loaded ones {:.0} RPM: request {:.2} ms ({} probes in all, {} intervals)",
        score.loaded_rpm, means.http_loaded_ms, scored.probes, scored.intervals
    )
}

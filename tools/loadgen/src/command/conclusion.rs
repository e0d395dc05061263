//! Results of a run: files and an exit code.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bolide_probe::report::{Failure, PartsReport, Report};

use crate::options::{Outputs, Threshold};
use crate::output::{csv, hdr_log, html, junit};

/// The files that were asked for, open since before the run: a path that can't be written is a mistake
/// before anything is sent, not after an hour.
pub(super) struct Files {
    json: Option<(PathBuf, Box<dyn Write>)>,
    csv: Option<(PathBuf, File)>,
    hdr: Option<(PathBuf, File)>,
    html: Option<(PathBuf, File)>,
    junit: Option<(PathBuf, File)>,
}

impl Files {
    pub(super) fn open(outputs: &Outputs) -> Result<Self, String> {
        let open = |option: &str, path: &Option<PathBuf>| {
            path.as_ref()
                .map(|path| {
                    File::create(path)
                        .map(|file| (path.clone(), file))
                        .map_err(|error| format!("{option} {}: {error}", path.display()))
                })
                .transpose()
        };
        let json = match &outputs.json {
            Some(path) if is_standard_output(path) => {
                Some((path.clone(), Box::new(io::stdout()) as Box<dyn Write>))
            }
            path => open("--json", path)?
                .map(|(path, file)| (path, Box::new(BufWriter::new(file)) as Box<dyn Write>)),
        };
        Ok(Self {
            json,
            csv: open("--csv", &outputs.csv)?,
            hdr: open("--hdr", &outputs.hdr)?,
            html: open("--html", &outputs.html)?,
            junit: open("--junit", &outputs.junit)?,
        })
    }

    pub(super) fn json_is_standard_output(&self) -> bool {
        self.json.as_ref().is_some_and(|(path, _)| is_standard_output(path))
    }

    /// Writes them all; the first that fails is told, after the others were tried.
    pub(super) fn write(
        &mut self,
        report: &Report,
        thresholds: &[Threshold],
        summary: &str,
    ) -> Result<(), String> {
        let mut results = Vec::new();
        if let Some((path, out)) = &mut self.json {
            let written = serde_json::to_writer_pretty(&mut *out, report)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(out))
                .and_then(|()| out.flush());
            results.push((path.clone(), written));
        }
        if let Some((path, file)) = &mut self.csv {
            results.push((path.clone(), csv::write(report, &mut BufWriter::new(file))));
        }
        if let Some((path, file)) = &mut self.hdr {
            results.push((path.clone(), hdr_log::write(report, file)));
        }
        if let Some((path, file)) = &mut self.html {
            let written = html::write(report, summary, &mut BufWriter::new(file));
            results.push((path.clone(), written));
        }
        if let Some((path, file)) = &mut self.junit {
            let written = junit::write(report, thresholds, &mut BufWriter::new(file));
            results.push((path.clone(), written));
        }
        results.into_iter().try_for_each(|(path, result)| {
            result.map_err(|error| format!("{} can't be written: {error}", path.display()))
        })
    }
}

fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// 4 when too many parts were lost, 3 when a condition held, 1 when responses were wrong or missing, else 0.
///
/// A search for the knee overloads the server on purpose: there, requests that were lost or late don't
/// count against it, but wrong responses do, and a search that found nothing failed.
pub(super) fn exit_code(report: &Report, broken: &[String]) -> u8 {
    if report.parts.as_ref().is_some_and(PartsReport::has_lost_too_many) {
        return super::LOST;
    }
    if !broken.is_empty() {
        return super::BROKEN;
    }
    let is_search = report.knee.is_some();
    let is_wrong = |kind: Failure| {
        let is_wrong = matches!(
            kind,
            Failure::Status
                | Failure::Body
                | Failure::Fields
                | Failure::Trailers
                | Failure::Protocol
                | Failure::Capture
                | Failure::Redirect
        );
        !is_search || is_wrong
    };
    let wrong = report.phases.iter().any(|phase| {
        (phase.counts.failed > 0 && !is_search)
            || phase.failures.iter().any(|(kind, count)| *count > 0 && is_wrong(*kind))
    });
    let none = report.phases.iter().all(|phase| phase.counts.completed == 0);
    let found_nothing = report.knee.is_some_and(|knee| knee.rate.is_none());
    u8::from(wrong || none || found_nothing || report.server_died_after_ns.is_some())
}

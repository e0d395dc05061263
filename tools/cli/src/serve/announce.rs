//! Output of the start on the standard output.

use std::io::{self, IsTerminal, Write};

use bolide::server::Running;
use bolide_acme::NameState;
use bolide_eventloop::FileLimit;

use super::live::{Opened, secured};
use super::plan::Plan;
use super::privileges::Identity;
use super::{counted, issuance};
use crate::development::{self, Made};

/// With fewer file descriptors than this, in number, the start warns: each connection takes one, and one to an
/// upstream another.
const FEW_FILES_COUNT: u64 = 4096;

/// Facts to announce next to the plan.
#[derive(Debug)]
pub(super) struct Announced<'a> {
    pub(super) running: &'a Running,
    pub(super) plan: &'a Plan,
    pub(super) listeners: &'a [Opened],
    /// The names whose certificates are issued while it runs.
    pub(super) issued: &'a [NameState],
    pub(super) workers: usize,
    pub(super) files: Option<FileLimit>,
    pub(super) admin: Option<String>,
    pub(super) user: Option<&'a Identity>,
}

/// Prints what listens where, and the command to try it.
pub(super) fn announce(announced: &Announced<'_>) -> io::Result<()> {
    let Announced { running, plan, listeners, issued, workers, files, admin, user } = announced;
    let mut out = io::stdout().lock();
    let path = plan.routes.path_to_try();
    let made = secured(listeners).find_map(|one| one.material.made.as_ref());
    let trust = match made {
        None => String::new(),
        Some(Made::SelfSigned) => " --insecure".to_owned(),
        Some(Made::By(ca)) => format!(" --cacert {}", development::quoted(ca)),
    };
    let trust = trust.as_str();
    let served = running.addresses().into_iter().zip(&plan.listen).zip(running.http3());
    for ((address, listen), http3) in served {
        match (address, &listen.tls) {
            (Some(address), None) => writeln!(
                out,
                "http://{address}   HTTP/1.1 and h2c          curl http://{address}{path}"
            )?,
            (Some(address), Some(_)) => {
                let command = format!("curl{trust} https://{address}{path}");
                let versions =
                    if *http3 { "HTTP/3, HTTP/2, HTTP/1.1" } else { "HTTP/2 and HTTP/1.1" };
                writeln!(out, "https://{address}  {versions:<24}  {command}")?;
            }
            (None, tls) => {
                let socket = listen.address.trim_start_matches("unix:");
                let (trust, scheme) = if tls.is_some() { (trust, "https") } else { ("", "http") };
                let command =
                    format!("curl{trust} --unix-socket {socket} {scheme}://localhost{path}");
                writeln!(out, "{}  {command}", listen.address)?;
            }
        }
    }
    for line in certificates(listeners).into_iter().chain(issued.iter().map(issuance::line)) {
        writeln!(out, "{line}")?;
    }
    if let Some(FileLimit { before, after }) = files {
        let raised = if before < after { format!(", raised from {before}") } else { String::new() };
        writeln!(out, "File descriptors: {after}{raised}")?;
        if *after < FEW_FILES_COUNT {
            eprintln!(
                "bolide: only {after} file descriptors, and each connection takes one: raise the hard limit \
                 (LimitNOFILE= of a unit, `ulimit -Hn`)"
            );
        }
    }
    if let Some(user) = user {
        writeln!(out, "User: {user} (root dropped)")?;
    }
    if let Some(admin) = admin {
        writeln!(out, "{admin}")?;
    }
    if out.is_terminal() && plan.observe.access_log.is_none() {
        writeln!(out, "Requests are not logged; see them here with --access-log -")?;
    }
    writeln!(out, "Ready: {}; stop with Ctrl-C", counted(*workers, "worker"))?;
    out.flush()
}

/// A line for each certificate, once.
fn certificates(listeners: &[Opened]) -> Vec<String> {
    let mut lines = Vec::new();
    for one in secured(listeners) {
        let kind = match &one.material.made {
            None => "from file",
            Some(Made::SelfSigned) => "self-signed for this run",
            Some(Made::By(_)) => "for development",
        };
        for (fingerprint, names) in one.material.fingerprints() {
            let names = match &names[..] {
                _ if one.material.made.is_some() => String::new(),
                [] => " (no DNS name in its subjectAltName: clients that check the name reject it)"
                    .to_owned(),
                names => format!(" ({})", names.join(", ")),
            };
            let line = format!("Certificate: {kind}, SHA-256 {fingerprint}{names}");
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    if let Some(Made::By(ca)) = secured(listeners).find_map(|one| one.material.made.as_ref()) {
        let command = development::trust_command(ca);
        let command =
            command.map_or(String::new(), |command| format!("; trust it once: {command}"));
        lines.push(format!("Development CA: {}{command}", ca.display()));
    }
    lines
}

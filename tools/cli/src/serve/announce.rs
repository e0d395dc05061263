//! What the start says on the standard output.

use std::io::{self, Write};

use bolide::Running;
use bolide_eventloop::FileLimit;

use super::counted;
use super::live::Secured;
use super::plan::Plan;
use super::privileges::Identity;

/// With fewer file descriptors than this, in number, the start warns: each connection takes one, and one to an
/// upstream another.
const FEW_FILES_COUNT: u64 = 4096;

/// What there is to say beside the plan.
#[derive(Debug)]
pub(super) struct Announced<'a> {
    pub(super) running: &'a Running,
    pub(super) plan: &'a Plan,
    pub(super) secured: &'a [Secured],
    pub(super) workers: usize,
    pub(super) files: Option<FileLimit>,
    pub(super) admin: Option<String>,
    pub(super) user: Option<&'a Identity>,
}

/// Prints what listens where, and the command to try it.
pub(super) fn announce(announced: &Announced<'_>) -> io::Result<()> {
    let Announced { running, plan, secured, workers, files, admin, user } = announced;
    let mut out = io::stdout().lock();
    let insecure =
        if secured.iter().any(|one| one.material.self_signed) { " --insecure" } else { "" };
    for (address, listen) in running.addresses().into_iter().zip(&plan.listen) {
        match (address, &listen.tls) {
            (Some(address), None) => writeln!(
                out,
                "http://{address}   HTTP/1.1 and h2c        curl http://{address}/ping"
            )?,
            (Some(address), Some(_)) => {
                let command = format!("curl{insecure} https://{address}/ping");
                writeln!(out, "https://{address}  HTTP/2 and HTTP/1.1     {command}")?;
            }
            (None, tls) => {
                let path = listen.address.trim_start_matches("unix:");
                let scheme = if tls.is_some() { "https" } else { "http" };
                let command = format!("curl --unix-socket {path} {scheme}://localhost/ping");
                writeln!(out, "{}  {command}", listen.address)?;
            }
        }
    }
    for one in *secured {
        let self_signed = one.material.self_signed;
        let kind = if self_signed { "self-signed for this run" } else { "from file" };
        for (fingerprint, names) in one.material.fingerprints() {
            let names =
                if self_signed { String::new() } else { format!(" ({})", names.join(", ")) };
            writeln!(out, "Certificate: {kind}, SHA-256 {fingerprint}{names}")?;
        }
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
        writeln!(out, "User: {user}, for good")?;
    }
    if let Some(admin) = admin {
        writeln!(out, "{admin}")?;
    }
    writeln!(out, "Ready: {}; stop with Ctrl-C", counted(*workers, "worker"))?;
    out.flush()
}

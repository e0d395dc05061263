//! Foreign test tools that come from language registries, or from a newer system's packages than this one has. They are
//! installed under `target/tools`, where the tests look first.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::report::Report;

/// The conformance suite for HTTP/2, as a Go module.
const H2SPEC: &str = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";

/// The CA that ACME clients are tested with, and the name server that it asks.
const PEBBLE: [&str; 2] = [
    "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1",
    "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@v2.10.1",
];

/// The reference client of ndt7: its module and all that it needs are pinned in `clients/ndt7`.
const NDT7_CLIENT: &str = "github.com/m-lab/ndt7-client-go/cmd/ndt7-client";

/// `cargo xtask tools`
pub(crate) fn install(_: &[String]) -> ExitCode {
    let mut report = Report::default();
    every(&mut report, &crate::root());
    report.finish()
}

/// Installs what is missing.
pub(crate) fn every(report: &mut Report, root: &Path) {
    let tools = root.join("target/tools");
    let binaries = tools.join("bin");
    let clients = root.join("tests/e2e/clients");
    if !binaries.join("h2spec").exists() {
        let mut command = Command::new("go");
        command.args(["install", H2SPEC]).env("GOBIN", &binaries).env("GOFLAGS", "");
        report.step("tools: h2spec", command);
    }
    if !binaries.join("pebble-challtestsrv").exists() {
        let mut command = Command::new("go");
        command.arg("install").args(PEBBLE).env("GOBIN", &binaries).env("GOFLAGS", "");
        report.step("tools: pebble", command);
    }
    if clients.join("ndt7").exists() && !binaries.join("ndt7-client").exists() {
        let mut command = Command::new("go");
        command
            .args(["build", "-buildvcs=false", "-o"])
            .arg(binaries.join("ndt7-client"))
            .arg(NDT7_CLIENT)
            .current_dir(clients.join("ndt7"));
        report.step("tools: ndt7-client", command);
    }
    if clients.join("go").exists() {
        let mut command = Command::new("go");
        command
            .args(["build", "-buildvcs=false", "-o"])
            .arg(binaries.join("go-client"))
            .arg(".")
            .current_dir(clients.join("go"));
        report.step("tools: Go client", command);
    }
    if clients.join("quiche").exists() {
        let mut command = Command::new("cargo");
        command
            .args(["install", "--quiet", "--locked", "--debug", "--path"])
            .arg(clients.join("quiche"))
            .arg("--root")
            .arg(&tools)
            .arg("--target-dir")
            .arg(tools.join("quiche"));
        report.step("tools: client and server of quiche", command);
    }
    let newer = tools.join("debian-13");
    if !newer.join("run").exists() {
        let mut command = Command::new("sh");
        command
            .arg(root.join("contenders/debian-13/install.sh"))
            .arg(&newer)
            .args(["prometheus", "curl"]);
        report.step("tools: Prometheus and curl of Debian 13", command);
    }
    let requirements = clients.join("python/requirements.txt");
    let environment = tools.join("python");
    // What is installed stands in the environment: it is made anew when something else is wanted.
    let wanted = std::fs::read_to_string(&requirements).unwrap_or_default();
    let present = std::fs::read_to_string(environment.join("ready")).unwrap_or_default();
    if wanted != present {
        let mut command = Command::new("python3");
        command.args(["-m", "venv"]).arg(&environment);
        report.step("tools: Python environment", command);
        let mut command = Command::new(environment.join("bin/pip"));
        command.args(["install", "--quiet", "-r"]).arg(&requirements);
        report.step("tools: Python packages", command);
        let installed = environment.join("lib").exists() && has_packages(&environment);
        if installed && std::fs::write(environment.join("ready"), wanted).is_err() {
            println!("{} can't be written", environment.display());
        }
    }
}

fn has_packages(environment: &Path) -> bool {
    let mut command = Command::new(environment.join("bin/python"));
    command
        .args(["-c", "import aioquic, h2, httpx, opentelemetry.proto, pycurl, websockets"])
        .status()
        .is_ok_and(|status| status.success())
}

//! The Autobahn test suite for WebSocket: its fuzzing client against `bolide serve`, and our codec as a client
//! against its fuzzing server. It needs Python 2.7, which is why it is no part of `cargo xtask ci`. `BOLIDE_BIN` names
//! another program than the release build.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::builds;
use crate::manifest::cargo;
use crate::report::Report;

/// The suite.
const SUITE: &str = "autobahntestsuite==25.10.1";

/// The last version that makes environments for Python 2.7.
const VIRTUALENV: &str = "virtualenv==20.15.1";

/// The cases, in parts that take about as long as each other: they run side by side.
const PARTS: &[&[&str]] = &[
    &["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "9.*", "10.*", "12.1.*"],
    &["12.2.*", "12.3.*", "12.4.*", "12.5.*"],
    &["13.*"],
];

/// Results of a case that is as it should be. `NON-STRICT` is neither right nor wrong for it.
const RIGHT: &[&str] = &["OK", "INFORMATIONAL", "NON-STRICT"];

/// How long the suite's server may take to listen.
const START: Duration = Duration::from_secs(60);

/// A process that ends with us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// `cargo xtask autobahn [CASE…]`
pub(crate) fn run(cases: &[String]) -> ExitCode {
    let root = crate::root();
    let mut report = Report::default();
    let environment = root.join("target/tools/autobahn");
    if !install(&mut report, &environment) {
        return report.finish();
    }
    let named = std::env::var_os("BOLIDE_BIN").map(PathBuf::from);
    let server = named.unwrap_or_else(|| builds::built(&mut report, &root, "release"));
    let mut build = Command::new(cargo());
    build.args(["build", "--package", "bolide-conformance", "--example"]);
    build.arg("autobahn_client").current_dir(&root);
    report.step("client", build);
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), PathBuf::from);
    let client = target.join("debug/examples/autobahn_client");
    let parts: Vec<Vec<String>> = if cases.is_empty() {
        PARTS.iter().map(|part| part.iter().map(|case| (*case).to_owned()).collect()).collect()
    } else {
        vec![cases.to_vec()]
    };
    let suite =
        Suite { program: environment.join("bin/wstest"), directory: environment.join("runs") };
    report.check("autobahn: its client, our server", || suite.try_server(&server, &parts));
    report.check("autobahn: our client, its server", || suite.try_client(&client, &parts));
    report.finish()
}

/// Installs the suite, unless it is there. Whether it is.
fn install(report: &mut Report, environment: &Path) -> bool {
    let mark = environment.join("ready");
    if std::fs::read_to_string(&mark).is_ok_and(|ready| ready == SUITE) {
        return true;
    }
    let Some(python) = python() else {
        report.check("autobahn: Python 2.7", || {
            vec![
                "the suite runs on Python 2.7 alone, and neither PATH nor ~/.pyenv/versions has one \
                 (`pyenv install 2.7.18` makes one)"
                    .to_owned(),
            ]
        });
        return false;
    };
    let maker = environment.with_file_name("autobahn-virtualenv");
    let mut command = Command::new(&python);
    command.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"]);
    report.step("autobahn: virtualenv", with(command, &[maker.as_os_str(), VIRTUALENV.as_ref()]));
    let mut command = Command::new(&python);
    command.env("PYTHONPATH", &maker).args(["-m", "virtualenv", "--quiet"]);
    report.step("autobahn: environment", with(command, &[environment.as_os_str()]));
    let mut command = Command::new(environment.join("bin/pip"));
    command.args(["install", "--quiet", SUITE]);
    report.step("autobahn: the suite", command);
    environment.join("bin/wstest").exists() && std::fs::write(mark, SUITE).is_ok()
}

fn with(mut command: Command, arguments: &[&std::ffi::OsStr]) -> Command {
    command.args(arguments);
    command
}

/// Python 2.7, on the path or among those of pyenv.
fn python() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<PathBuf> =
        std::env::split_paths(&path).map(|directory| directory.join("python2.7")).collect();
    let home = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv")));
    if let Some(versions) = home.and_then(|home| std::fs::read_dir(home.join("versions")).ok()) {
        candidates.extend(versions.flatten().map(|version| version.path().join("bin/python2.7")));
    }
    // One that pyenv has put on the path for versions that are not chosen only says so.
    candidates.into_iter().find(|python| {
        let mut version = Command::new(python);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    })
}

/// The suite, installed.
struct Suite {
    program: PathBuf,
    /// Directory of its reports.
    directory: PathBuf,
}

impl Suite {
    /// The suite's clients against `bolide serve`.
    fn try_server(&self, server: &Path, parts: &[Vec<String>]) -> Vec<String> {
        let (_server, authority) = match serve(server) {
            Ok(started) => started,
            Err(why) => return vec![why],
        };
        let started: Result<Vec<_>, String> = parts
            .iter()
            .enumerate()
            .map(|(part, cases)| {
                let name = format!("server-{part}");
                let servers = json!([{ "agent": "bolide", "url": format!("ws://{authority}/ws") }]);
                let child =
                    self.start(&name, "fuzzingclient", &json!({ "servers": servers }), cases)?;
                Ok((name, child))
            })
            .collect();
        let started = match started {
            Ok(started) => started,
            Err(why) => return vec![why],
        };
        let mut findings = Vec::new();
        for (name, mut child) in started {
            match child.0.wait() {
                Ok(status) if status.success() => self.judge(&name, &mut findings),
                ended => findings.push(format!("the suite ended badly ({name}): {ended:?}")),
            }
        }
        findings
    }

    /// Our client against the suite's servers.
    fn try_client(&self, client: &Path, parts: &[Vec<String>]) -> Vec<String> {
        let ports = match free_ports(parts.len()) {
            Ok(ports) => ports,
            Err(error) => return vec![format!("no free port: {error}")],
        };
        let tried = |part: usize, port: u16, cases: &[String]| -> Result<String, String> {
            let name = format!("client-{part}");
            let url = format!("ws://127.0.0.1:{port}");
            let _server = self.start(&name, "fuzzingserver", &json!({ "url": url }), cases)?;
            let latest = Instant::now() + START;
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                if Instant::now() > latest {
                    return Err(format!("the suite's server does not listen ({name})"));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            let mut command = Command::new(client);
            match command.arg(format!("127.0.0.1:{port}")).status() {
                Ok(status) if status.success() => Ok(name),
                ended => Err(format!("{} ended badly ({name}): {ended:?}", client.display())),
            }
        };
        let mut findings = Vec::new();
        let tried: Vec<_> = std::thread::scope(|scope| {
            let tried = &tried;
            let parts = parts.iter().zip(ports).enumerate();
            let running: Vec<_> = parts
                .map(|(part, (cases, port))| scope.spawn(move || tried(part, port, cases)))
                .collect();
            running.into_iter().map(|one| one.join().expect("nothing in it panics")).collect()
        });
        for one in tried {
            match one {
                Ok(name) => self.judge(&name, &mut findings),
                Err(why) => findings.push(why),
            }
        }
        findings
    }

    /// Starts one part of the suite. Its talk goes to a file.
    fn start(
        &self,
        name: &str,
        mode: &str,
        facts: &Value,
        cases: &[String],
    ) -> Result<Running, String> {
        let directory = self.directory.join(name);
        // The reports of an earlier run.
        drop(std::fs::remove_dir_all(&directory));
        let mut plan = facts.clone();
        plan["outdir"] = directory.join("reports").display().to_string().into();
        plan["cases"] = json!(cases);
        plan["exclude-cases"] = json!([]);
        plan["exclude-agent-cases"] = json!({});
        let file = directory.join("plan.json");
        let log = std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(&file, plan.to_string()))
            .and_then(|()| std::fs::File::create(directory.join("log.txt")));
        let log = log.map_err(|error| format!("{}: {error}", directory.display()))?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let child = Command::new(&self.program)
            // Its pages for browsers would all want port 8080.
            .args(["--webport", "0", "--mode", mode, "--spec"])
            .arg(&file)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn();
        child.map(Running).map_err(|error| format!("{}: {error}", self.program.display()))
    }

    /// Reads what the suite says of a part.
    fn judge(&self, name: &str, findings: &mut Vec<String>) {
        let directory = self.directory.join(name).join("reports");
        let index = std::fs::read_to_string(directory.join("index.json")).unwrap_or_default();
        match judge(&index) {
            Ok((count, wrong)) => {
                println!("{name}: {count} cases, {} wrong ({})", wrong.len(), directory.display());
                findings.extend(wrong.into_iter().map(|what| format!("{name}: {what}")));
            }
            Err(why) => findings.push(format!("{name}: {why}: {}", directory.display())),
        }
    }
}

/// How many cases there were, and those that are not as they should be.
fn judge(index: &str) -> Result<(usize, Vec<String>), String> {
    let index: Value =
        serde_json::from_str(index).map_err(|error| format!("no report can be read ({error})"))?;
    let cases = index["bolide"].as_object().filter(|cases| !cases.is_empty());
    let cases = cases.ok_or("the report has no case")?;
    let wrong = cases.iter().filter_map(|(case, found)| {
        let said = |what: &str| found[what].as_str().unwrap_or("nothing").to_owned();
        let (behaviour, close) = (said("behavior"), said("behaviorClose"));
        let right = RIGHT.contains(&behaviour.as_str()) && RIGHT.contains(&close.as_str());
        (!right).then(|| format!("case {case}: {behaviour}, its close {close}"))
    });
    Ok((cases.len(), wrong.collect()))
}

/// `bolide serve`, and where it listens.
fn serve(program: &Path) -> Result<(Running, String), String> {
    let mut child = Command::new(program)
        .args(["serve", "--http", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let stdout = child.stdout.take().expect("it is piped");
    let running = Running(child);
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let authority = lines.find_map(|line| {
        let from = line.split_once("http://")?.1;
        Some(from.split(['/', ' ']).next().unwrap_or(from).to_owned())
    });
    // What else it says must find a reader.
    std::thread::spawn(move || lines.for_each(drop));
    authority.map(|authority| (running, authority)).ok_or_else(|| "the server named no URL".into())
}

/// Ports without a listener, no two the same.
fn free_ports(count: usize) -> std::io::Result<Vec<u16>> {
    let held: Result<Vec<_>, _> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    held?.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_suite_finds_wrong_is_found() {
        let case =
            |behaviour: &str, close: &str| json!({ "behavior": behaviour, "behaviorClose": close });
        let index = json!({ "bolide": {
            "1.1": case("OK", "OK"),
            "1.2": case("NON-STRICT", "INFORMATIONAL"),
            "1.3": case("FAILED", "OK"),
            "1.4": case("OK", "UNCLEAN"),
            "1.5": {},
        } });
        let (count, wrong) = judge(&index.to_string()).unwrap();
        assert_eq!(count, 5);
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert_eq!(wrong[0], "case 1.3: FAILED, its close OK");
        assert!(judge("").unwrap_err().starts_with("no report"));
        assert_eq!(judge("{}"), Err("the report has no case".to_owned()));
    }
}

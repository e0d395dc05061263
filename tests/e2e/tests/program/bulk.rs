//! `bolide net bulk`: what it leaves behind. It needs root, `ip`, and two cores.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use bolide_launcher::{find, program, scratch, skip};

/// How long the first server may take to start.
const START_TIME: Duration = Duration::from_secs(20);

/// Returns whether it can be run here.
fn is_possible() -> bool {
    if !rustix::process::geteuid().is_root() {
        skip("`bolide net bulk` needs a lab of root's");
        return false;
    }
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        skip("`bolide net bulk` needs two cores");
        return false;
    }
    find("ip", "what `bolide net bulk` leaves behind").is_some()
}

fn bulk(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(["net", "bulk", "--only", "bolide", "--rounds", "1", "--out"]).arg(directory);
    command.args(words).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A run in the middle of a transfer that takes long, with its namespaces.
fn in_a_transfer(directory: &Path) -> (Child, ChildStderr, PathBuf) {
    let mut run = bulk(directory, &["--bytes", "1000GiB"]).spawn().unwrap();
    let mut errors = run.stderr.take().unwrap();
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("round 1 of") {
        let mut piece = [0; 256];
        let count = errors.read(&mut piece).unwrap();
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&piece[..count]);
    }
    let server = PathBuf::from(format!("/run/netns/bulk-{}-server", run.id()));
    assert!(server.exists(), "{}", server.display());
    // The server of the first row.
    let began = Instant::now();
    while inside(&server).is_empty() {
        assert!(began.elapsed() < START_TIME, "no server was started");
        std::thread::yield_now();
    }
    (run, errors, server)
}

/// The processes in a network namespace.
fn inside(namespace: &Path) -> Vec<String> {
    let name = namespace.file_name().unwrap();
    let found = Command::new("ip").args(["netns", "pids"]).arg(name).output().unwrap();
    String::from_utf8_lossy(&found.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_killed_bulk_transfer_leaves_nothing_once_the_next_one_has_begun() {
    if !is_possible() {
        return;
    }
    let directory = scratch("bulk-leaves-nothing");
    let (mut run, _errors, server) = in_a_transfer(&directory);
    let place = std::env::temp_dir().join(format!("bolide-race-{}-0", run.id()));
    let processes = inside(&server);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(server.exists() && place.exists(), "nobody has tidied up yet");
    let next = bulk(&directory, &["--bytes", "1MiB"]).output().unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stderr));
    assert!(!server.exists() && !place.exists());
    for id in processes {
        assert!(!Path::new("/proc").join(&id).exists(), "process {id} still runs");
    }
    let left = std::fs::read_dir("/run/netns").unwrap().flatten();
    let own = format!("bulk-{}-", run.id());
    assert_eq!(left.filter(|name| name.file_name().to_string_lossy().starts_with(&own)).count(), 0);
}

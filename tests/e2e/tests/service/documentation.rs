//! docs/operate.md and the units of packaging/systemd: every command runs, as it stands there, on a machine with
//! systemd; what a command is for is checked behind it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bolide_launcher::{Finished, find, program, root, run, scratch};

use crate::machine::Machine;

/// The heading above the commands that follow one another.
const SERVICE: &str = "## From the binary to a service";

/// The blocks of commands below a heading.
fn blocks(heading: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/operate.md")).expect("it is there");
    let below = page.split_once(heading).expect("the heading is there").1;
    let section = below.split("\n## ").next().unwrap_or_default();
    section
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"))
        .map(|it| it.0.to_owned())
        .collect()
}

/// A folder as the commands find the repository, with the program that is tested.
fn repository(test: &str) -> PathBuf {
    let folder = scratch(test);
    fs::create_dir_all(folder.join("target/release")).expect("target can be written");
    let program = program().canonicalize().expect("the program was built");
    symlink(program, folder.join("target/release/bolide")).expect("target can be written");
    symlink(root().join("packaging"), folder.join("packaging")).expect("target can be written");
    folder
}

/// Runs what a page says; whatever fails is told with what the service said.
#[track_caller]
fn runs(machine: &Machine, folder: &Path, commands: &str) -> Finished {
    let finished = machine.sh(folder, commands);
    if !finished.status.success() {
        let journal = machine.sh(folder, "journalctl --no-pager --lines=50").text();
        panic!("{commands}\n{}\n{journal}", finished.both());
    }
    finished
}

/// The process that systemd takes for the service's.
fn main_process(machine: &Machine) -> String {
    let show = "systemctl show --value --property=MainPID bolide.service";
    machine.sh(Path::new("/"), show).well().text().trim().to_owned()
}

#[test]
fn a_reader_gets_from_the_binary_to_a_service() {
    let Some(mut machine) = Machine::boot("a_reader_gets_to_a_service") else { return };
    let folder = repository("a_reader_gets_to_a_service");
    let blocks = blocks(SERVICE);
    let [install, start, try_it, reload, upgrade, logs, stop, bare] = &blocks[..] else {
        panic!("{} blocks: name what is new here", blocks.len())
    };
    runs(&machine, &folder, install);
    assert!(runs(&machine, &folder, start).text().contains("serving: 2 listeners"), "its status");
    assert!(runs(&machine, &folder, try_it).text().starts_with("pongpongready"));
    let first = main_process(&machine);
    let status = machine.sh(&folder, &format!("cat /proc/{first}/status")).well().text();
    for line in ["NoNewPrivs:\t1", "CapEff:\t0000000000000000", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    runs(&machine, &folder, reload);
    machine.until("it never reloaded", |machine| journal(machine).contains("bolide: reloaded"));

    runs(&machine, &folder, upgrade);
    machine.until("nobody took over", |machine| main_process(machine) != first);
    let second = main_process(&machine);
    machine.until("the old process doesn't end", |machine| {
        !machine.sh(Path::new("/"), &format!("test -d /proc/{first}")).status.success()
    });
    assert_eq!(main_process(&machine), second, "systemd keeps to the new one");
    assert!(runs(&machine, &folder, try_it).text().starts_with("pongpongready"));
    let show = "systemctl show --property=ActiveState,NRestarts,StatusText bolide";
    let state = machine.sh(&folder, show).well().text();
    for line in ["ActiveState=active", "NRestarts=0", "StatusText=serving: 2 listeners"] {
        assert!(state.contains(line), "{state}");
    }

    assert!(runs(&machine, &folder, logs).text().contains("has taken over"));
    machine.until("no new log", |machine| {
        machine.sh(Path::new("/"), "test -f /var/log/bolide/access.log").status.success()
    });
    runs(&machine, &folder, stop);
    let asked = machine.sh(&folder, "curl --silent http://127.0.0.1/ping");
    assert!(!asked.status.success(), "it has stopped, and so have its sockets");

    runs(&machine, &folder, &format!("({bare}) > /run/said 2>&1"));
    machine.until("nobody took over without systemd", |machine| {
        let said = machine.sh(Path::new("/"), "cat /run/said").text();
        said.contains("bolide: reloaded") && said.contains("has taken over")
    });
    assert_eq!(machine.sh(&folder, "curl --silent http://127.0.0.1/ping").well().text(), "pong");
}

fn journal(machine: &Machine) -> String {
    machine.sh(Path::new("/"), "journalctl --no-pager --unit bolide.service").text()
}

/// A restart of the service: connections wait in the sockets meanwhile.
#[test]
fn a_restart_under_systemd_refuses_nobody() {
    let Some(machine) = Machine::boot("a_restart_under_systemd") else { return };
    let folder = repository("a_restart_under_systemd");
    let blocks = blocks(SERVICE);
    runs(&machine, &folder, &format!("{}\n{}", blocks[0], blocks[1]));
    let script = "for number in 1 2 3; do systemctl restart bolide.service & \
                  for again in $(seq 20); do curl --silent --fail http://127.0.0.1/ping; echo; done; wait; done";
    let said = runs(&machine, &folder, script).text();
    assert_eq!(said.lines().filter(|line| *line == "pong").count(), 60, "{said}");
}

#[test]
fn the_units_are_right_and_give_little_away() {
    let Some(analyze) = find("systemd-analyze", "the_units_are_right") else { return };
    let folder = scratch("the_units_are_right");
    let units = root().join("packaging/systemd");
    let service = fs::read_to_string(units.join("bolide.service")).expect("it is there");
    // The program is not installed here.
    let service = service.replace("/usr/local/bin/bolide", "/bin/true");
    let (path, socket) = (folder.join("bolide.service"), folder.join("bolide.socket"));
    fs::write(&path, service).unwrap();
    fs::copy(units.join("bolide.socket"), &socket).expect("it is there");
    let [path, socket] = [path, socket].map(|path| path.display().to_string());
    let verified = run(&analyze, ["verify", "--man=no", &path, &socket]).well().both();
    assert_eq!(verified.trim(), "", "a warning");
    // Of 100: what has no protection at all has 96.
    let judged = ["security", "--offline=true", "--no-pager", "--threshold=15", &path];
    run(&analyze, judged).well();
}

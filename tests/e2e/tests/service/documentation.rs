//! docs/operate.md and the units of packaging/systemd: every command runs, as it stands there, on a machine with
//! systemd; what a command is for is checked behind it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use bolide_launcher::{Finished, find, program, root, run, scratch};

use crate::machine::Machine;

/// The heading above the commands that follow one another.
const SERVICE: &str = "From the binary to a service";

/// All that has commands: the headings, with how many blocks stand below each. Each is run by a test of this file.
const BLOCKS: [(&str, usize); 6] = [
    (SERVICE, 8),
    ("What it shows", 1),
    ("Completions and manual pages", 1),
    ("Where the CPU time goes", 2),
    ("The access log", 1),
    ("Passwords", 1),
];

/// The page's headings, and the blocks of commands below each.
fn sections() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(root().join("docs/operate.md")).expect("it is there");
    let mut sections = vec![(String::new(), Vec::new())];
    let mut block: Option<(bool, String)> = None;
    for line in page.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => {
                block = Some((["sh", "console"].contains(&language), String::new()));
            }
            (Some((is_for_a_shell, text)), Some(_)) => {
                if *is_for_a_shell && let Some((_, blocks)) = sections.last_mut() {
                    blocks.push(std::mem::take(text));
                }
                block = None;
            }
            // What a console shows is no command, but for what stands behind its prompt.
            (Some((_, text)), None) => *text += &format!("{}\n", line.trim_start_matches("$ ")),
            (None, None) => {
                if let Some(heading) = line.strip_prefix("## ") {
                    sections.push((heading.to_owned(), Vec::new()));
                }
            }
        }
    }
    sections
}

/// The blocks of commands below a heading.
fn blocks(heading: &str) -> Vec<String> {
    let section = sections().into_iter().find(|(known, _)| known == heading);
    section.expect("the heading is there").1
}

#[test]
fn every_block_of_commands_has_a_test_that_runs_it() {
    let found = sections();
    let found: Vec<(&str, usize)> = found
        .iter()
        .filter(|(_, blocks)| !blocks.is_empty())
        .map(|(heading, blocks)| (heading.as_str(), blocks.len()))
        .collect();
    assert_eq!(found, BLOCKS, "run what is new, and name it in BLOCKS");
}

/// A directory as the commands find the repository, with the program that is tested.
fn repository(test: &str) -> PathBuf {
    let directory = scratch(test);
    fs::create_dir_all(directory.join("target/dist")).expect("target can be written");
    let program = program().canonicalize().expect("the program was built");
    symlink(program, directory.join("target/dist/bolide")).expect("target can be written");
    symlink(root().join("packaging"), directory.join("packaging")).expect("target can be written");
    directory
}

/// Runs what a page says; whatever fails is told with what the service said.
#[track_caller]
fn runs(machine: &Machine, directory: &Path, commands: &str) -> Finished {
    let finished = machine.sh(directory, commands);
    if !finished.status.success() {
        let journal = machine.sh(directory, "journalctl --no-pager --lines=50").text();
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
    let directory = repository("a_reader_gets_to_a_service");
    let blocks = blocks(SERVICE);
    let [install, start, try_it, reload, upgrade, logs, stop, bare] = &blocks[..] else {
        panic!("{} blocks: name what is new here", blocks.len())
    };
    runs(&machine, &directory, install);
    assert!(
        runs(&machine, &directory, start).text().contains("serving: 2 listeners"),
        "its status"
    );
    assert!(runs(&machine, &directory, try_it).text().starts_with("pongpongready"));
    let first = main_process(&machine);
    let status = machine.sh(&directory, &format!("cat /proc/{first}/status")).well().text();
    for line in ["NoNewPrivs:\t1", "CapEff:\t0000000000000000", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    runs(&machine, &directory, reload);
    machine.until("it never reloaded", |machine| journal(machine).contains("bolide: reloaded"));

    runs(&machine, &directory, upgrade);
    machine.until("nobody took over", |machine| main_process(machine) != first);
    let second = main_process(&machine);
    machine.until("the old process doesn't end", |machine| {
        !machine.sh(Path::new("/"), &format!("test -d /proc/{first}")).status.success()
    });
    assert_eq!(main_process(&machine), second, "systemd keeps to the new one");
    assert!(runs(&machine, &directory, try_it).text().starts_with("pongpongready"));
    let show = "systemctl show --property=ActiveState,NRestarts,StatusText bolide";
    let state = machine.sh(&directory, show).well().text();
    for line in ["ActiveState=active", "NRestarts=0", "StatusText=serving: 2 listeners"] {
        assert!(state.contains(line), "{state}");
    }

    assert!(runs(&machine, &directory, logs).text().contains("has taken over"));
    machine.until("no new log", |machine| {
        machine.sh(Path::new("/"), "test -f /var/log/bolide/access.log").status.success()
    });
    runs(&machine, &directory, stop);
    let asked = machine.sh(&directory, "curl --silent http://127.0.0.1/ping");
    assert!(!asked.status.success(), "it has stopped, and so have its sockets");

    runs(&machine, &directory, &format!("({bare}) > /run/said 2>&1"));
    machine.until("nobody took over without systemd", |machine| {
        let said = machine.sh(Path::new("/"), "cat /run/said").text();
        said.contains("bolide: reloaded") && said.contains("has taken over")
    });
    assert_eq!(machine.sh(&directory, "curl --silent http://127.0.0.1/ping").well().text(), "pong");
}

/// Runs commands of which the last doesn't return by itself; what they say goes to a file.
fn begin(machine: &Machine, directory: &Path, commands: &str, said: &str) {
    runs(machine, directory, &format!("({commands}) > {said} 2>&1 &"));
}

/// Waits until the server of the page's examples takes requests.
fn wait_until_ready(machine: &mut Machine) {
    machine.until("it isn't ready", |machine| {
        let ask = "curl --silent --fail http://127.0.0.1:9090/readyz";
        machine.sh(Path::new("/"), ask).status.success()
    });
}

#[test]
fn what_a_server_shows_is_shown_by_the_commands_of_the_page() {
    let test = "what_a_server_shows";
    let Some(mut machine) = Machine::boot(test) else { return };
    let directory = repository(test);
    let install =
        "install -m 755 target/dist/bolide /usr/local/bin/bolide; mkdir -p /var/log/bolide";
    runs(&machine, &directory, install);
    let [show] = &blocks("What it shows")[..] else { panic!("other blocks than before") };
    let [rotate] = &blocks("The access log")[..] else { panic!("other blocks than before") };
    let [profile, switch] = &blocks("Where the CPU time goes")[..] else {
        panic!("other blocks than before")
    };
    let log = Path::new("/var/log/bolide");
    begin(&machine, &directory, show, "/run/shown");
    wait_until_ready(&mut machine);
    let ask = "curl --silent --fail http://127.0.0.1:8080/ping";
    assert_eq!(runs(&machine, &directory, ask).text(), "pong");
    machine.until("no line was logged", |machine| {
        machine.sh(log, "grep -q '\"target\":\"/ping\"' access.log").status.success()
    });
    runs(&machine, &directory, rotate);
    machine.until("no new log", |machine| machine.sh(log, "test -f access.log").status.success());
    runs(&machine, &directory, ask);
    machine.until("the new log stays empty", |machine| {
        machine.sh(log, "grep -q /ping access.log").status.success()
    });
    assert!(runs(&machine, log, "cat access.log.1").text().lines().count() == 1);

    // A server without --profile is told to measure.
    let switched = runs(&machine, &directory, switch).text();
    for words in ["\"one_in\":64,", "\"one_in\":0,"] {
        assert!(switched.contains(words), "{words}: {switched}");
    }
    let end = "kill -TERM \"$(pidof bolide)\"; while pidof bolide; do sleep 0.1; done";
    runs(&machine, &directory, end);
    assert!(runs(&machine, &directory, "cat /run/shown").text().contains("\"level\":\"INFO\""));

    begin(&machine, &directory, profile, "/run/profiled");
    wait_until_ready(&mut machine);
    runs(&machine, &directory, switch);
    runs(&machine, &directory, end);
    let said = runs(&machine, &directory, "cat /run/profiled").text();
    assert!(said.contains("CPU time by stage: "), "{said}");
}

#[test]
fn completions_and_manual_pages_are_where_the_page_puts_them() {
    let test = "completions_and_manual_pages_are_there";
    let Some(machine) = Machine::boot(test) else { return };
    let directory = repository(test);
    runs(&machine, &directory, "install -m 755 target/dist/bolide /usr/local/bin/bolide");
    let [write] = &blocks("Completions and manual pages")[..] else {
        panic!("other blocks than before")
    };
    runs(&machine, &directory, write);
    let completes = "grep -q access-log-format /etc/bash_completion.d/bolide";
    runs(&machine, &directory, completes);
    runs(&machine, &directory, "grep -q SYNOPSIS /usr/local/share/man/man1/bolide-serve.1");
}

#[test]
fn a_user_is_added_by_the_command_of_the_page() {
    let test = "a_user_is_added";
    let Some(machine) = Machine::boot(test) else { return };
    let directory = repository(test);
    let install = "install -m 755 target/dist/bolide /usr/local/bin/bolide; mkdir -p /etc/bolide";
    runs(&machine, &directory, install);
    let [add] = &blocks("Passwords")[..] else { panic!("other blocks than before") };
    runs(&machine, &directory, &format!("printf 'secret\\n' | {{\n{add}\n}}"));
    runs(&machine, &directory, "grep -q '^alice:.argon2id.' /etc/bolide/users");
}

fn journal(machine: &Machine) -> String {
    machine.sh(Path::new("/"), "journalctl --no-pager --unit bolide.service").text()
}

/// A restart of the service: connections wait in the sockets meanwhile.
#[test]
fn a_restart_under_systemd_refuses_nobody() {
    let Some(machine) = Machine::boot("a_restart_under_systemd") else { return };
    let directory = repository("a_restart_under_systemd");
    let blocks = blocks(SERVICE);
    runs(&machine, &directory, &format!("{}\n{}", blocks[0], blocks[1]));
    let script = "for number in 1 2 3; do systemctl restart bolide.service & \
                  for again in $(seq 20); do curl --silent --fail http://127.0.0.1/ping; echo; done; wait; done";
    let said = runs(&machine, &directory, script).text();
    assert_eq!(said.lines().filter(|line| *line == "pong").count(), 60, "{said}");
}

#[test]
fn the_units_are_right_and_give_little_away() {
    let Some(analyze) = find("systemd-analyze", "the_units_are_right") else { return };
    let directory = scratch("the_units_are_right");
    let units = root().join("packaging/systemd");
    let service = fs::read_to_string(units.join("bolide.service")).expect("it is there");
    // The program is not installed here.
    let service = service.replace("/usr/local/bin/bolide", "/bin/true");
    let (path, socket) = (directory.join("bolide.service"), directory.join("bolide.socket"));
    fs::write(&path, service).unwrap();
    fs::copy(units.join("bolide.socket"), &socket).expect("it is there");
    let [path, socket] = [path, socket].map(|path| path.display().to_string());
    let verified = run(&analyze, ["verify", "--man=no", &path, &socket]).well().both();
    assert_eq!(verified.trim(), "", "a warning");
    // Of 100: what has no protection at all has 96.
    let judged = ["security", "--offline=true", "--no-pager", "--threshold=15", &path];
    run(&analyze, judged).well();
}

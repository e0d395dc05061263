//! `--user`: started by root, and root no more.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use bolide_launcher::{copy_program, program, skip};
use rustix::process::Signal;

use crate::instance::{Instance, get, serve};

/// The user that every Linux has, and its number.
const NOBODY: (&str, u32) = ("nobody", 65534);

fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(&format!("only root can switch to another user ({test})"));
    }
    is_root
}

/// A directory that everybody may look into: `target` need not be.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bolide-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("the directory for temporary files can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Self(path)
    }

    fn file(&self, name: &str, content: &str, mode: u32) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).expect("it can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        path.display().to_string()
    }

    /// The program where every user may run it.
    fn program(&self) -> PathBuf {
        let path = self.0.join("bolide");
        copy_program(program(), &path);
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A line of /proc/…/status of each thread, without its name.
fn of_each_thread(id: u32, name: &str) -> Vec<Vec<String>> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
    let status = |task: &Path| fs::read_to_string(task.join("status")).expect("it runs");
    let words = |text: String| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        line.split_whitespace().skip(1).map(str::to_owned).collect()
    };
    tasks.map(|task| words(status(&task.expect("it runs").path()))).collect()
}

#[track_caller]
fn assert_nobody(id: u32) {
    let number = NOBODY.1.to_string();
    for ids in of_each_thread(id, "Uid:").iter().chain(&of_each_thread(id, "Gid:")) {
        assert!(ids.len() == 4 && ids.iter().all(|id| *id == number), "{ids:?}");
    }
    for groups in of_each_thread(id, "Groups:") {
        assert_eq!(groups.join(" "), number, "root's groups are gone");
    }
    for name in ["CapEff:", "CapPrm:"] {
        for capabilities in of_each_thread(id, name) {
            assert_eq!(capabilities, ["0000000000000000"], "{name}");
        }
    }
    for set in of_each_thread(id, "NoNewPrivs:") {
        assert_eq!(set, ["1"]);
    }
}

#[test]
fn every_thread_becomes_the_user_for_good() {
    if !is_root("every_thread_becomes_the_user_for_good") {
        return;
    }
    let directory = Directory::new("every-thread");
    let pid = directory.0.join("pid").display().to_string();
    let log = directory.file("log", "", 0o600);
    chown(&log, Some(NOBODY.1), Some(NOBODY.1)).unwrap();
    let arguments = [
        "--http",
        "127.0.0.1:0",
        "--workers",
        "2",
        "--user",
        NOBODY.0,
        "--pid-file",
        &pid,
        "--access-log",
        &log,
        "--admin",
        "127.0.0.1:0",
    ];
    let path = directory.program();
    let mut instance = Instance::start(&mut serve(&path, &arguments));
    assert_nobody(instance.id);
    // The successor is not root either, and takes over all the same.
    instance.upgrade();
    assert_nobody(instance.id);
    assert_eq!(instance.get("/ping"), "pong");
    assert_eq!(fs::read_to_string(&pid).unwrap().trim(), instance.id.to_string());
    assert!(instance.wait().success());
    instance.signal(Signal::TERM);
    instance.wait_for_last();
    let left = fs::read_to_string(&pid).unwrap();
    assert_eq!(left, "", "a file in root's directory can't be removed, but says nothing any more");
}

/// A port below 1024, in a network of its own.
#[test]
fn a_low_port_is_bound_before() {
    if !is_root("a_low_port_is_bound_before") {
        return;
    }
    let directory = Directory::new("low-port");
    let path = directory.program();
    let script = "ip link set lo up && exec \"$0\" serve --http 127.0.0.1:80 --user nobody:nogroup";
    let mut command = Command::new("/usr/bin/unshare");
    command.args(["--net", "/bin/sh", "-c", script]).arg(&path);
    let instance = Instance::start(&mut command);
    assert_nobody(instance.id);
    let in_its_network = Command::new("/usr/bin/nsenter")
        .args(["--net", "--target", &instance.id.to_string(), "curl", "-s"])
        .arg("http://127.0.0.1:80/ping")
        .output()
        .expect("nsenter is there");
    assert_eq!(String::from_utf8_lossy(&in_its_network.stdout), "pong");
}

#[test]
fn what_a_reload_could_not_read_is_said_at_the_start() {
    if !is_root("what_a_reload_could_not_read_is_said_at_the_start") {
        return;
    }
    let directory = Directory::new("reload");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = directory.file("chain.pem", &made.cert.pem(), 0o644);
    let key = directory.file("key.pem", &made.signing_key.serialize_pem(), 0o600);
    let path = directory.program();
    let arguments =
        ["--https", "127.0.0.1:0", "--cert", &certificate, "--key", &key, "--user", NOBODY.0];
    let output = serve(&path, &arguments).output().expect("the program");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    for words in ["--user nobody", "a reload could not read", "key.pem", "Permission denied"] {
        assert!(said.contains(words), "{said}");
    }
    let checked = serve(&path, &arguments).arg("--check").output().expect("the program");
    assert_eq!(checked.status.code(), Some(2), "a check finds what the start does");
    assert_eq!(String::from_utf8_lossy(&checked.stderr), said);
    // Once it may, SIGHUP reads it again.
    chown(&key, Some(NOBODY.1), None).unwrap();
    let mut instance = Instance::start(&mut serve(&path, &arguments));
    instance.signal(Signal::HUP);
    instance.said("bolide: reloaded");
    instance.signal(Signal::TERM);
    assert!(instance.wait().success());
}

#[test]
fn who_is_not_root_is_told() {
    if !is_root("who_is_not_root_is_told") {
        return;
    }
    let directory = Directory::new("not-root");
    let mut command = Command::new("/usr/bin/setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(directory.program());
    command.args(["serve", "--http", "127.0.0.1:0", "--user"]);
    let output = command.arg("daemon").output().expect("setpriv is there");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("only root can switch to another user") && said.contains("65534"),
        "{said}"
    );
}

#[test]
fn a_user_that_is_not_there_is_a_mistake() {
    for (user, words) in [
        ("no-such-user", "there is no user `no-such-user`"),
        ("nobody:no-such-group", "there is no group `no-such-group`"),
        ("root", "root keeps all privileges"),
    ] {
        let output = serve(program(), &["--check", "--user", user]).output().expect("the program");
        assert_eq!(output.status.code(), Some(2), "{user}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(words), "{said}");
    }
}

/// The file of the configuration says it too.
#[test]
fn the_configuration_names_a_user() {
    if !is_root("the_configuration_names_a_user") {
        return;
    }
    let directory = Directory::new("configuration");
    let text = "user = \"nobody\"\n[[listen]]\nhttp = \"127.0.0.1:0\"\n";
    let configuration = directory.file("bolide.toml", text, 0o644);
    let instance = Instance::start(&mut serve(&directory.program(), &["--config", &configuration]));
    assert_nobody(instance.id);
    assert_eq!(get(&instance.address, "/ping"), "pong");
}

#[test]
fn a_root_that_this_user_cannot_search_is_refused() {
    if !is_root("a_root_that_this_user_cannot_search_is_refused") {
        return;
    }
    let directory = Directory::new("search");
    let root = directory.0.join("site");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("index.html"), "").unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o444)).unwrap();
    let mut command = Command::new("/usr/bin/setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]);
    command.arg(directory.program()).args(["serve", "--check", "--http", "127.0.0.1:0", "--root"]);
    let output = command.arg(&root).output().expect("setpriv is there");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("grant this user read and search permission"), "{said}");
}

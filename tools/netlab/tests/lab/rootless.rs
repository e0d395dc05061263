//! Labs of users who aren't root.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use bolide_launcher::{copy_program, find, finish, skip, spawn};
use serde_json::Value;

use crate::program::{PROGRAM, words};

/// A program in a directory that every user may enter, run as `nobody`.
struct Nobody {
    program: PathBuf,
    setpriv: Option<PathBuf>,
}

impl Nobody {
    fn new() -> Option<Self> {
        let directory =
            std::env::temp_dir().join(format!("bolide-net-test-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let everybody = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&directory, everybody).unwrap();
        let program = directory.join("bolide-net");
        copy_program(Path::new(PROGRAM), &program);
        let setpriv = if rustix::process::geteuid().is_root() {
            Some(find("setpriv", "a lab of a user who isn't root")?)
        } else {
            None
        };
        Some(Self { program, setpriv })
    }

    fn net(&self, words: &str) -> Output {
        let mut all: Vec<String> = Vec::new();
        if self.setpriv.is_some() {
            all.extend(["--reuid=65534", "--regid=65534", "--clear-groups"].map(str::to_owned));
            all.extend(["env", "-u", "XDG_RUNTIME_DIR", "--chdir=/"].map(str::to_owned));
            all.push(self.program.display().to_string());
        }
        all.push("net".to_owned());
        all.extend(words.split_whitespace().map(str::to_owned));
        let program = self.setpriv.as_deref().unwrap_or(&self.program);
        let found = finish(spawn(program, all));
        Output { status: found.status, stdout: found.stdout, stderr: found.stderr }
    }
}

impl Drop for Nobody {
    fn drop(&mut self) {
        drop(self.net("down --all"));
        drop(self.program.parent().map(std::fs::remove_dir_all));
        drop(std::fs::remove_dir_all(std::env::temp_dir().join("bolide-net-65534")));
    }
}

#[test]
fn a_user_who_is_not_root_has_a_lab_in_a_user_namespace() {
    let Some(nobody) = Nobody::new() else { return };
    let up = nobody.net("up --name own --no-verify --rtt 10ms --rate 50mbit");
    if words(&up).contains("user can't create any") || words(&up).contains("allows none") {
        skip("this system allows no user namespaces (a lab of a user who isn't root)");
        return;
    }
    if words(&up).contains("cannot open /dev/net/tun") {
        skip("only root may open /dev/net/tun (a lab of a user who isn't root)");
        return;
    }
    assert!(up.status.success(), "{}", words(&up));
    let address = nobody.net("exec server --name own -- ip -brief address");
    let address = String::from_utf8(address.stdout).unwrap();
    assert!(address.contains("192.168.1.2/24"), "{address}");
    let iperf = nobody.net("iperf -R -t 1 --json --name own");
    let outcome: Value =
        serde_json::from_slice(&iperf.stdout).unwrap_or_else(|_| panic!("{}", words(&iperf)));
    let goodput = outcome["bits_per_second"].as_f64().unwrap();
    assert!(goodput > 20e6 && goodput < 50e6, "{goodput}");
    let status: Value = serde_json::from_slice(&nobody.net("status --json").stdout).unwrap();
    let keeper = status[0]["keeper"].as_u64().unwrap();
    assert!(status[0]["lines"]["down"]["out"].as_u64().unwrap() > 0, "{status}");
    let down = nobody.net("down --name own");
    assert!(down.status.success(), "{}", words(&down));
    // It may wait to be collected.
    let stat = std::fs::read_to_string(format!("/proc/{keeper}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

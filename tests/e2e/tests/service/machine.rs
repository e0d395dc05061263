//! A machine for tests, made of namespaces: systemd is its first process, and what is installed in it is gone with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bolide_launcher::{Finished, find, root, run, skip};

use crate::instance::PATIENCE;

const SYSTEMD: &str = "/lib/systemd/systemd";

/// A machine that runs; it ends when this goes out of scope.
pub(crate) struct Machine {
    outside: Child,
    /// Its first process, as it is called outside.
    first: String,
    group: PathBuf,
    nsenter: PathBuf,
}

impl Machine {
    /// Starts one. None where this needs what is not here, which is said.
    pub(crate) fn boot(test: &str) -> Option<Self> {
        let (unshare, nsenter) = (find("unshare", test)?, find("nsenter", test)?);
        if !rustix::process::geteuid().is_root() || !Path::new(SYSTEMD).is_file() {
            skip(&format!("a machine with systemd needs root and systemd ({test})"));
            return None;
        }
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let groups =
            mounts.lines().find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
                [_, path, "cgroup2", ..] => Some(path.to_owned()),
                _ => None,
            });
        let Some(groups) = groups else {
            skip(&format!("a machine with systemd needs control groups, version 2 ({test})"));
            return None;
        };
        let group = Path::new(&groups).join(format!("bolide-{test}-{}", std::process::id()));
        fs::create_dir(&group).expect("root makes control groups");
        let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        let outside = Command::new("/bin/sh")
            .args(["-c", script])
            .arg(&group)
            .arg(unshare)
            .args(["--mount", "--pid", "--fork", "--net", "--uts", "--ipc", "--cgroup"])
            .arg("--kill-child")
            .arg(root().join("tests/e2e/tests/service/machine.sh"))
            .arg(SYSTEMD)
            .stdin(Stdio::null())
            .spawn()
            .expect("there is a shell");
        let mut machine = Self { outside, first: String::new(), group, nsenter };
        machine.wait_for_systemd();
        Some(machine)
    }

    fn wait_for_systemd(&mut self) {
        let id = self.outside.id();
        let children = format!("/proc/{id}/task/{id}/children");
        self.until("systemd doesn't start", |machine| {
            let children = fs::read_to_string(&children).unwrap_or_default();
            machine.first = children.split_whitespace().next().unwrap_or_default().to_owned();
            !machine.first.is_empty()
                && machine.sh(Path::new("/"), "systemctl is-active sockets.target").status.success()
        });
    }

    /// Runs a script of the shell there, in a directory; it ends at the first command that fails.
    pub(crate) fn sh(&self, directory: &Path, script: &str) -> Finished {
        let directory = format!("cd '{}' && ", directory.display());
        let enter = ["--all", "--target", &self.first, "/bin/sh", "-ec"];
        run(&self.nsenter, enter.into_iter().chain([format!("{directory}{script}").as_str()]))
    }

    /// Waits for something that systemd does on its own.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(
                self.outside.try_wait().expect("it is ours").is_none(),
                "the machine has ended"
            );
            assert!(Instant::now() < deadline, "{what}");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // With the first process all others end.
        drop(self.outside.kill());
        drop(self.outside.wait());
        let deadline = Instant::now() + Duration::from_secs(10);
        while remove(&self.group).is_err() && Instant::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

/// Removes a control group and those below it.
fn remove(group: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

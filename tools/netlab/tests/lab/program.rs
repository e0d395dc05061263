//! The program under test, and labs that are removed at the end of a test.

use std::path::Path;
use std::process::Output;

use bolide_launcher::{decide, finish, skip, spawn};
use serde_json::Value;

/// The program with the lab's commands.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_bolide-net");

/// How likely it is that a lab looks made and is not.
const NOT_MADE_CHANCE: f64 = 0.001;

/// A lab of a test.
pub(crate) struct Lab {
    pub(crate) name: String,
}

impl Lab {
    /// Only its name: nothing is made yet.
    pub(crate) fn named(test: &str) -> Self {
        Self { name: format!("t{}-{test}", std::process::id()) }
    }

    /// Makes it, again if need be: a busy machine may not carry what was asked, and a lab that is made was verified.
    #[track_caller]
    pub(crate) fn up(test: &str, arguments: &str) -> (Self, Value) {
        let lab = Self::named(test);
        let mut described = Value::Null;
        let made = decide(NOT_MADE_CHANCE, || {
            let output = lab.net(&format!("up --json --name {} {arguments}", lab.name));
            if !output.status.success() {
                return Err(words(&output));
            }
            described = serde_json::from_slice(&output.stdout).unwrap();
            Ok(())
        });
        match made {
            Ok(()) => (lab, described),
            Err(said) => panic!("{said:?}"),
        }
    }

    /// `bolide net` with these words.
    pub(crate) fn net(&self, words: &str) -> Output {
        net(words)
    }

    /// The names of its namespaces that there are.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir("/run/netns") else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(&format!("{}-", self.name))).collect()
    }

    /// Its directory.
    pub(crate) fn directory(&self) -> std::path::PathBuf {
        Path::new("/run/bolide/net").join(&self.name)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // A test may have removed it.
        drop(net(&format!("down --name {}", self.name)));
    }
}

/// `bolide net` with these words.
pub(crate) fn net(words: &str) -> Output {
    let words = ["net"].into_iter().chain(words.split_whitespace());
    let found = finish(spawn(Path::new(PROGRAM), words));
    Output { status: found.status, stdout: found.stdout, stderr: found.stderr }
}

/// Returns what it said of its mistake.
pub(crate) fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns whether this test can run: root's labs need root.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(&format!("labs of root need root ({test})"));
    }
    root
}

//! `--on`: the other parts started by ssh, for people without a scheduler.

use std::env;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::identity::Rendezvous;
use crate::options::PartsArguments;

/// How long ssh may take to end by itself when the run is over.
const PATIENCE: Duration = Duration::from_secs(3);

/// The options that are this host's alone, and whether each has a value.
const OWN: [(&str, bool); 5] = [
    ("--on", true),
    ("--rendezvous", true),
    ("--print-job", false),
    ("--hosts", true),
    ("--image", true),
];

/// Script on the other host: the secret comes on the standard input, so that no list of processes shows it.
const SCRIPT: &str = "read -r BOLIDE_SECRET; export BOLIDE_SECRET; exec \"$@\" </dev/null";

/// The parts on other hosts. They are killed when this is dropped.
#[derive(Debug)]
pub(super) struct Started {
    children: Vec<(String, Child)>,
}

impl Started {
    /// Starts a part on each host of `--on`.
    pub(super) fn start(
        asked: &PartsArguments,
        rendezvous: &Rendezvous,
        secret: &str,
    ) -> Result<Self, String> {
        let words = without_own_options(env::args_os().skip(1))?;
        let mut started = Self { children: Vec::new() };
        // Without an address that the hosts know, each reaches us through its connection of ssh.
        let meets_here = asked.rendezvous.is_none() && rendezvous.is_loopback();
        let count = asked.on.len() + 1;
        for (host, number) in asked.on.iter().zip(2..) {
            let mut command = Command::new("ssh");
            command.args(["-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes"]);
            if meets_here {
                let port = rendezvous.port;
                command.args(["-R", &format!("127.0.0.1:{port}:127.0.0.1:{port}")]);
            }
            let part = format!("{number}/{count}");
            let meeting = rendezvous.to_string();
            let own = ["--part", &part, "--rendezvous", &meeting].map(str::to_owned);
            let program = ["sh", "-c", SCRIPT, "sh", "bolide"].map(str::to_owned);
            let (load, rest) = words.split_at(words.len().min(1));
            let line: Vec<String> =
                [&program[..], load, &own, rest].concat().iter().map(|word| quoted(word)).collect();
            command.args(["--", host, &line.join(" ")]);
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            let failed = |error| format!("--on {host}: ssh can't be started: {error}");
            let mut child = command.spawn().map_err(failed)?;
            let stdin = child.stdin.take();
            started.children.push((host.clone(), child));
            if let Some(mut stdin) = stdin {
                // What ended at once shows by its exit code.
                let _ = writeln!(stdin, "{secret}");
            }
        }
        Ok(started)
    }

    /// A part that has ended before the run began, in words.
    pub(super) fn ended(&mut self) -> Option<String> {
        self.children.iter_mut().find_map(|(host, child)| {
            let status = child.try_wait().ok().flatten()?;
            Some(format!("--on {host}: ssh ended before the run began ({status})"))
        })
    }

    /// The run is over: they end by themselves, or are ended.
    pub(super) fn end(mut self) {
        let latest = Instant::now() + PATIENCE;
        let is_running = |(_, child): &mut (String, Child)| matches!(child.try_wait(), Ok(None));
        while self.children.iter_mut().any(is_running) && Instant::now() < latest {
            // Nothing tells when a child ends but SIGCHLD.
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for (_, child) in &mut self.children {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The command line for other parts: without the options that are this host's alone.
pub(super) fn without_own_options(
    words: impl Iterator<Item = OsString>,
) -> Result<Vec<String>, String> {
    let (mut kept, mut skips) = (Vec::new(), false);
    for word in words {
        let word = word
            .into_string()
            .map_err(|word| format!("{} is not UTF-8", word.to_string_lossy()))?;
        if std::mem::take(&mut skips) {
            continue;
        }
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        match OWN.iter().find(|(own, _)| *own == name) {
            Some((_, has_value)) => skips = *has_value && name == word,
            None => kept.push(word),
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_parts_get_the_command_without_the_hosts() {
        let words = "load --on a,b -c 4 --rendezvous=x:1 --rate 5 --hosts 2 http://t/ --print-job";
        let kept = without_own_options(words.split(' ').map(OsString::from)).unwrap();
        assert_eq!(kept, ["load", "-c", "4", "--rate", "5", "http://t/"]);
    }

    #[test]
    fn a_shell_reads_every_word_back() {
        let words = ["a b", "it's", "$HOME `x` \"y\"", "", "\\"];
        let line: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let script = format!("printf '%s|' {}", line.join(" "));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), words.join("|") + "|");
    }
}

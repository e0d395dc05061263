//! Everything that is needed to run a race again, and to judge one: what raced, how, and where.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::contender::Contender;
use crate::generator::Generator;
use crate::process::first_line;
use crate::rounds::Settings;

/// The format's number: it changes when older programs can't read it any more.
pub const FORMAT: u32 = 1;

/// Description of a race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of this program.
    pub program: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The seed of the order and of the sizes that are tried.
    pub seed: u64,
    /// The tables, by name.
    pub tables: Vec<String>,
    /// Only the quick cells of them.
    pub is_quick: bool,
    /// Durations and rounds.
    pub settings: Settings,
    /// Program that made the load.
    pub generator: Generator,
    /// Versions of its programs.
    pub generator_versions: Vec<String>,
    /// Whom the others are compared with.
    pub reference: String,
    /// The contenders as they were described, and their versions.
    pub contenders: Vec<Entry>,
    /// Source of the descriptions.
    pub sources: String,
    /// The machine.
    pub machine: Machine,
    /// Warnings before the start.
    pub warnings: Vec<String>,
}

/// A contender in a race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its description.
    pub contender: Contender,
    /// The first line that its version command printed.
    pub version: String,
    /// Why it did not take part.
    pub skipped: Option<String>,
}

/// Machine on which a race was run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's name.
    pub cpu: String,
    /// Cores that could be used.
    pub cores: Vec<usize>,
    /// The server's cores.
    pub server_cores: Vec<usize>,
    /// The generator's cores.
    pub generator_cores: Vec<usize>,
    /// Bytes.
    pub memory_bytes: u64,
    /// The kernel.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// The CPU governor, where there is one.
    pub governor: String,
}

impl Machine {
    /// This one.
    pub(crate) fn here(cores: &[usize], server: &[usize], generator: &[usize]) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |path: &str, key: &str| {
            let text = read(path);
            let line = text.lines().find(|line| line.starts_with(key));
            let value = line.and_then(|line| line.split_once([':', '=']));
            value.map(|(_, value)| value.trim().trim_matches('"').to_owned()).unwrap_or_default()
        };
        let memory = value("/proc/meminfo", "MemTotal");
        let kilobytes: u64 =
            memory.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default();
        Self {
            cpu: value("/proc/cpuinfo", "model name"),
            cores: cores.to_vec(),
            server_cores: server.to_vec(),
            generator_cores: generator.to_vec(),
            memory_bytes: kilobytes * 1024,
            kernel: first_line(&["uname", "-sr"]),
            system: value("/etc/os-release", "PRETTY_NAME"),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .trim()
                .to_owned(),
        }
    }
}

impl Manifest {
    /// Reads a manifest, or a file of results that holds one.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        if let Some(inner) = value.get_mut("manifest") {
            value = inner.take();
        }
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                return Err(format!("has the format {format}; this program reads {FORMAT}"));
            }
            None => return Err("is not a manifest of a race: it has no `format`".to_owned()),
        }
        serde_json::from_value(value).map_err(|error| format!("is not a manifest: {error}"))
    }

    /// Returns what must be equal for a race to go on where another one stopped.
    pub fn fingerprint(&self) -> String {
        let names: Vec<&str> = self
            .contenders
            .iter()
            .filter(|entry| entry.skipped.is_none())
            .map(|entry| entry.contender.name.as_str())
            .collect();
        format!(
            "{}|{}|{}|{:?}|{}|{}|{}|{}|{}",
            self.tables.join(","),
            self.is_quick,
            names.join(","),
            self.settings,
            self.generator.name(),
            self.reference,
            self.machine.cpu,
            self.machine.kernel,
            self.program,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_manifest_is_said_so() {
        assert!(Manifest::parse("x").unwrap_err().contains("not JSON"));
        assert!(Manifest::parse("{}").unwrap_err().contains("no `format`"));
        assert!(Manifest::parse("{\"format\":99}").unwrap_err().contains("reads 1"));
        assert!(
            Manifest::parse("{\"manifest\":{\"format\":1}}").unwrap_err().contains("missing field")
        );
    }

    #[test]
    fn the_machine_is_described() {
        let machine = Machine::here(&[0], &[0], &[0]);
        assert!(!machine.kernel.is_empty());
        assert!(machine.memory_bytes > 1 << 20 || cfg!(not(target_os = "linux")));
    }
}

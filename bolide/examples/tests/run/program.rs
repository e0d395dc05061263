//! Example programs that run.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A started example; it ends with this value.
pub(crate) struct Program {
    child: Child,
    /// `127.0.0.1:` and its port.
    pub(crate) address: String,
}

impl Program {
    /// Starts the program at `path` on a free port.
    pub(crate) fn start(path: &str) -> Self {
        let mut child = Command::new(path)
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("it says where it listens");
        let address = line.trim().strip_prefix("listening on http://").expect("an address");
        let address = address.to_owned();
        Self { child, address }
    }

    /// Its number in the system.
    #[cfg(target_os = "linux")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

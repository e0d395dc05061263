//! The same cases as grpc-go asserts them, and grpc-go's server of them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use bolide_launcher::{find, root, run, scratch, skip};

use crate::start::start;

/// How many cases there are.
const CASES_COUNT: usize = 19;

/// grpc-go's part of the tests; `None` where it can't be built, which is said once for each test.
pub(crate) fn program(test: &str) -> Option<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let go = find("go", test)?;
    let built = BUILT.get_or_init(|| {
        let built = scratch("grpc_go").join("interop");
        let source = root().join("tests/tower/go");
        let arguments =
            ["-C".as_ref(), source.as_os_str(), "-o".as_ref(), built.as_os_str(), ".".as_ref()];
        let finished = run(&go, std::iter::once("build".as_ref()).chain(arguments));
        if finished.status.success() { Ok(built) } else { Err(finished.both()) }
    });
    match built {
        Ok(built) => Some(built),
        Err(said) => {
            skip(&format!("this Go can't build the client ({test}): {said}"));
            None
        }
    }
}

/// Runs all cases by grpc-go's client: `arguments` say whom it asks.
pub(crate) fn passes(program: &Path, arguments: &[&str]) {
    assert_passed(program, arguments, CASES_COUNT);
}

/// The same for all cases but one.
pub(crate) fn passes_except(case: &str, program: &Path, address: &str) {
    assert_passed(program, &["-except", case, address], CASES_COUNT - 1);
}

fn assert_passed(program: &Path, arguments: &[&str], count: usize) {
    let told = run(program, arguments).well().text();
    let passed = told.lines().filter(|line| line.starts_with("passed ")).count();
    assert_eq!(passed, count, "{arguments:?}: {told}");
}

/// grpc-go's server; it is killed when this goes out of scope.
pub(crate) struct GoServer {
    child: Child,
    /// URLs at which it is asked, as a proxy has them: over h2c, and over TLS.
    pub(crate) urls: [String; 2],
}

impl GoServer {
    pub(crate) fn start(program: &Path) -> Self {
        let mut child = Command::new(program)
            .arg("-serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server can be started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the server says its ports");
        let (clear, secure) = line.trim().split_once(' ').expect("two ports");
        let urls = [format!("h2c://127.0.0.1:{clear}"), format!("https://127.0.0.1:{secure}")];
        Self { child, urls }
    }
}

impl Drop for GoServer {
    fn drop(&mut self) {
        // It may have ended on its own: then there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_go_passes_its_own_cases() {
    let Some(program) = program("grpc_go") else { return };
    passes(program, &[&start().await.to_string()]);
}

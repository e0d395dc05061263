//! Place of the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of the program `bolide`.
pub type Program = &'static Path;

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The program under test: what `BOLIDE_BIN` names, else the build of this repository that is made with its
/// tests, made fresh if need be.
pub fn program() -> Program {
    PROGRAM.get_or_init(|| match std::env::var_os("BOLIDE_BIN") {
        Some(path) => path.into(),
        None => build(),
    })
}

/// The root of the repository.
pub fn root() -> &'static Path {
    let launcher = Path::new(env!("CARGO_MANIFEST_DIR"));
    launcher.ancestors().nth(2).expect("the launcher lies two directories below the root")
}

/// Copies a program to a place where every user may run it. `install` writes it, because what this process itself writes can't be
/// executed (ETXTBSY) until the children that it starts meanwhile have executed their programs: they hold its open files.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("install").args(["-m", "755"]).arg(from).arg(to).status();
    assert!(copied.expect("install is part of every system").success(), "{}", from.display());
}

fn build() -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "bolide-cli"])
        .current_dir(root())
        .status()
        .expect("cargo runs this test, so it can be run");
    assert!(built.success(), "the program can't be built: see above");
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root().join("target"), PathBuf::from);
    target.join("debug/bolide")
}

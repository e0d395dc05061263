//! Packages that carry the program: a wheel, a Debian package, the files of a container image.
//!
//! Each is made from the build that is published, stripped, below `target/packages`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::builds;
use crate::report::Report;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How one kind is made and tried.
struct Kind {
    name: &'static str,
    /// Makes it of the stripped program, in an empty directory; returns what to install.
    make: fn(&Maker, &Path) -> Result<PathBuf, String>,
    /// Installs it below an empty directory; returns the command that runs the program from there.
    install: fn(&Path, &Path) -> Result<Command, String>,
}

const KINDS: &[Kind] = &[
    Kind { name: "wheel", make: Maker::wheel, install: install_wheel },
    Kind { name: "deb", make: Maker::deb, install: install_deb },
    Kind { name: "container", make: Maker::container, install: install_container },
];

/// `cargo xtask dist [wheel|deb|container]…`: of the program that `BOLIDE_BIN` names, or the build that is published.
pub(crate) fn run(wanted: &[String]) -> ExitCode {
    if let Some(unknown) = wanted.iter().find(|name| KINDS.iter().all(|kind| kind.name != **name)) {
        eprintln!("there is no package `{unknown}`; there are: wheel, deb, container");
        return ExitCode::from(2);
    }
    let root = crate::root();
    let mut report = Report::default();
    let program = match std::env::var_os("BOLIDE_BIN") {
        Some(program) => PathBuf::from(program),
        None => builds::built(&mut report, &root, builds::MEASURED),
    };
    every(&mut report, &root, &program, wanted);
    report.finish()
}

/// This task as a command: makes and tries each package of `program`.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = crate::task("dist");
    command.env("BOLIDE_BIN", program);
    command
}

/// Makes and tries each package of these names; all of them when there are none.
fn every(report: &mut Report, root: &Path, program: &Path, wanted: &[String]) {
    let is_wanted = |kind: &&Kind| wanted.is_empty() || wanted.iter().any(|name| name == kind.name);
    for kind in KINDS.iter().filter(is_wanted) {
        report.check(&format!("package: {}", kind.name), || {
            carry_out(kind, root, program).err().into_iter().collect()
        });
    }
}

fn carry_out(kind: &Kind, root: &Path, program: &Path) -> Result<(), String> {
    let directory = root.join("target/packages").join(kind.name);
    let [made, tried] = ["made", "tried"].map(|name| directory.join(name));
    for directory in [&made, &tried] {
        if directory.exists() {
            fs::remove_dir_all(directory).map_err(|error| said(directory, &error))?;
        }
        fs::create_dir_all(directory).map_err(|error| said(directory, &error))?;
    }
    let stripped = directory.join("bolide");
    done(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
    let maker = Maker { root: root.to_owned(), program: stripped };
    let package = (kind.make)(&maker, &made)?;
    println!("{}", package.display());
    let version = done((kind.install)(&package, &tried)?.arg("--version"))?;
    let expected = format!("bolide {VERSION}");
    if version.trim() == expected {
        return Ok(());
    }
    Err(format!("{} says `{}`, not `{expected}`", package.display(), version.trim()))
}

struct Maker {
    root: PathBuf,
    /// Stripped.
    program: PathBuf,
}

impl Maker {
    fn wheel(&self, directory: &Path) -> Result<PathBuf, String> {
        let mut command = Command::new("python3");
        command.arg(self.root.join("packaging/wheel.py")).arg(&self.program).arg(VERSION);
        command.arg(self.root.join("README.md")).arg(directory);
        Ok(PathBuf::from(done(&mut command)?.trim()))
    }

    fn deb(&self, directory: &Path) -> Result<PathBuf, String> {
        let tree = directory.join("tree");
        let packaging = self.root.join("packaging");
        copy(&self.program, &tree.join("usr/bin/bolide"))?;
        let pages = tree.join("usr/share/man/man1");
        fs::create_dir_all(&pages).map_err(|error| said(&pages, &error))?;
        done(Command::new(&self.program).arg("man").arg(&pages))?;
        for page in fs::read_dir(&pages).map_err(|error| said(&pages, &error))?.flatten() {
            done(Command::new("gzip").arg("-9n").arg(page.path()))?;
        }
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/bolide"),
            ("zsh", "usr/share/zsh/vendor-completions/_bolide"),
            ("fish", "usr/share/fish/vendor_completions.d/bolide.fish"),
        ] {
            let script = done(Command::new(&self.program).args(["completions", shell]))?;
            write(&tree.join(path), &script)?;
        }
        for unit in ["bolide.service", "bolide.socket"] {
            let text = read(&packaging.join("systemd").join(unit))?;
            let text = text.replace("/usr/local/bin/", "/usr/bin/");
            write(&tree.join("lib/systemd/system").join(unit), &text)?;
        }
        copy(&packaging.join("systemd/bolide.toml"), &tree.join("etc/bolide/bolide.toml"))?;
        for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
            copy(&self.root.join(file), &tree.join("usr/share/doc/bolide").join(file))?;
        }
        let glibc = done(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
        let architecture = done(Command::new("dpkg").arg("--print-architecture"))?;
        let size = fs::metadata(&self.program).map_err(|error| said(&self.program, &error))?.len();
        let control = read(&packaging.join("debian/control"))?
            .replace("{version}", VERSION)
            .replace("{architecture}", architecture.trim())
            .replace("{kibibytes}", &(size / 1024).to_string())
            .replace("{glibc}", glibc.trim().trim_start_matches("glibc "));
        write(&tree.join("DEBIAN/control"), &control)?;
        write(&tree.join("DEBIAN/conffiles"), "/etc/bolide/bolide.toml\n")?;
        let script = tree.join("DEBIAN/postinst");
        copy(&packaging.join("debian/postinst"), &script)?;
        done(Command::new("chmod").arg("0755").arg(&script))?;
        let package = directory.join(format!("bolide_{VERSION}_{}.deb", architecture.trim()));
        let build = ["--root-owner-group", "--build"];
        done(Command::new("dpkg-deb").args(build).arg(&tree).arg(&package))?;
        Ok(package)
    }

    /// The directory for `docker build` or `podman build`: the image needs nothing of another one.
    fn container(&self, directory: &Path) -> Result<PathBuf, String> {
        let tree = directory.join("root");
        copy(&self.program, &tree.join("usr/bin/bolide"))?;
        let linked = done(Command::new("ldd").arg(&self.program))?;
        let libraries = linked.split_whitespace().filter(|word| word.starts_with('/'));
        for library in libraries {
            copy(Path::new(library), &tree.join(library.trim_start_matches('/')))?;
        }
        let authorities = Path::new("/etc/ssl/certs/ca-certificates.crt");
        if authorities.exists() {
            copy(authorities, &tree.join("etc/ssl/certs/ca-certificates.crt"))?;
        }
        let file = "Containerfile";
        copy(&self.root.join("packaging/container").join(file), &directory.join(file))?;
        Ok(directory.to_owned())
    }
}

fn install_wheel(package: &Path, directory: &Path) -> Result<Command, String> {
    done(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
    let install = ["install", "--quiet", "--no-index", "--disable-pip-version-check"];
    done(Command::new(directory.join("bin/pip")).args(install).arg(package))?;
    Ok(Command::new(directory.join("bin/bolide")))
}

/// Unpacks it: to install it would change the machine.
fn install_deb(package: &Path, directory: &Path) -> Result<Command, String> {
    done(Command::new("dpkg-deb").arg("--extract").arg(package).arg(directory))?;
    let program = directory.join("usr/bin/bolide");
    let configuration = directory.join("etc/bolide/bolide.toml");
    done(Command::new(&program).args(["serve", "--check", "--config"]).arg(configuration))?;
    Ok(Command::new(program))
}

/// Runs it as a container would, with nothing but its own files.
fn install_container(package: &Path, _: &Path) -> Result<Command, String> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--root"]).arg(package.join("root"));
    command.arg("/usr/bin/bolide");
    Ok(command)
}

/// Runs a command to its end; returns what it prints.
fn done(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("`{name}` can't be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("`{name}` failed ({}): {why}", output.status))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_room(to)?;
    fs::copy(from, to).map(drop).map_err(|error| said(from, &error))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| said(path, &error))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    make_room(path)?;
    fs::write(path, text).map_err(|error| said(path, &error))
}

fn make_room(path: &Path) -> Result<(), String> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory).map_err(|error| said(directory, &error))
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

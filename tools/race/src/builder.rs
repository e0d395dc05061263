//! Contenders of our own are built from their sources once: until a byte of those changes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::contender::{Build, Contender, Sources};
use crate::interrupt::Interrupt;
use crate::process::{find_program, last_lines};

/// The profile of cargo by which contenders are built: this program's own, so that all have the same chances.
pub(crate) const PROFILE: &str =
    if matches!(env!("BOLIDE_PROFILE").as_bytes(), b"dist") { "dist" } else { "release" };

/// Lies in a directory whose build has come to its end.
const DONE: &str = "built";

/// Place of a contender's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Directory of what the build makes.
    pub(crate) out: PathBuf,
    directory: PathBuf,
    is_built: bool,
}

/// Finds where `contender` is built, and whether that has been done.
pub(crate) fn place(
    contender: &Contender,
    build: &Build,
    sources: &Sources,
    cache: &Path,
) -> Result<Place, String> {
    let beside = sources.beside(&build.beside)?;
    let files = sources.files(&build.sources)?;
    if files.is_empty() {
        return Err(format!("its sources `contenders/{}` are not there", build.sources));
    }
    let mut hash = Fnv::new();
    for (name, text) in files.iter().chain(&beside) {
        hash.add(name.as_bytes());
        hash.add(text);
    }
    for word in build.command.iter().chain(&build.package).map(String::as_str).chain([PROFILE]) {
        hash.add(word.as_bytes());
    }
    let directory = cache.join(format!("{}-{:016x}", contender.name, hash.0));
    let is_built = directory.join(DONE).is_file();
    Ok(Place { out: directory.join("out"), directory, is_built })
}

/// Builds packages of the checkout's workspace together, so that every core has something to do; each is taken from there when its
/// own contender is built, which also says what is wrong with it.
pub(crate) fn build_packages(
    packages: &[&str],
    sources: &Sources,
    cache: &Path,
    interrupt: &Interrupt,
) -> Result<(), String> {
    let Some(directory) = sources.directory() else { return Ok(()) };
    let mut words = vec!["cargo", "build", "--locked", "--profile", PROFILE];
    words.extend(packages.iter().flat_map(|package| ["--package", package]));
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    fs::create_dir_all(cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    run(&words, directory, &cache.join("packages.log"), interrupt).map(drop)
}

/// How long `contender` takes to build, about; nothing if it need not or can't be built.
pub(crate) fn estimate(contender: &Contender, sources: &Sources, cache: &Path) -> Option<Duration> {
    let build = contender.build.as_ref()?;
    let mut needed = contender.detect.programs.iter().chain(&build.needs);
    let can_be = needed.all(|program| find_program(program).is_some());
    let is_built = place(contender, build, sources, cache).ok()?.is_built;
    (can_be && !is_built).then(|| Duration::from_secs(u64::from(build.seconds)))
}

impl Place {
    /// Builds, if that has not been done.
    pub(crate) fn build(
        &self,
        build: &Build,
        sources: &Sources,
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        if self.is_built {
            return Ok(());
        }
        for program in &build.needs {
            if find_program(program).is_none() {
                return Err(format!("its build needs `{program}`, which is not in PATH"));
            }
        }
        let failed = |error: std::io::Error| format!("{}: {error}", self.directory.display());
        let src = self.directory.join("src");
        for (name, text) in sources.files(&build.sources)? {
            let file = src.join(name);
            fs::create_dir_all(file.parent().unwrap_or(&src)).map_err(failed)?;
            fs::write(&file, text).map_err(failed)?;
        }
        fs::create_dir_all(&self.out).map_err(failed)?;
        let log = self.directory.join("log");
        let status = run(&self.words(build, sources), &src, &log, interrupt)?;
        if !status.success() {
            let said = last_lines(&log);
            return Err(format!("its build failed ({status}); it said\n{said}"));
        }
        fs::write(self.directory.join(DONE), b"").map_err(failed)
    }

    /// The words of the command that builds it.
    fn words(&self, build: &Build, sources: &Sources) -> Vec<String> {
        let out = self.out.display().to_string();
        let contenders = sources.directory().unwrap_or_else(|| Path::new("")).display().to_string();
        if build.package.is_some() {
            let path = format!("{contenders}/{}", build.sources);
            let from =
                ["cargo", "install", "--locked", "--no-track", "--profile", PROFILE, "--path"];
            return from
                .into_iter()
                .chain([path.as_str(), "--root", &out])
                .map(str::to_owned)
                .collect();
        }
        let filled = [("{out}", out), ("{contenders}", contenders)];
        let fill = |word: &String| {
            filled.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value))
        };
        build.command.iter().map(fill).collect()
    }
}

/// Runs a command in `directory` to its end; what it says goes to `log`.
fn run(
    words: &[String],
    directory: &Path,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<ExitStatus, String> {
    let failed = |error: std::io::Error| format!("its build can't be run: {error}");
    let (program, arguments) = words.split_first().ok_or("`build.command` is empty")?;
    let file = File::create(log).map_err(failed)?;
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(file.try_clone().map_err(failed)?)
        .stderr(file)
        .spawn()
        .map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if let Err(stopped) = interrupt.check() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(stopped);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// FNV-1a: tells versions of files apart; it is not attacked here.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        // The length keeps "ab", "c" and "a", "bc" apart.
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contender(command: &str) -> Contender {
        let text = format!(
            "name = 'mine'\nprotocols = ['h1']\nroutes = ['ping']\n[build]\nsources = 'mine'\n\
             command = ['sh', '-c', '{command}']\n[start]\ncommand = ['{{out}}/program']\n"
        );
        Contender::parse(&text, "mine.toml").unwrap()
    }

    fn directory(name: &str) -> PathBuf {
        let directory =
            std::env::temp_dir().join(format!("bolide-build-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("contenders/mine/deep")).unwrap();
        fs::write(directory.join("contenders/mine/deep/a.txt"), "one").unwrap();
        directory
    }

    fn build(root: &Path, command: &str) -> (Result<(), String>, bool) {
        let sources = Sources::Directory(root.join("contenders"));
        let contender = contender(command);
        let build = contender.build.clone().unwrap();
        let cache = root.join("cache");
        let place = place(&contender, &build, &sources, &cache).unwrap();
        let estimate = estimate(&contender, &sources, &cache);
        let done = place.build(&build, &sources, &Interrupt::default());
        (done, estimate.is_some())
    }

    #[test]
    fn a_build_is_done_once_until_a_source_changes() {
        let root = directory("once");
        let command = "cp deep/a.txt {out}/program";
        assert_eq!(build(&root, command), (Ok(()), true));
        assert_eq!(build(&root, command), (Ok(()), false));
        fs::write(root.join("contenders/mine/deep/a.txt"), "two").unwrap();
        assert_eq!(build(&root, command), (Ok(()), true));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_package_is_installed_from_its_directory() {
        let root = directory("package");
        let sources = Sources::Directory(root.join("contenders"));
        let build = |own: &str| {
            let text = format!(
                "name = 'mine'\nprotocols = ['h1']\nroutes = ['ping']\n[build]\nsources = 'mine'\n{own}\n\
                 [start]\ncommand = ['{{out}}/bin/mine']\n"
            );
            Contender::parse(&text, "mine.toml")
        };
        let contender = build("package = 'mine'").unwrap();
        let own = contender.build.clone().unwrap();
        let place = place(&contender, &own, &sources, &root.join("cache")).unwrap();
        let words = place.words(&own, &sources).join(" ");
        let (from, to) = (root.join("contenders/mine"), &place.out);
        let (from, to) = (from.display(), to.display());
        assert!(
            words.starts_with(&format!("cargo install --locked --no-track --profile {PROFILE} "))
        );
        assert!(words.ends_with(&format!(" --path {from} --root {to}")), "{words}");
        for wrong in ["", "package = 'mine'\ncommand = ['make']"] {
            assert!(build(wrong).unwrap_err().contains("either `command` or `package`"));
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_lies_beside_the_sources_is_reached_and_watched() {
        let root = directory("beside");
        let sources = Sources::Directory(root.join("contenders"));
        let mut contender = contender("cat {contenders}/../engine/b.txt > {out}/program");
        let build = contender.build.as_mut().unwrap();
        build.beside = vec!["../engine".to_owned()];
        let build = contender.build.clone().unwrap();
        let cache = root.join("cache");
        let missing = place(&contender, &build, &sources, &cache).unwrap_err();
        assert!(missing.contains("`contenders/../engine`"), "{missing}");
        fs::create_dir(root.join("engine")).unwrap();
        let mut places = Vec::new();
        for text in ["one", "two"] {
            fs::write(root.join("engine/b.txt"), text).unwrap();
            let place = place(&contender, &build, &sources, &cache).unwrap();
            place.build(&build, &sources, &Interrupt::default()).unwrap();
            assert_eq!(fs::read_to_string(place.out.join("program")).unwrap(), text);
            places.push(place);
        }
        assert_ne!(places[0], places[1]);
        let carried = place(&contender, &build, &Sources::Carried, &cache).unwrap_err();
        assert!(carried.contains("checkout"), "{carried}");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_build_that_fails_shows_its_last_words_and_is_tried_again() {
        let root = directory("fails");
        let command = "echo no such header; exit 4";
        let (done, _) = build(&root, command);
        assert!(done.unwrap_err().contains("no such header"));
        assert!(build(&root, command).1);
        fs::remove_dir_all(root).unwrap();
    }
}

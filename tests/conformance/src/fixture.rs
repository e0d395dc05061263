//! The directory that servers of files serve in these cases.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// The beginning of 2020.
const MODIFIED: Duration = Duration::from_secs(1_577_836_800);

/// Makes the directory, for a server whose name it takes; requests go to `/files/`.
pub fn directory(server: &str) -> PathBuf {
    let base = bolide_launcher::scratch(&format!("conformance-files-{server}"));
    let root = base.join("root");
    let files = root.join("files");
    fs::create_dir_all(files.join("directory")).expect("target can be written");
    fs::create_dir_all(base.join("beside")).expect("target can be written");
    for (path, content) in [
        ("secret", "secret"),
        ("beside/secret", "secret"),
        ("root/files/a.txt", "0123456789"),
        ("root/files/directory/index.html", "index"),
    ] {
        let path = base.join(path);
        fs::write(&path, content).expect("target can be written");
        let file = File::options().write(true).open(&path).expect("it was made just now");
        file.set_modified(SystemTime::UNIX_EPOCH + MODIFIED).expect("it is ours");
    }
    symlink("../../secret", files.join("out")).expect("target can be written");
    symlink("../../beside", files.join("out-directory")).expect("target can be written");
    let made = Command::new("mkfifo").arg(files.join("pipe")).status().expect("mkfifo is there");
    assert!(made.success(), "a pipe can be made");
    root
}

//! Paths that can be reached from a root, and those that can't: by the kernel's help, and without it.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A directory `root` with things in it, next to things that must not be seen.
struct Tree {
    temporary: TempDir,
}

impl Tree {
    fn new() -> Self {
        let temporary = TempDir::new().unwrap();
        let base = temporary.path();
        fs::create_dir_all(base.join("root/inner")).unwrap();
        fs::write(base.join("secret"), "secret").unwrap();
        fs::create_dir(base.join("root-beside")).unwrap();
        fs::write(base.join("root-beside/secret"), "secret").unwrap();
        fs::write(base.join("root/a"), "content").unwrap();
        fs::write(base.join("root/inner/b"), "inner").unwrap();
        Self { temporary }
    }

    fn root(&self) -> PathBuf {
        self.temporary.path().join("root")
    }

    /// The directory, opened in each way.
    fn directories(&self) -> [Directory; 2] {
        [true, false].map(|by_kernel| {
            let directory = Directory::open(&self.root()).unwrap();
            Directory { by_kernel: by_kernel && directory.by_kernel, ..directory }
        })
    }
}

fn content(directory: &Directory, name: &str) -> Result<String, io::ErrorKind> {
    match directory.open(name).map_err(|error| error.kind())? {
        Found::Directory => Ok("(directory)".to_owned()),
        Found::File(file) => {
            let mut bytes = [0; 100];
            let count = file.read_at(&mut bytes, 0).unwrap();
            Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
        }
    }
}

#[test]
fn files_and_directories_are_told_apart() {
    let tree = Tree::new();
    for directory in tree.directories() {
        assert_eq!(content(&directory, "a").as_deref(), Ok("content"));
        assert_eq!(content(&directory, "inner/b").as_deref(), Ok("inner"));
        assert_eq!(content(&directory, "inner").as_deref(), Ok("(directory)"));
        assert_eq!(content(&directory, "").as_deref(), Ok("(directory)"));
        assert_eq!(content(&directory, "none"), Err(io::ErrorKind::NotFound));
        assert!(content(&directory, "a/b").is_err());
        assert!(content(&directory, &"n".repeat(300)).is_err());
    }
}

#[test]
fn links_that_stay_inside_are_followed_and_others_refused() {
    let tree = Tree::new();
    let root = tree.root();
    let outside = tree.temporary.path();
    symlink("a", root.join("relative")).unwrap();
    symlink("../a", root.join("inner/up")).unwrap();
    symlink(root.join("a"), root.join("absolute")).unwrap();
    symlink(root.join("inner"), root.join("directory")).unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink(outside.join("secret"), root.join("out-absolute")).unwrap();
    symlink("../root-beside", root.join("beside")).unwrap();
    symlink("out", root.join("out-by-two")).unwrap();
    symlink("/", root.join("everything")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    for directory in tree.directories() {
        for name in ["relative", "inner/up", "absolute"] {
            assert_eq!(content(&directory, name).as_deref(), Ok("content"), "{name}");
        }
        assert_eq!(content(&directory, "directory/b").as_deref(), Ok("inner"));
        for name in [
            "out",
            "out-absolute",
            "out-by-two",
            "beside/secret",
            "beside",
            "everything",
            "everything/etc/hostname",
            "loop",
            "magic/etc/hostname",
            "../secret",
            "inner/../../secret",
            "/etc/hostname",
        ] {
            assert!(content(&directory, name).is_err(), "{name}");
        }
    }
}

#[test]
fn what_is_no_file_is_not_touched() {
    let tree = Tree::new();
    let pipe = tree.root().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.root().join("socket")).unwrap();
    for directory in tree.directories() {
        assert_eq!(content(&directory, "pipe"), Err(io::ErrorKind::NotFound));
        assert!(content(&directory, "socket").is_err());
        let listed = directory.list("", 100).unwrap();
        assert!(!listed.iter().any(|entry| entry.name == "pipe" || entry.name == "socket"));
    }
}

#[test]
fn a_root_that_is_swapped_stays_the_one_that_was_opened() {
    let tree = Tree::new();
    let directories = tree.directories();
    let moved = tree.temporary.path().join("moved");
    fs::rename(tree.root(), &moved).unwrap();
    symlink("/etc", tree.root()).unwrap();
    let [by_kernel, checked] = &directories;
    assert_eq!(content(by_kernel, "a").as_deref(), Ok("content"));
    for directory in [by_kernel, checked] {
        for name in ["hostname", "passwd"] {
            assert!(content(directory, name).is_err(), "{name}");
        }
    }
}

#[test]
fn a_listing_names_what_can_be_asked_for() {
    let tree = Tree::new();
    symlink("../secret", tree.root().join("out")).unwrap();
    for directory in tree.directories() {
        let mut listed = directory.list("", 100).unwrap();
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        let names: Vec<_> = listed.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "inner", "out"]);
        assert_eq!(listed[0].length, Some(7));
        assert!(listed[1].is_directory);
        assert_eq!(listed[2].length, None, "a link says nothing of what it leads to");
        assert_eq!(directory.list("", 2).unwrap().len(), 2);
        assert!(directory.list("a", 2).is_err());
    }
}

#[test]
fn a_stamp_tells_versions_apart() {
    let tree = Tree::new();
    let [directory, _] = tree.directories();
    let stamp = |name| match directory.open(name).unwrap() {
        Found::File(file) => file.stamp().unwrap(),
        Found::Directory => panic!("{name} is a directory"),
    };
    let before = stamp("a");
    assert_eq!(before, stamp("a"));
    assert_eq!(before.length, 7);
    fs::write(tree.root().join("new"), "CONTENT").unwrap();
    fs::rename(tree.root().join("new"), tree.root().join("a")).unwrap();
    assert_ne!(before, stamp("a"));
}

#[test]
#[cfg(target_os = "linux")]
fn what_the_system_remembers_to_be_missing_needs_no_disk() {
    let tree = Tree::new();
    let [directory, _] = tree.directories();
    assert!(!directory.is_missing_now("a") && !directory.is_missing_now("inner"));
    for name in ["none", "none/below"] {
        assert!(content(&directory, name).is_err(), "{name}");
        if directory.by_kernel {
            assert!(directory.is_missing_now(name), "{name}: it was looked up just now");
        }
    }
    fs::write(tree.root().join("none"), "it is there now").unwrap();
    assert!(!directory.is_missing_now("none"));
}

use std::io::{BufRead, BufReader};

use super::*;

/// A directory that is gone after its test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("bolide-race-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn shell(name: &str, script: &str, cores: &[usize]) -> (Process, Directory) {
    let directory = Directory::new(name);
    let process = Process::start(&Launch {
        command: vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()],
        env: BTreeMap::new(),
        log: directory.0.join("log"),
        directory: directory.0.clone(),
        cores: cores.to_vec(),
    });
    (process.unwrap(), directory)
}

/// Waits until the process has written `count` lines: an event, not a time.
fn lines(process: &Process, count: usize) -> Vec<String> {
    loop {
        let file = BufReader::new(File::open(&process.log).unwrap());
        let lines: Vec<String> = file.lines().map(Result::unwrap).collect();
        if lines.len() >= count {
            return lines;
        }
        thread::yield_now();
    }
}

#[test]
fn a_tree_is_stopped_with_its_root_even_by_a_panic() {
    let script =
        "sh -c 'echo $$; sleep 100; true' & setsid sh -c 'echo $$; sleep 100; true' & wait";
    let (process, _directory) = shell("tree", script, &[]);
    let children: Vec<u32> = lines(&process, 2).iter().map(|line| line.parse().unwrap()).collect();
    let all = tree(process.id());
    assert!(children.iter().all(|child| all.contains(child)), "{all:?} {children:?}");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _running = process;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert!(!all.iter().any(|id| is_alive(*id)));
}

#[test]
fn a_process_that_ignores_the_polite_request_is_killed() {
    let (mut process, _directory) =
        shell("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done", &[]);
    lines(&process, 1);
    let id = process.id();
    process.stop();
    assert!(!is_alive(id));
}

#[test]
fn cpu_time_counts_what_was_computed() {
    let core = *available().last().unwrap();
    let (process, _directory) = shell("busy", "echo up; while :; do :; done", &[core]);
    lines(&process, 1);
    let ids = tree(process.id());
    let before = Reading::of(&ids);
    loop {
        let now = Reading::of(&ids);
        let (used, passed) = now.since(&before);
        assert!(used <= passed + Duration::from_millis(20), "{used:?} in {passed:?}");
        if used > Duration::from_millis(100) {
            assert!(now.cores_since(&before) <= 1.05);
            break;
        }
        thread::yield_now();
    }
    assert!(resident_memory_bytes(&ids) > 100_000);
    assert!(peak_memory_bytes(&ids) >= resident_memory_bytes(&ids) / 2);
}

#[test]
fn a_child_stays_on_its_cores() {
    let core = *available().last().unwrap();
    let (process, _directory) =
        shell("pinned", "grep Cpus_allowed_list /proc/self/status", &[core]);
    let line = lines(&process, 1).remove(0);
    assert!(line.trim_end().ends_with(&format!("\t{core}")), "{line}");
}

#[test]
fn the_last_words_are_the_last_ten_lines() {
    let (mut process, _directory) =
        shell("words", "for i in $(seq 30); do echo line $i; done; exit 3", &[]);
    while process.ended().is_none() {
        thread::yield_now();
    }
    assert_eq!(process.ended().unwrap().code(), Some(3));
    let last = process.last_lines();
    assert!(last.starts_with("    line 21\n") && last.ends_with("line 30"), "{last}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let directory = Directory::new("none");
    let launch = Launch {
        command: vec!["no-such-program-here".to_owned()],
        env: BTreeMap::new(),
        directory: directory.0.clone(),
        log: directory.0.join("log"),
        cores: Vec::new(),
    };
    let error = Process::start(&launch).unwrap_err();
    assert!(error.contains("no-such-program-here"), "{error}");
    assert_eq!(find_program("no-such-program-here"), None);
    assert!(find_program("sh").is_some());
}

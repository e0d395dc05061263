//! A mistake on the command line is one sentence that names what, where and what to do; the exit code
//! is 2, and nothing has been started.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use bolide_launcher::{Finished, copy_program, find, program, run, scratch};

/// Runs `bolide` with a mistake, and checks what is true of all of them.
#[track_caller]
fn mistaken(arguments: &[&str]) -> String {
    judged(run(program(), arguments), arguments)
}

#[track_caller]
fn judged(finished: Finished, arguments: &[&str]) -> String {
    let said = String::from_utf8_lossy(&finished.stderr).into_owned();
    assert_eq!(finished.status.code(), Some(2), "{arguments:?}: {}", finished.both());
    assert_eq!(finished.text(), "", "{arguments:?}: something was started");
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    said
}

/// The same for what isn't a mistake in an option's form: one line, and its words.
#[track_caller]
fn one_sentence(arguments: &[&str], words: &[&str]) {
    let said = mistaken(arguments);
    assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?} says nothing of {word}: {said}");
    }
}

/// An address without a listener.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A certificate and its key, as files.
fn pair(directory: &Path, name: &str) -> [PathBuf; 2] {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let paths = [directory.join(format!("{name}.crt")), directory.join(format!("{name}.key"))];
    std::fs::write(&paths[0], made.cert.pem()).unwrap();
    std::fs::write(&paths[1], made.signing_key.serialize_pem()).unwrap();
    paths
}

#[test]
fn a_busy_port() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    one_sentence(&["serve", "--http", &address], &[&address, "another process"]);
    one_sentence(&["serve", "--https", &address], &[&address, "another process"]);
}

#[test]
fn a_busy_port_beside_a_free_one_starts_neither() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, other) = (busy.local_addr().unwrap().to_string(), free());
    one_sentence(&["serve", "--http", &other, "--http", &address], &[&address, "another process"]);
    assert!(TcpStream::connect(&other).is_err(), "something listens on {other}");
}

#[test]
fn an_address_of_another_machine() {
    // An address that is reserved for documentation (RFC 5737).
    one_sentence(&["serve", "--http", "192.0.2.1:8080"], &["192.0.2.1:8080"]);
}

#[test]
fn no_address_at_all() {
    for address in ["nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "300.0.0.1:80", ""] {
        let said = mistaken(&["serve", "--http", address]);
        assert!(said.contains("--http"), "{address}: {said}");
    }
    assert!(mistaken(&["serve", "--http"]).contains("--http"));
}

#[test]
fn files_that_cannot_be_read() {
    let directory = scratch("files_that_cannot_be_read");
    let [certificate, key] = pair(&directory, "good").map(|path| path.display().to_string());
    let (missing, directory) =
        (directory.join("missing").display().to_string(), directory.display().to_string());
    let address = free();
    for bad in [&missing, &directory] {
        for (certificate, key) in [(bad, &key), (&certificate, bad)] {
            let serve = ["serve", "--https", &address, "--cert", certificate, "--key", key];
            one_sentence(&serve, &[bad.as_str()]);
        }
    }
}

#[test]
fn files_that_hold_something_else() {
    let directory = scratch("files_that_hold_something_else");
    let [certificate, key] = pair(&directory, "good").map(|path| path.display().to_string());
    let address = free();
    for (name, content) in [
        ("empty", String::new()),
        ("prose", "This is no certificate.\n".to_owned()),
        ("broken", "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n".to_owned()),
        ("cut", std::fs::read_to_string(&certificate).unwrap()[..200].to_owned()),
    ] {
        let path = directory.join(name);
        std::fs::write(&path, content).unwrap();
        let path = path.display().to_string();
        for (certificate, key) in [(&path, &key), (&certificate, &path)] {
            let serve = ["serve", "--https", &address, "--cert", certificate, "--key", key];
            one_sentence(&serve, &[path.as_str()]);
        }
    }
}

#[test]
fn files_in_each_others_place() {
    let directory = scratch("files_in_each_others_place");
    let [certificate, key] = pair(&directory, "good").map(|path| path.display().to_string());
    let address = free();
    let serve = ["serve", "--https", &address, "--cert", &key, "--key", &certificate];
    one_sentence(&serve, &[key.as_str()]);
}

#[test]
fn a_key_of_another_certificate() {
    let directory = scratch("a_key_of_another_certificate");
    let [certificate, _] = pair(&directory, "one").map(|path| path.display().to_string());
    let [_, key] = pair(&directory, "other").map(|path| path.display().to_string());
    let address = free();
    let serve = ["serve", "--https", &address, "--cert", &certificate, "--key", &key];
    one_sentence(&serve, &[certificate.as_str(), key.as_str()]);
}

#[test]
fn a_certificate_without_its_key() {
    let said = mistaken(&["serve", "--cert", "a.crt"]);
    assert!(said.contains("--key"), "{said}");
    let said = mistaken(&["serve", "--key", "a.key"]);
    assert!(said.contains("--cert"), "{said}");
}

#[test]
fn a_root_that_is_none() {
    let directory = scratch("a_root_that_is_none");
    let file = directory.join("file");
    std::fs::write(&file, "").unwrap();
    let (file, missing) =
        (file.display().to_string(), directory.join("missing").display().to_string());
    one_sentence(&["serve", "--root", &file], &["root", &file, "not a directory"]);
    one_sentence(&["serve", "--root", &missing], &["root", &missing, "doesn't exist"]);
    let directory = directory.display().to_string();
    let said = mistaken(&["serve", "--root", &directory, "--cache-control", "nothing"]);
    assert!(said.contains("--cache-control"), "{said}");
    assert!(mistaken(&["serve", "--listing"]).contains("--root"));
}

#[test]
fn an_unknown_option_names_the_nearest() {
    for (wrong, right) in [("--htpp", "--http"), ("--htps", "--https"), ("--worker", "--workers")] {
        let said = mistaken(&["serve", wrong, "1"]);
        assert!(said.contains(right), "{wrong}: {said}");
    }
    assert!(mistaken(&["sevre"]).contains("serve"));
}

#[test]
fn a_number_of_workers_that_makes_no_sense() {
    for workers in ["0", "-1", "many", "100000", ""] {
        let option = format!("--workers={workers}");
        let said = mistaken(&["serve", &option]);
        assert!(said.contains("--workers"), "{workers}: {said}");
    }
}

#[test]
fn a_privileged_port() {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let first: u16 = first.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024);
    if first == 0 {
        // On this machine every user may listen on any port: there is no such mistake.
        return;
    }
    let arguments = ["serve", "--http", "127.0.0.1:1"];
    let is_root = TcpListener::bind("127.0.0.1:1").is_ok();
    let said = if is_root {
        // Only another user can make this mistake: with a copy that every user may run.
        let Some(setpriv) = find("setpriv", "a_privileged_port") else { return };
        let copy = std::env::temp_dir().join(format!("bolide-{}", std::process::id()));
        copy_program(program(), &copy);
        let path = copy.display().to_string();
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", &path];
        let finished = run(&setpriv, nobody.iter().chain(&arguments));
        std::fs::remove_file(&copy).unwrap();
        judged(finished, &arguments)
    } else {
        mistaken(&arguments)
    };
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.contains("127.0.0.1:1") && said.contains("privilege"), "{said}");
}

#[test]
fn an_upstream_that_cannot_be() {
    let directory = scratch("an_upstream_that_cannot_be");
    let empty = directory.join("empty.pem").display().to_string();
    std::fs::write(&empty, "").unwrap();
    for (url, word) in [
        ("127.0.0.1:9000", "has no scheme"),
        ("ftp://127.0.0.1", "scheme is not known"),
        ("http://127.0.0.1/path", "only a host and a port"),
        ("http://no-such-host.invalid:80", "has no address"),
        ("unix:relative", "begins with a slash"),
    ] {
        one_sentence(&["serve", "--proxy", url], &["--proxy", url, word]);
    }
    let secure = ["serve", "--proxy", "https://127.0.0.1:1", "--proxy-ca", &empty];
    one_sentence(&secure, &["--proxy-ca", &empty]);
    assert!(mistaken(&["serve", "--builtin"]).contains("--proxy"));
}

#[test]
fn files_that_could_not_be_written() {
    let directory = scratch("files_that_could_not_be_written");
    let missing = directory.join("missing").join("file").display().to_string();
    let address = free();
    for (option, more) in
        [("--pid-file", None), ("--access-log", None), ("--profile-json", Some("--profile"))]
    {
        let mut serve = vec!["serve", "--http", &address, option, &missing];
        serve.extend(more);
        one_sentence(&serve, &[option, &missing, "No such file"]);
        serve.push("--check");
        one_sentence(&serve, &[option, &missing, "No such file"]);
    }
}

#[test]
fn a_measurement_that_cannot_begin_makes_no_report() {
    let directory = scratch("a_measurement_that_cannot_begin");
    let report = directory.join("report.json");
    let path = report.display().to_string();
    let missing = directory.join("missing").join("file").display().to_string();
    for (right, wrong, word) in [
        (&["http://127.0.0.1:1/5"][..], &["http://127.0.0.1:1/5", "-n", "6"][..], "-n"),
        (&["http://127.0.0.1:1/", "--rpm"], &["ws://127.0.0.1:1/", "--rpm"], "--rpm"),
    ] {
        one_sentence(&[&["measure", "--json", &path], wrong].concat(), &[word]);
        assert!(!report.exists(), "{wrong:?}");
        let measure = [&["measure", "--json", &missing], right].concat();
        one_sentence(&measure, &["--json", &missing, "No such file"]);
    }
}

#[test]
fn an_encrypted_key() {
    let directory = scratch("an_encrypted_key");
    let [certificate, key] = pair(&directory, "good");
    let encrypted =
        std::fs::read_to_string(&key).unwrap().replace(" PRIVATE", " ENCRYPTED PRIVATE");
    std::fs::write(&key, encrypted).unwrap();
    let [certificate, key] = [certificate, key].map(|path| path.display().to_string());
    let serve = ["serve", "--https", "127.0.0.1:0", "--cert", &certificate, "--key", &key];
    one_sentence(&serve, &[&key, "is encrypted", "openssl pkey"]);
}

#[test]
fn a_page_for_what_is_not_found_that_is_not_there() {
    let directory = scratch("a_page_that_is_not_there").display().to_string();
    let serve =
        ["serve", "--http", "127.0.0.1:0", "--root", &directory, "--not-found", "nope.html"];
    one_sentence(&serve, &["--not-found nope.html", "not in the root directory"]);
}

#[test]
fn times_and_targets_that_make_no_sense() {
    let said = mistaken(&["serve", "--upgrade-timeout", "0s"]);
    assert!(said.contains("--upgrade-timeout") && said.contains("must be at least 1ms"), "{said}");
    let said = mistaken(&["serve", "--log-level", "info,bolide::tsl=debug"]);
    assert!(said.contains("`bolide::tsl=debug` is not a target (`bolide::tls`?)"), "{said}");
}

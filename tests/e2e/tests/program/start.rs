//! Output of the program when nothing is wrong.

use std::io::{BufRead, BufReader};

use bolide_launcher::{Server, find, finish, program, run, scratch, spawn};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn help_is_no_mistake() {
    for arguments in [["--help"].as_slice(), &["serve", "--help"], &["--version"]] {
        let text = run(program(), arguments).well().text();
        assert!(text.contains("bolide") || text.contains("--http"), "{arguments:?}: {text}");
    }
    let help = run(program(), ["serve", "--help"]).well().text();
    let options = ["--http", "--https", "--no-https", "--cert", "--key", "--workers"];
    for option in options.into_iter().chain(["--admin", "--access-log", "--log-level"]) {
        assert!(help.contains(option), "{option} is missing: {help}");
    }
}

#[test]
fn several_listeners_of_each_kind() {
    let Some(curl) = find("curl", "several_listeners_of_each_kind") else { return };
    let any = "127.0.0.1:0";
    let server = Server::start(&[
        "--http", any, "--http", any, "--https", any, "--https", any, "--http", "[::1]:0",
    ]);
    assert_eq!(server.urls().len(), 5);
    for url in server.urls() {
        let text = run(&curl, ["-sSk", &format!("{url}/ping")]).well().text();
        assert_eq!(text, "pong", "{url}");
    }
}

#[test]
fn a_certificate_from_files() {
    let Some(openssl) = find("openssl", "a_certificate_from_files") else { return };
    let Some(curl) = find("curl", "a_certificate_from_files") else { return };
    let directory = scratch("a_certificate_from_files");
    let kinds: [&[&str]; 2] =
        [&["-newkey", "rsa:2048"], &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]];
    for kind in kinds {
        let certificate = directory.join("certificate").display().to_string();
        let key = directory.join("key").display().to_string();
        let make = ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"];
        let files =
            ["-addext", "subjectAltName=IP:127.0.0.1", "-out", &certificate, "-keyout", &key];
        run(&openssl, make.iter().chain(kind).chain(&files)).well();
        let server =
            Server::start(&["--https", "127.0.0.1:0", "--cert", &certificate, "--key", &key]);
        // curl checks the certificate here: it is the one that the server was given.
        let url = format!("{}/ping", server.https());
        let text = run(&curl, ["-sS", "--cacert", &certificate, &url]).well().text();
        assert_eq!(text, "pong", "{kind:?}");
    }
}

#[test]
fn the_landing_page_says_what_there_is() {
    let Some(curl) = find("curl", "the_landing_page_says_what_there_is") else { return };
    let server = Server::start_both();
    for (option, url, version) in [
        ("--http1.1", server.http(), "HTTP/1.1"),
        ("--http2-prior-knowledge", server.http(), "HTTP/2"),
        ("--http2", server.https(), "HTTP/2"),
    ] {
        let text = run(&curl, ["-sSki", option, &format!("{url}/")]).well().text();
        assert!(text.to_ascii_lowercase().contains("content-type: text/html"), "{text}");
        for word in [version, "/ping", "/echo", "127.0.0.1"] {
            assert!(text.contains(word), "{url} says nothing of {word}: {text}");
        }
    }
}

#[test]
fn how_many_file_descriptors_there_are_is_said() {
    let Some(prlimit) = find("prlimit", "how_many_file_descriptors_there_are_is_said") else {
        return;
    };
    // A soft limit is raised to the hard one; a hard one of few is warned of.
    for (limit, said, is_few) in [
        ("--nofile=500:5000", "File descriptors: 5000, raised from 500", false),
        ("--nofile=600:600", "File descriptors: 600", true),
    ] {
        let program = program().display().to_string();
        let arguments = [limit, &program, "serve", "--http", "127.0.0.1:0", "--workers", "1"];
        let mut child = spawn(&prlimit, arguments);
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let lines: Vec<String> =
            lines.map_while(Result::ok).take_while(|line| !line.starts_with("Ready")).collect();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let finished = finish(child).well();
        assert!(lines.iter().any(|line| line == said), "{said}: {lines:?}");
        let warning = String::from_utf8_lossy(&finished.stderr).into_owned();
        assert_eq!(warning.contains("only 600 file descriptors"), is_few, "{warning}");
    }
}

#[test]
fn the_start_prints_commands_that_work() {
    let Some(curl) = find("curl", "the_start_prints_commands_that_work") else { return };
    let directory = scratch("the_start_prints_commands_that_work");
    std::fs::write(directory.join("index.html"), "<p>here").unwrap();
    let directory = directory.display().to_string();
    let listen = ["--http", "127.0.0.1:0", "--https", "127.0.0.1:0"];
    for (arguments, expected) in [(&[][..], "pong"), (&["--root", &directory], "<p>here")] {
        let mut child = spawn(program(), ["serve"].iter().chain(&listen).chain(arguments).copied());
        let lines = BufReader::new(child.stdout.as_mut().expect("a pipe")).lines();
        let lines: Vec<_> =
            lines.map_while(Result::ok).take_while(|line| !line.starts_with("Ready")).collect();
        let commands = lines.iter().filter_map(|line| Some(line.split_once(" curl ")?.1));
        let outputs: Vec<_> =
            commands.map(|command| run(&curl, command.split(' ')).well().text()).collect();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        finish(child);
        assert_eq!(outputs, [expected, expected], "{lines:?}");
    }
}

//! Treatment of packets by a lab.

use std::path::Path;

use bolide_launcher::{find, run};
use serde_json::Value;

use crate::program::{Lab, PROGRAM, is_root, words};

#[test]
fn a_lab_does_what_was_asked_within_five_per_cent() {
    if !is_root("a shaped lab") {
        return;
    }
    let (lab, described) = Lab::up("shaped", "--rtt 20ms --rate 20mbit/5mbit");
    let report = &described["report"];
    let rtt = report["rtt"]["nanos"].as_f64().unwrap() / 1e6;
    assert!((19.0..=21.5).contains(&rtt), "{rtt}");
    for (direction, asked) in [("down", 20e6), ("up", 5e6)] {
        let measured = report[direction]["measured"].as_f64().unwrap();
        assert!((measured - asked).abs() <= asked * 0.05, "{direction}: {measured}");
        assert!(report[direction]["line_at_most"].as_f64().unwrap() > asked);
    }
    // Raw TCP in both directions, each with its own name and below its own rate.
    for (flag, direction, rate) in
        [("-R", "download: server → client", 20e6), ("", "upload: client → server", 5e6)]
    {
        let output = lab.net(&format!("iperf {flag} -t 1 --json --name {}", lab.name));
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(outcome["direction"], direction);
        assert_eq!(outcome["congestion_control"], "cubic");
        let goodput = outcome["bits_per_second"].as_f64().unwrap();
        assert!(goodput > rate * 0.5 && goodput < rate, "{direction}: {goodput}");
        assert_eq!(outcome["full"], "neither");
    }
    let status = lab.net(&format!("status --name {}", lab.name));
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("the delay line of the download carried"), "{status}");
    assert!(lab.net(&format!("down --name {}", lab.name)).status.success());
    assert!(lab.namespaces().is_empty() && !lab.directory().exists());
}

#[test]
fn several_labs_live_side_by_side_and_run_programs() {
    if !is_root("labs side by side") {
        return;
    }
    let labs = [Lab::up("one", "--no-verify").0, Lab::up("two", "--no-verify -C reno").0];
    for (lab, congestion) in labs.iter().zip(["cubic", "reno"]) {
        let output = lab.net(&format!("exec client --name {} -- ip route", lab.name));
        let route = String::from_utf8(output.stdout).unwrap();
        assert!(route.contains("default via 192.168.0.1"), "{route}");
        assert!(route.contains(congestion), "{route}");
    }
    let failed = labs[0].net(&format!("exec server --name {} -- sh -c", labs[0].name));
    assert!(!failed.status.success());
}

#[test]
fn what_is_there_already_is_one_sentence() {
    if !is_root("a clash of names") {
        return;
    }
    let (lab, _) = Lab::up("clash", "--no-verify");
    let again = lab.net(&format!("up --name {}", lab.name));
    assert_eq!(again.status.code(), Some(2));
    assert!(words(&again).contains("is up already"), "{}", words(&again));
    let other = Lab::named("foreign");
    let namespace = format!("{}-router", other.name);
    run(Path::new("ip"), ["netns", "add", &namespace]).well();
    let refused = other.net(&format!("up --name {}", other.name));
    run(Path::new("ip"), ["netns", "delete", &namespace]).well();
    assert_eq!(refused.status.code(), Some(2));
    assert!(words(&refused).contains("that belongs to no lab"), "{}", words(&refused));
    for (command, expected) in [
        ("exec client --name nowhere -- true", "no lab `nowhere`"),
        ("down --name nowhere", "no lab `nowhere`"),
        ("up -C nonsense --name nonsense", "no congestion control `nonsense`"),
    ] {
        let output = lab.net(command);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(words(&output).contains(expected), "{command}: {}", words(&output));
    }
    assert!(!Path::new("/run/bolide/net/nonsense").exists());
}

#[test]
fn a_missing_tool_is_named() {
    if !is_root("a lab without `ip`") {
        return;
    }
    let lab = Lab::named("bare");
    let output = std::process::Command::new(PROGRAM)
        .args(["net", "up", "--name", &lab.name])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("needs the program `ip`"), "{}", words(&output));
    assert!(!lab.directory().exists());
}

#[test]
fn raw_tcp_agrees_with_iperf3() {
    let Some(iperf3) = find("iperf3", "raw TCP against iperf3") else { return };
    if !is_root("raw TCP against iperf3") {
        return;
    }
    // Limited, so that both find the same network however busy the machine is.
    let (lab, _) = Lab::up("iperf3", "--rate 100mbit");
    let namespace = |node: &str| format!("{}-{node}", lab.name);
    let mut server = std::process::Command::new("ip")
        .args(["netns", "exec", &namespace("server")])
        .arg(&iperf3)
        .args(["-s", "-p", "5301", "--forceflush"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Its first line says that it listens.
    let mut lines = std::io::BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening") {
        line.clear();
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    }
    for (flag, theirs) in [("", "-4"), ("-R", "-R")] {
        let client = namespace("client");
        let arguments = ["netns", "exec", &client, "iperf3", "-c", "192.168.1.2", "-p", "5301"];
        let arguments = arguments.into_iter().chain(["-t", "2", "-J", theirs]);
        let found: Value =
            serde_json::from_str(&run(Path::new("ip"), arguments).well().text()).unwrap();
        let theirs = found["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
        let ours = lab.net(&format!("iperf {flag} -t 2 --json --name {}", lab.name));
        let ours: Value = serde_json::from_slice(&ours.stdout).unwrap();
        let ours = ours["bits_per_second"].as_f64().unwrap();
        assert!((ours / theirs - 1.0).abs() < 0.05, "ours {ours}, iperf3's {theirs}");
    }
    drop(server.kill());
    drop(server.wait());
}

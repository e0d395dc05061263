//! h2spec 2.2.1 in strict mode: RFC 9113 (as RFC 7540) and RFC 7541 by their sections.

use std::path::Path;

use bolide_launcher::{Server, find, run, scratch};

/// An invalid preface is a request of HTTP/1.1 on a port that speaks both: it is answered as one.
const SHARED_PORT: &str = "http2/3.5/2";

/// Runs the suite and gives the ids of the cases that failed, and how many passed.
fn failures(
    h2spec: &Path,
    authority: &str,
    options: &[&str],
    report: &Path,
) -> (Vec<String>, usize) {
    let (host, port) = authority.rsplit_once(':').expect("a port of ours");
    let report_option = report.display().to_string();
    let options: Vec<&str> = ["-S", "-h", host, "-p", port, "-j", &report_option]
        .into_iter()
        .chain(options.iter().copied())
        .collect();
    let finished = run(h2spec, options);
    let text = std::fs::read_to_string(report)
        .unwrap_or_else(|error| panic!("no report: {error}\n{}", finished.both()));
    read(&text)
}

/// Reads the report: suites by section, their cases numbered from 1 in order.
fn read(report: &str) -> (Vec<String>, usize) {
    let mut failed = Vec::new();
    let mut passed = 0;
    let mut number = 0;
    let mut section = String::new();
    for element in report.split("<testcase ").skip(1) {
        let package = attribute(element, "package");
        number = if package == section { number + 1 } else { 1 };
        section = package;
        let body = element.split("</testcase>").next().unwrap_or_default();
        if body.contains("<failure") || body.contains("<error") {
            failed.push(format!("{section}/{number}"));
        } else if !body.contains("<skipped") {
            passed += 1;
        }
    }
    (failed, passed)
}

fn attribute(element: &str, name: &str) -> String {
    let start = format!("{name}=\"");
    let value = element.split(start.as_str()).nth(1).and_then(|rest| rest.split('"').next());
    value.unwrap_or_default().to_owned()
}

#[test]
fn h2spec_over_cleartext() {
    let Some(h2spec) = find("h2spec", "h2spec_over_cleartext") else { return };
    let server = Server::start_both();
    let report = scratch("h2spec_over_cleartext").join("report.xml");
    let (failed, passed) = failures(&h2spec, Server::authority(server.http()), &[], &report);
    let failed: Vec<String> = failed.into_iter().filter(|case| case != SHARED_PORT).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(passed >= 140, "{passed}");
}

#[test]
fn h2spec_over_tls() {
    let Some(h2spec) = find("h2spec", "h2spec_over_tls") else { return };
    let server = Server::start_both();
    let report = scratch("h2spec_over_tls").join("report.xml");
    let tls = ["-t", "-k"];
    let (failed, passed) = failures(&h2spec, Server::authority(server.https()), &tls, &report);
    assert!(failed.is_empty(), "{failed:?}");
    assert!(passed >= 140, "{passed}");
}

#[test]
fn reports_are_read() {
    let report = r#"<testsuites><testsuite name="3.5" package="http2/3.5">
        <testcase package="http2/3.5" classname="a" time="0.1"></testcase>
        <testcase package="http2/3.5" classname="b" time="0.1"><failure>x</failure></testcase>
        </testsuite><testsuite><testcase package="hpack/2.3" classname="c"></testcase>
        <testcase package="hpack/2.3" classname="d"><skipped></skipped></testcase></testsuite>"#;
    assert_eq!(read(report), (vec!["http2/3.5/2".to_owned()], 2));
}

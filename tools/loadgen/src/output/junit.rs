//! A run as JUnit's XML, as CI systems read it: a test case for each phase, and one for each condition of `--fail-if`.

use std::io::{self, Write};

use bolide_probe::report::{PhaseReport, Report};
use bolide_semantics::in_markup;

use crate::options::Threshold;
use crate::output::{in_one_line, text};

/// Writes the test cases. A phase fails if any of its requests failed or none was answered; a condition, if it held.
///
/// # Errors
///
/// Those of `out`.
pub fn write(report: &Report, thresholds: &[Threshold], out: &mut dyn Write) -> io::Result<()> {
    let phases = report.phases.iter().map(|phase| {
        let seconds = phase.elapsed_ns as f64 / 1e9;
        (format!("{}: responses", phase.phase.name), seconds, failure(phase))
    });
    let conditions = thresholds
        .iter()
        .map(|threshold| (threshold.text.clone(), 0.0, threshold.broken_by(report)));
    let cases: Vec<_> = phases.chain(conditions).collect();
    let failed = cases.iter().filter(|(.., failure)| failure.is_some()).count();
    let time: f64 = cases.iter().map(|(_, seconds, _)| seconds).sum();
    let (name, count) = (escaped(&format!("bolide load {}", report.url)), cases.len());
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    let counts = format!(r#"tests="{count}" failures="{failed}" time="{time:.3}""#);
    writeln!(out, "<testsuites {counts}>")?;
    writeln!(out, r#"  <testsuite name="{name}" errors="0" {counts}>"#)?;
    for (case, seconds, failure) in cases {
        let case = escaped(&case);
        let start =
            format!(r#"    <testcase classname="{name}" name="{case}" time="{seconds:.3}""#);
        match failure {
            None => writeln!(out, "{start}/>")?,
            Some(what) => {
                writeln!(out, "{start}>")?;
                writeln!(out, r#"      <failure message="{}"/>"#, escaped(&what))?;
                writeln!(out, "    </testcase>")?;
            }
        }
    }
    writeln!(out, "  </testsuite>")?;
    writeln!(out, "</testsuites>")?;
    out.flush()
}

/// Returns what failed in a phase, if anything did.
fn failure(phase: &PhaseReport) -> Option<String> {
    let counts = &phase.counts;
    let kinds: Vec<String> = phase
        .failures
        .iter()
        .map(|(kind, count)| format!("{count} {}", text::failure(*kind)))
        .collect();
    match (counts.failed, counts.completed) {
        (0, 0) => Some("no response came".to_owned()),
        (0, _) => None,
        (failed, _) => Some(format!("{failed} of {} failed: {}", counts.due, kinds.join(", "))),
    }
}

/// Text as the value of an attribute (XML 1.0 §2.3).
fn escaped(text: &str) -> String {
    in_markup(&in_one_line(text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bolide_probe::report::Failure;

    use super::*;
    use crate::fabricated::{OPEN_1000, quiet, report};

    #[test]
    fn phases_and_conditions_are_test_cases() {
        let mut bad = quiet(OPEN_1000);
        bad.phase.name = "1 < \"2\" & 3\u{1}".to_owned();
        bad.counts.failed = 2;
        bad.failures = BTreeMap::from([(Failure::Timeout, 2)]);
        let report = report(vec![quiet(OPEN_1000), bad]);
        let thresholds = ["errors>0", "p99>5s"].map(|text| Threshold::parse(text).unwrap());
        let mut out = Vec::new();
        write(&report, &thresholds, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let suite = r#"<testsuite name="bolide load http://127.0.0.1:8080/ping" errors="0" tests="4" failures="2" time="2.000">"#;
        for part in [
            suite,
            r#"name="measured: responses" time="1.000"/>"#,
            r#"name="1 &lt; &quot;2&quot; &amp; 3"#,
            r#"<failure message="2 of 1000 failed: 2 timeout"/>"#,
            r#"name="errors&gt;0" time="0.000">"#,
            r#"<failure message="errors&gt;0 (2)"/>"#,
            r#"name="p99&gt;5s" time="0.000"/>"#,
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
        assert!(!out.contains('\u{1}'), "{out}");
        assert_eq!(out.matches("<testcase ").count(), 4);
        assert!(out.ends_with("</testsuites>\n"), "{out}");
    }
}

//! The page.

use bolide_probe::plan::Load;
use bolide_probe::report::{EventsReport, Verdict};

use super::*;
use crate::fabricated::{OPEN_1000, flat, latencies, quiet, report};

fn page(report: &Report) -> String {
    let mut out = Vec::new();
    write(report, "the <summary>", &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn data_of(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = page.split_once(start).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn the_page_is_whole_and_loads_nothing() {
    let page = page(&report(vec![quiet(Load::Closed), quiet(OPEN_1000)]));
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(!page.contains("{{"), "every place is filled");
    for loader in ["src=", "href=", "@import", "url(", "fetch(", "XMLHttp"] {
        assert!(!page.contains(loader), "{loader}");
    }
    assert!(page.contains("the &lt;summary&gt;"));
    assert!(!page.contains("class=\"banner\""));
    let data = data_of(&page);
    assert_eq!(data["phases"][1]["model"], "open loop");
    assert_eq!(data["phases"][0]["series"][0][1], 990.0);
}

#[test]
fn nothing_from_outside_becomes_markup() {
    let evil = "</script><script>alert('\"&')</script>{{data}}";
    let mut phase = quiet(Load::Closed);
    phase.phase.name = evil.into();
    phase.verdict = Verdict { bound: Bound::Client, evidence: vec![evil.into()] };
    let mut report = report(vec![phase]);
    report.url = evil.into();
    report.protocol = evil.into();
    let page = page(&report);
    assert_eq!(page.matches("<script").count(), PAGE.matches("<script").count());
    assert_eq!(page.matches("</script>").count(), PAGE.matches("</script>").count());
    assert_eq!(page.matches("alert('").count(), 1, "only as data: quotes are escaped in text");
    assert_eq!(data_of(&page)["phases"][0]["name"], evil);
    assert!(page.contains("class=\"banner\""));
}

#[test]
fn what_only_some_loads_have_gets_charts_of_its_own() {
    assert_eq!(data_of(&page(&report(vec![quiet(Load::Closed)])))["more"], json!([]));
    let mut phase = quiet(OPEN_1000);
    let (first, gap) = (flat(5, 2_000_000), Latencies::default());
    phase.kinds.events = Some(EventsReport { first, gap, ..EventsReport::default() });
    phase.kinds.requests = ["slow", "fast"]
        .iter()
        .zip([9_000_000, 1_000_000])
        .map(|(name, ns)| RequestReport {
            name: Some((*name).to_owned()),
            method: "GET".to_owned(),
            target: "/".to_owned(),
            completed: 5,
            failed: 0,
            latency: flat(5, ns),
        })
        .rev()
        .collect();
    let more = &data_of(&page(&report(vec![phase])))["more"];
    let titles: Vec<_> = more.as_array().unwrap().iter().map(|one| &one["title"]).collect();
    assert_eq!(titles, ["Time to the first event", "By request"]);
    assert_eq!(more[1]["curves"][0]["name"], "slow");
}

#[test]
fn a_spectrum_rises_and_ends_at_the_greatest() {
    let values: Vec<u64> = (1..=10_000).map(|step| step * 10_000).collect();
    let points = spectrum(&latencies(&values));
    assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
    let (quantile, ns) = points[points.len() - 1];
    assert!((0.999_9..1.0).contains(&quantile), "{quantile}");
    assert!((99_900_000..100_200_000).contains(&ns), "{ns}");
    let mut read_back = flat(5, 1_000_000);
    read_back.histogram = None;
    assert_eq!(spectrum(&read_back).len(), read_back.percentiles_ns.len());
}

#[test]
fn a_long_series_is_thinned() {
    let mut phase = quiet(Load::Closed);
    phase.course.series = vec![phase.course.series[0]; 5_000];
    assert_eq!(series(&phase).len(), 1_000);
}

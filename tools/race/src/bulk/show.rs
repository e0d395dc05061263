//! The tables, the page and the JSON.

use std::path::{Path, PathBuf};

use super::browser::Parts;
use super::outcome::{Results, Row};
use super::stack::Direction;
use super::swept::{size, sweeps};
use super::{put, put_json, read};
use crate::figures::{aligned, verdict_text};
use crate::report::{self, Part, Section};
use crate::statistics::{LogRatios, Rule};

const HEADS: [&str; 10] = [
    "stack",
    "Gbit/s",
    "range",
    "published",
    "server s/GiB",
    "× raw",
    "client s/GiB",
    "server MiB",
    "client MiB",
    "full",
];

/// Everything for the terminal.
pub(super) fn tables(results: &Results) -> String {
    let mut text = format!(
        "one connection, {} through client – router – server, {}, {} {}\n",
        size(results.bytes as f64),
        results.congestion_control,
        results.rounds,
        if results.rounds == 1 { "round" } else { "rounds" }
    );
    for direction in Direction::ALL {
        let mut rows = rows(results, direction);
        if rows.len() > 1 {
            text += &format!("\n{}\n{}", direction.title(), aligned(&mut rows));
        }
    }
    for mut section in sweeps(results).into_iter().chain(parts(results)) {
        text += &format!("\n{}\n{}", section.head, aligned(&mut section.rows));
    }
    text
}

/// Writes `bulk.json` and `bulk.html`; returns the page.
pub(super) fn write(out: &Path, results: &Results) -> Result<PathBuf, String> {
    put_json(out, "bulk.json", results)?;
    write_page(out, results)
}

/// Writes `bulk.html`; returns it.
pub(super) fn write_page(out: &Path, results: &Results) -> Result<PathBuf, String> {
    let (lead, notes) = (lead(results), notes(results));
    let (sections, skipped) = (sections(results), skipped(results));
    let page = report::plain_page("Bulk transfer", &lead, &notes, &sections, &skipped);
    put(out, "bulk.html", page)
}

/// Returns what `bulk.json` in a directory says, as a part of another page; `None` where there is none.
///
/// # Errors
///
/// One that can't be read.
pub(super) fn part(directory: &Path) -> Result<Option<Part>, String> {
    let file = directory.join("bulk.json");
    if !file.exists() {
        return Ok(None);
    }
    let results: Results = read(&file)?;
    let notes = std::iter::once(lead(&results)).chain(notes(&results)).collect();
    Ok(Some(Part { notes, sections: sections(&results), skipped: skipped(&results) }))
}

/// When and where it was measured.
fn lead(results: &Results) -> String {
    format!(
        "{} · {} · {}",
        report::date(results.started_unix_s),
        results.machine.cpu,
        results.machine.kernel
    )
}

fn sections(results: &Results) -> Vec<Section> {
    let mut sections = Vec::new();
    for direction in Direction::ALL {
        let (head, rows) = (direction.title().to_owned(), rows(results, direction));
        sections.push(Section { head, plots: String::new(), rows });
    }
    sections.extend(sweeps(results));
    sections.extend(parts(results));
    sections
}

/// `0, 1`.
fn cores(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// How it was measured.
fn notes(results: &Results) -> Vec<String> {
    vec![
        format!(
            "One connection moves {} through client – router – server on one machine: congestion \
             control {}, {} interleaved {}, the server on core {}, the client (bolide measure) on \
             core {}. Medians with the range of the rounds. × raw: the server's CPU over raw TCP's, within \
             rounds in which a cache line had the same way between the cores; by the rule of races, \
             with their interval, from six such rounds.",
            size(results.bytes as f64),
            results.congestion_control,
            results.rounds,
            if results.rounds == 1 { "round" } else { "rounds" },
            cores(&results.machine.server_cores),
            cores(&results.machine.generator_cores)
        ),
        "published: what others have measured with the same stack on another machine. A proxy asks a server \
         of HTTP/1.1 on the client's core. ndt7 takes a second. Chromium is given 256 MiB at most."
            .to_owned(),
        results.versions.iter().map(|(name, version)| format!("{name}: {version}. ")).collect(),
    ]
}

/// Returns who is not here, and why.
fn skipped(results: &Results) -> Vec<String> {
    results.skipped.iter().map(|(name, why)| format!("{name}: {why}")).collect()
}

/// The rows of a direction, the heads first; the fastest next.
fn rows(results: &Results, direction: Direction) -> Vec<Vec<String>> {
    let mut found: Vec<&Row> =
        results.rows.iter().filter(|row| row.direction == direction).collect();
    let speed = |row: &Row| row.gbit().map_or(0.0, |gbit| gbit.mid);
    found.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    for row in found {
        let gbit = row.gbit();
        let figure = |value: Option<f64>, places: usize| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.places$}"))
        };
        let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
        rows.push(vec![
            row.stack.title.clone(),
            figure(gbit.map(|gbit| gbit.mid), 2),
            match gbit {
                None => "failed".to_owned(),
                Some(_) if row.samples.len() == 1 => "–".to_owned(),
                Some(gbit) => format!("{:.2}–{:.2}", gbit.low, gbit.high),
            },
            figure(row.stack.published(direction), 0),
            figure(row.median(|sample| Some(sample.server_cpu_per_gib)), 3),
            over_raw(results, row),
            figure(row.median(|sample| Some(sample.client_cpu_per_gib)), 3),
            figure(row.median(|sample| mib(sample.server_memory_bytes)), 1),
            figure(row.median(|sample| mib(sample.client_memory_bytes)), 1),
            row.full().to_owned(),
        ]);
    }
    rows
}

/// The server's CPU over raw TCP's in the same direction and rounds.
fn ratio_to_raw(results: &Results, row: &Row) -> Option<LogRatios> {
    let is_raw = |other: &&Row| other.stack.protocol.is_none() && other.direction == row.direction;
    let raw = results.rows.iter().find(is_raw).filter(|raw| !std::ptr::eq(*raw, row))?;
    row.server_cpu_over(raw)
}

/// Returns what is claimed of that, among all rows.
fn over_raw(results: &Results, row: &Row) -> String {
    let all = results.rows.iter().filter_map(|row| Some((ratio_to_raw(results, row)?, None)));
    let rule = Rule::of(&all.collect::<Vec<_>>(), &[]);
    ratio_to_raw(results, row)
        .map_or_else(|| "–".to_owned(), |found| verdict_text(&rule.judge(&found, None)))
}

/// Returns where the CPU time of a browser went.
fn parts(results: &Results) -> Option<Section> {
    let mut rows = vec![
        ["transfer", "network service s/GiB", "renderer s/GiB", "others s/GiB"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for row in &results.rows {
        let part = |part: fn(&Parts) -> f64| row.median(|sample| sample.parts.as_ref().map(part));
        let found = [part(|p| p.network), part(|p| p.renderer), part(|p| p.rest)];
        if let [Some(network), Some(renderer), Some(rest)] = found {
            let name = format!("{}, {}", row.stack.title, row.direction.title());
            let figures = [network, renderer, rest].map(|figure| format!("{figure:.2}"));
            rows.push(std::iter::once(name).chain(figures).collect());
        }
    }
    let head = "Where a browser's CPU time goes".to_owned();
    (rows.len() > 1).then_some(Section { head, plots: String::new(), rows })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::bulk::outcome::{Point, Sample};
    use crate::bulk::stack::Stack;
    use crate::manifest::Machine;

    fn results() -> Results {
        let row = |title: &str, gbit: f64| Row {
            stack: Stack { title: title.to_owned(), ..Stack::raw() },
            direction: Direction::Download,
            samples: vec![Sample { bits_per_second: gbit * 1e9, ..Sample::default() }; 3],
            failed: None,
        };
        let point = |x: f64, y: f64| Point {
            sweep: "windows".to_owned(),
            stack: Stack { title: "Bolide <h2c>".to_owned(), ..Stack::raw() },
            direction: Direction::Download,
            x,
            y: Some(y),
            sample: Some(Sample { bits_per_second: x * 1e6, ..Sample::default() }),
            failed: None,
        };
        Results {
            started_unix_s: 0,
            machine: Machine::here(&[0, 1], &[0], &[1]),
            bytes: 1 << 30,
            rounds: 3,
            seed: 1,
            congestion_control: "cubic".to_owned(),
            rows: vec![row("slow", 5.0), row("fast", 50.0)],
            sweeps: vec![
                point(16_384.0, 65_535.0),
                point(65_536.0, 65_535.0),
                Point { sample: None, y: None, sweep: "rtt".to_owned(), ..point(50.0, 0.0) },
                Point { y: None, sweep: "rtt".to_owned(), ..point(100.0, 0.0) },
            ],
            versions: vec![("nginx".to_owned(), "nginx/1.22".to_owned())],
            skipped: vec![("h2o".to_owned(), "`h2o` is not in PATH".to_owned())],
        }
    }

    #[test]
    fn the_fastest_stands_first_and_the_published_figure_beside() {
        let text = tables(&results());
        let place = |word: &str| text.find(word).unwrap();
        assert!(place("fast") < place("slow"), "{text}");
        assert!(text.contains("50.00–50.00") && text.contains("52"), "{text}");
        assert!(text.contains("window 64 KiB") && text.contains("frame 16 KiB"), "{text}");
        assert!(text.contains("50 ms") && text.contains("failed"), "{text}");
        assert!(!text.contains("upload"), "{text}");
    }

    #[test]
    fn one_round_has_no_range() {
        let mut one = results();
        one.rows.iter_mut().for_each(|row| row.samples.truncate(1));
        let text = tables(&one);
        assert!(text.contains("50.00") && !text.contains("50.00–"), "{text}");
    }

    #[test]
    fn the_page_escapes_names_and_says_who_was_skipped() {
        let directory = std::env::temp_dir().join(format!("bolide-bulk-{}", std::process::id()));
        let page = fs::read_to_string(write(&directory, &results()).unwrap()).unwrap();
        let again =
            crate::bulk::report(&directory.join("bulk.json"), &directory.join("again")).unwrap();
        assert_eq!(fs::read_to_string(again.unwrap()).unwrap(), page);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(page.matches("<figure>").count(), 2, "a map and lines");
        assert!(page.contains("nginx: nginx/1.22."));
        assert!(page.contains("Bolide &lt;h2c&gt;") && page.contains("`h2o` is not in PATH"));
    }

    #[test]
    fn the_pages_of_published_results_are_made_from_them() {
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let directory =
            std::env::temp_dir().join(format!("bolide-published-bulk-{}", std::process::id()));
        let mut pages = 0;
        for table in fs::read_dir(results).unwrap() {
            let table = table.unwrap().path();
            for name in ["bulk.json", "page.json"].map(|name| table.join(name)) {
                if name.exists() {
                    let page = crate::bulk::report(&name, &directory).unwrap().unwrap();
                    assert!(
                        fs::read_to_string(page).unwrap().contains("<table"),
                        "{}",
                        name.display()
                    );
                    pages += 1;
                }
            }
        }
        assert!(pages > 0);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_was_written_stands_on_the_page_of_a_race_in_the_same_directory() {
        let directory = std::env::temp_dir().join(format!("bolide-t11-{}", std::process::id()));
        let race = |directory: &Path| {
            let manifest = crate::store::tests::manifest();
            let outcomes = [crate::outcome::tests::outcome()];
            fs::read_to_string(
                report::write(
                    directory,
                    1,
                    &manifest,
                    &[],
                    &outcomes,
                    crate::bulk::part(directory).as_ref(),
                )
                .unwrap(),
            )
            .unwrap()
        };
        assert!(part(&directory).unwrap().is_none());
        assert!(!race(&directory).contains("id=\"bulk\""));
        write(&directory, &results()).unwrap();
        let read = fs::read_to_string(directory.join("bulk.json")).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&read).unwrap(), results());
        let page = race(&directory);
        let bulk = &page[page.find("id=\"bulk\"").unwrap()..];
        assert!(bulk.contains("download: server") && bulk.contains(">fast<"), "{bulk}");
        assert_eq!(bulk.matches("<figure>").count(), 2, "a map and lines");
        assert!(bulk.contains("`h2o` is not in PATH") && page.matches("<h1>").count() == 1);
        fs::write(directory.join("bulk.json"), "{").unwrap();
        assert!(part(&directory).unwrap_err().contains("bulk.json: EOF"));
        assert!(!race(&directory).contains("id=\"bulk\""));
        fs::remove_dir_all(directory).unwrap();
    }
}

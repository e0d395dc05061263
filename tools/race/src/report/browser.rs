//! The page as a browser lays it out: what can be seen, and that nothing lies outside of its place.

use std::fs;
use std::path::Path;

use bolide_launcher::{find, run, scratch};

use crate::catalogue::{Cell, Kind, Protocol, Route, tables};
use crate::outcome::{CellOutcome, OpenLoop};

/// Writes into the page what was laid out, where `--dump-dom` finds it.
const PROBE: &str = "<script>
addEventListener('load', () => {
  const seen = {figures: 0, bars: 0, dots: 0, outside: [], wide: document.documentElement.scrollWidth};
  for (const svg of document.querySelectorAll('figure svg')) {
    const frame = svg.getBoundingClientRect();
    if (frame.width > 100 && frame.height > 20) seen.figures++;
    for (const mark of svg.querySelectorAll('rect, circle, text')) {
      const box = mark.getBoundingClientRect();
      if (mark.tagName === 'rect' && box.width > 1) seen.bars++;
      if (mark.tagName === 'circle' && box.width > 1) seen.dots++;
      if (box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        seen.outside.push(mark.tagName + ' ' + (mark.textContent || '').trim().slice(0, 40));
    }
  }
  seen.lead = document.querySelector('.verdict').innerText;
  document.body.setAttribute('data-seen', JSON.stringify(seen));
});
</script>";

/// How wide the window is, in CSS pixels.
const WINDOW: u32 = 1200;

/// Three cells: one with latencies by the clock, one with the longest title and a server far behind.
fn outcomes() -> Vec<CellOutcome> {
    let first = crate::outcome::tests::outcome();
    let mut second = first.clone();
    second.cell =
        Cell { protocol: Protocol::H2c, depth: 10, load: Kind::Latency, ..first.cell.clone() };
    for entrant in &mut second.entrants {
        let Some(figures) = entrant.figures().next().cloned() else { continue };
        for share in [0.5, 0.8] {
            let rate = figures.rate * share;
            entrant.open_loop.push(OpenLoop { share, rate, figures: figures.clone() });
        }
    }
    let mut third = first.clone();
    third.cell = Cell {
        protocol: Protocol::H1s,
        route: Route::Static4k,
        connections: 500,
        depth: 100,
        window: Some(16),
        ..first.cell.clone()
    };
    for figures in third.entrants[2].rounds.iter_mut().flatten() {
        figures.cpu_us *= 5000.0;
    }
    vec![first, second, third]
}

/// Returns what the browser saw of the page in `directory`.
fn seen(browser: &Path, directory: &Path) -> serde_json::Value {
    let page = fs::read_to_string(directory.join("report/index.html")).unwrap();
    let probed = directory.join("probed.html");
    fs::write(&probed, page.replace("</body>", &format!("{PROBE}</body>"))).unwrap();
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let window = format!("--window-size={WINDOW},900");
    let address = format!("file://{}", probed.display());
    let flags =
        ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", &profile, &window, &address];
    let dom = run(browser, flags).well().text();
    let (_, rest) = dom.split_once("data-seen=\"").expect("the probe has run");
    let (seen, _) = rest.split_once('"').expect("an attribute ends");
    serde_json::from_str(&seen.replace("&quot;", "\"").replace("&amp;", "&")).unwrap()
}

#[test]
fn a_browser_shows_every_plot_in_its_place() {
    let Some(browser) = find("chromium", "the report in a browser") else { return };
    let directory = scratch("report-in-a-browser");
    let manifest = crate::store::tests::manifest();
    let tables = tables().unwrap();
    super::write(&directory, 1, &manifest, &tables, &outcomes(), None).unwrap();
    let seen = seen(&browser, &directory);
    // At a glance, two plots of costs, throughput and spectrum.
    assert!(seen["figures"].as_u64().unwrap() >= 4, "{seen}");
    assert!(seen["bars"].as_u64().unwrap() >= 6, "three servers in each cell: {seen}");
    assert!(seen["dots"].as_u64().unwrap() >= 2, "{seen}");
    assert_eq!(seen["outside"].as_array().map(Vec::len), Some(0), "{seen}");
    assert!(
        seen["wide"].as_u64().unwrap() <= u64::from(WINDOW),
        "nothing scrolls sideways: {seen}"
    );
    assert!(seen["lead"].as_str().unwrap().contains("bolide"), "{seen}");
}

//! A directory as a page of links.

use std::fmt::Write;
use std::io;

use bolide_semantics::in_markup;
use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::disk::{Disk, Listed};
use crate::entry::date;
use crate::limits::LISTING_COUNT;

const STYLE: &str = include_str!("listing.css");

/// Sorts by a column when its head is chosen; without scripts, the order is that of the names.
const SCRIPT: &str = include_str!("listing.js");

/// Characters that can't stand in a path as they are (RFC 3986 §3.3).
pub(crate) const NOT_IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The page for a directory, by its name below the root.
pub(crate) fn page(disk: &dyn Disk, directory: &str, hidden: bool) -> io::Result<Bytes> {
    // One more than is shown tells whether there are more.
    let mut entries = disk.list(directory, LISTING_COUNT + 1)?;
    let is_cut = entries.len() > LISTING_COUNT;
    entries.truncate(LISTING_COUNT);
    entries.retain(|entry| hidden || !entry.name.starts_with('.'));
    entries.sort_by(|one, other| {
        (!one.is_directory, &one.name).cmp(&(!other.is_directory, &other.name))
    });
    let title = in_markup(&format!("/{directory}"));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style></head><body>\n\
         <h1>{}</h1>\n<table><thead><tr><th>Name<th>Size<th>Modified (UTC)</thead>\n<tbody>\n",
        path(directory)
    );
    for entry in &entries {
        row(&mut html, entry);
    }
    html.push_str("</tbody></table>\n");
    if is_cut {
        // Writing to a string can't fail.
        let _ = writeln!(html, "<p>Only {LISTING_COUNT} entries are shown.</p>");
    }
    let _ = writeln!(html, "<script>\n{SCRIPT}</script></body></html>");
    Ok(html.into())
}

/// The path of a directory, each part a link to it.
fn path(directory: &str) -> String {
    let parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    let link = |up: usize| if up == 0 { "./".to_owned() } else { "../".repeat(up) };
    let mut html = format!("<a href=\"{}\">/</a>", link(parts.len()));
    for (index, part) in parts.iter().enumerate() {
        let up = parts.len() - index - 1;
        let _ = write!(html, "<a href=\"{}\">{}/</a>", link(up), in_markup(part));
    }
    html
}

fn row(html: &mut String, entry: &Listed) {
    let slash = if entry.is_directory { "/" } else { "" };
    // After `./` no name can be taken for a scheme or an authority.
    let link = utf8_percent_encode(&entry.name, NOT_IN_PATH).to_string();
    let _ = write!(
        html,
        "<tr><td><a href=\"./{}{slash}\">{}{slash}</a>",
        in_markup(&link),
        in_markup(&entry.name)
    );
    let _ = match entry.length {
        Some(length) => write!(html, "<td data-key=\"{length}\">{}", size(length)),
        None => write!(html, "<td data-key=\"-1\">–"),
    };
    let seconds = u64::try_from(entry.modified.seconds).unwrap_or_default();
    let date = date(seconds);
    // Without the day of the week, the seconds and the zone.
    let date = std::str::from_utf8(date.as_bytes()).ok().and_then(|date| date.get(5..22));
    let _ = writeln!(html, "<td data-key=\"{seconds}\">{}", date.unwrap_or("–"));
}

/// A number of bytes as people read it: `3 B`, `2.9 MiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // What would be rounded to 1024 belongs to the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Found, Time};

    #[derive(Debug)]
    struct Named(Vec<String>);

    impl Disk for Named {
        fn open(&self, _: &str) -> io::Result<Found> {
            Ok(Found::Directory)
        }

        fn list(&self, _: &str, max: usize) -> io::Result<Vec<Listed>> {
            let listed = |name: &String| Listed {
                is_directory: name.starts_with("directory"),
                name: name.clone(),
                length: Some(1),
                modified: Time { seconds: 784_111_777, nanoseconds: 0 },
            };
            Ok(self.0.iter().take(max).map(listed).collect())
        }
    }

    fn html(names: &[&str], hidden: bool) -> String {
        let disk = Named(names.iter().map(|name| (*name).to_owned()).collect());
        String::from_utf8(page(&disk, "a<b", hidden).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn a_name_cannot_become_markup_or_lead_elsewhere() {
        let page = html(&["<script>&\"'", "javascript:alert(1)", "a b?c#d%", "//evil"], false);
        assert!(page.contains("&lt;script&gt;&amp;&quot;&#39;</a>"), "{page}");
        assert!(page.contains("href=\"./%3Cscript%3E&amp;%22&#39;\""), "{page}");
        assert!(page.contains("href=\"./javascript:alert(1)\""), "{page}");
        assert!(page.contains("href=\"./a%20b%3Fc%23d%25\""), "{page}");
        assert!(page.contains("<title>/a&lt;b</title>"), "{page}");
        assert!(page.contains("<a href=\"../\">/</a><a href=\"./\">a&lt;b/</a>"), "{page}");
        assert_eq!(page.matches("<script").count(), 1, "{page}");
    }

    #[test]
    fn directories_come_first_and_hidden_names_only_when_asked_for() {
        let page = html(&["b", ".hidden", "directory", "a"], false);
        let order = ["./directory/", "./a", "./b"].map(|link| page.find(link).unwrap());
        assert!(order.is_sorted(), "{page}");
        assert!(!page.contains("hidden"));
        assert!(html(&[".hidden"], true).contains(".hidden"));
    }

    #[test]
    fn sizes_and_times_are_for_people_and_sorted_as_numbers() {
        let page = html(&["a"], false);
        assert!(page.contains("<td data-key=\"1\">1 B"), "{page}");
        assert!(page.contains("<td data-key=\"784111777\">06 Nov 1994 08:49\n"), "{page}");
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (3_000_000, "2.9 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_large_listing_is_cut() {
        let names: Vec<String> = (0..2 * LISTING_COUNT).map(|number| number.to_string()).collect();
        let page = page(&Named(names), "", false).unwrap();
        let page = String::from_utf8(page.to_vec()).unwrap();
        assert_eq!(page.matches("<tr><td>").count(), LISTING_COUNT);
        assert!(page.contains("Only 5000 entries"), "{page}");
    }
}

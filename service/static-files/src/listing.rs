//! A folder as a page of links.

use std::fmt::Write;
use std::io;

use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::disk::{Disk, Listed};
use crate::limits::LISTING_COUNT;

/// What can't stand in a path as it is (RFC 3986 §3.3).
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

/// The page for a folder, by its name below the root.
pub(crate) fn page(disk: &dyn Disk, folder: &str, hidden: bool) -> io::Result<Bytes> {
    // One more than is shown tells whether there are more.
    let mut entries = disk.list(folder, LISTING_COUNT + 1)?;
    let is_cut = entries.len() > LISTING_COUNT;
    entries.truncate(LISTING_COUNT);
    entries.retain(|entry| hidden || !entry.name.starts_with('.'));
    entries.sort_by(|one, other| (!one.is_folder, &one.name).cmp(&(!other.is_folder, &other.name)));
    let title = escape(&format!("/{folder}"));
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><h1>{title}</h1><ul>\n"
    );
    if !folder.is_empty() {
        html.push_str("<li><a href=\"../\">../</a>\n");
    }
    for entry in &entries {
        row(&mut html, entry);
    }
    html.push_str("</ul>");
    if is_cut {
        // Writing to a string can't fail.
        let _ = write!(html, "<p>Only {LISTING_COUNT} entries are shown.");
    }
    html.push_str("</html>\n");
    Ok(html.into())
}

fn row(html: &mut String, entry: &Listed) {
    let slash = if entry.is_folder { "/" } else { "" };
    // After `./` no name can be taken for a scheme or an authority.
    let link = utf8_percent_encode(&entry.name, NOT_IN_PATH).to_string();
    let _ = write!(
        html,
        "<li><a href=\"./{}{slash}\">{}{slash}</a>",
        escape(&link),
        escape(&entry.name)
    );
    if let Some(length) = entry.length {
        let _ = write!(html, " {length}");
    }
    html.push('\n');
}

/// Text as it may stand in HTML, in attributes too.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Found;

    #[derive(Debug)]
    struct Named(Vec<String>);

    impl Disk for Named {
        fn open(&self, _: &str) -> io::Result<Found> {
            Ok(Found::Folder)
        }

        fn list(&self, _: &str, max: usize) -> io::Result<Vec<Listed>> {
            let listed = |name: &String| Listed {
                is_folder: name.starts_with("folder"),
                name: name.clone(),
                length: Some(1),
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
        assert!(page.contains("<h1>/a&lt;b</h1>"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn folders_come_first_and_hidden_names_only_when_asked_for() {
        let page = html(&["b", ".hidden", "folder", "a"], false);
        let order = ["./folder/", "./a", "./b"].map(|link| page.find(link).unwrap());
        assert!(order.is_sorted(), "{page}");
        assert!(!page.contains("hidden"));
        assert!(html(&[".hidden"], true).contains(".hidden"));
    }

    #[test]
    fn a_large_listing_is_cut() {
        let names: Vec<String> = (0..2 * LISTING_COUNT).map(|number| number.to_string()).collect();
        let page = page(&Named(names), "", false).unwrap();
        let page = String::from_utf8(page.to_vec()).unwrap();
        assert_eq!(page.matches("<li>").count(), LISTING_COUNT);
        assert!(page.contains("Only 5000 entries"), "{page}");
    }
}

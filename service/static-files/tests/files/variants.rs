//! Compressed siblings, and compression on the fly.

use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::client::Site;

const BROWSER: &str = "accept-encoding: gzip, deflate, br, zstd";

#[test]
fn siblings_are_served_to_those_who_accept_them() {
    let site = Site::of(&[
        ("a.css", "plain"),
        ("a.css.br", "as br"),
        ("a.css.zst", "as zstd"),
        ("a.css.gz", "as gzip"),
        ("b.css", "plain"),
        ("b.css.gz", "as gzip"),
        ("c.css", "plain"),
    ]);
    for (path, accepts, body, coding) in [
        ("/a.css", BROWSER, "as br", Some("br")),
        ("/a.css", "accept-encoding: gzip", "as gzip", Some("gzip")),
        ("/a.css", "accept-encoding: br;q=0.5, zstd", "as zstd", Some("zstd")),
        ("/a.css", "accept-encoding: deflate", "plain", None),
        ("/a.css", "accept-encoding: br;q=0, *;q=0", "plain", None),
        ("/a.css", "x-none: 1", "plain", None),
        ("/b.css", BROWSER, "as gzip", Some("gzip")),
        ("/c.css", BROWSER, "plain", None),
    ] {
        for _ in 0..2 {
            let response = site.get_with(path, &[accepts]);
            assert_eq!((response.status, response.text()), (200, body), "{path} {accepts}");
            assert_eq!(response.field("content-encoding"), coding, "{path} {accepts}");
            assert_eq!(response.field("content-type"), Some("text/css; charset=utf-8"));
            let varies = (path != "/c.css").then_some("accept-encoding");
            assert_eq!(response.field("vary"), varies, "{path} {accepts}");
        }
    }
    let plain = site.get("/a.css");
    let encoded = site.get_with("/a.css", &[BROWSER]);
    assert_ne!(plain.field("etag"), encoded.field("etag"), "other bytes have another tag");
    let tag = format!("if-none-match: {}", encoded.field("etag").unwrap());
    let response = site.get_with("/a.css", &[BROWSER, &tag]);
    assert_eq!((response.status, response.field("vary")), (304, Some("accept-encoding")));
    assert_eq!(site.get_with("/a.css", &[&tag]).status, 200, "it has another coding");
    let part = site.get_with("/a.css", &[BROWSER, "range: bytes=3-4"]);
    assert_eq!((part.status, part.text()), (206, "br"), "a range is of what is sent");
    let off = Site::with(&[("a.css", "plain"), ("a.css.br", "as br")], |s| s.precompressed(false));
    assert_eq!(off.get_with("/a.css", &[BROWSER]).text(), "plain");
}

#[test]
fn a_sibling_that_is_older_is_not_served() {
    let site = Site::of(&[("a.css", "new"), ("a.css.gz", "old")]);
    let sibling = File::options().write(true).open(site.path("a.css.gz")).unwrap();
    sibling.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    let response = site.get_with("/a.css", &[BROWSER]);
    assert_eq!((response.text(), response.field("vary")), ("new", None));
}

#[test]
fn text_is_compressed_when_asked_for() {
    let text = "much of this comes again. ".repeat(1000);
    let files = [("a.txt", &*text), ("a.png", &*text), ("short.txt", "short")];
    let site = Site::with(&files, |site| site.compress(true));
    let zstd = "accept-encoding: zstd, gzip";
    for (accepts, coding) in [(BROWSER, "br"), (zstd, "zstd"), ("accept-encoding: gzip", "gzip")] {
        let response = site.get_with("/a.txt", &[accepts]);
        assert_eq!(response.field("content-encoding"), Some(coding));
        assert_eq!(response.field("vary"), Some("accept-encoding"));
        assert!(response.field("etag").unwrap().starts_with("W/"), "{:?}", response.head);
        assert!(response.body.len() < text.len() / 10);
    }
    assert_eq!(site.get("/a.txt").text(), text);
    for path in ["/a.png", "/short.txt"] {
        assert_eq!(site.get_with(path, &[BROWSER]).field("content-encoding"), None, "{path}");
    }
    let off = Site::of(&files);
    assert_eq!(off.get_with("/a.txt", &[BROWSER]).field("content-encoding"), None);
}

#[test]
fn a_compression_flood_finds_large_files_as_they_are() {
    let large = "a".repeat(bolide_static_files::limits::COMPRESSED_FILE_BYTES + 1);
    let site = Site::with(&[("large.txt", &large)], |site| site.compress(true));
    let response = site.get_with("/large.txt", &[BROWSER]);
    assert_eq!((response.field("content-encoding"), response.body.len()), (None, large.len()));
}

//! RFC 9110 §13 against files: from memory, and from the disk.

use crate::client::Site;

fn large() -> String {
    "0123456789abcdef".repeat(20_000)
}

/// Small and large files take other ways to the same responses.
fn both(check: impl Fn(&Site, &str)) {
    let large = large();
    let site = Site::of(&[("small", "small content"), ("large", &large)]);
    for path in ["/small", "/large"] {
        check(&site, path);
        check(&site, path);
    }
}

#[test]
fn what_a_client_has_already_is_not_sent_again() {
    both(|site, path| {
        let first = site.get(path);
        let (tag, date) = (first.field("etag").unwrap(), first.field("last-modified").unwrap());
        for line in [
            format!("if-none-match: {tag}"),
            format!("if-none-match: W/{tag}"),
            format!("if-none-match: \"other\", {tag}"),
            "if-none-match: *".to_owned(),
            format!("if-modified-since: {date}"),
        ] {
            for method in ["GET", "HEAD"] {
                let response = site.connect().ask(method, path, &[&line]);
                assert_eq!(response.status, 304, "{line}");
                assert_eq!(response.field("etag"), Some(tag), "{line}");
                assert_eq!(response.field("content-type"), None, "{line}");
                assert!(response.field("date").is_some(), "{line}");
            }
        }
        for line in [
            "if-none-match: \"other\"".to_owned(),
            "if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT".to_owned(),
            "if-modified-since: yesterday".to_owned(),
        ] {
            let response = site.get_with(path, &[&line]);
            assert_eq!((response.status, response.body.len()), (200, first.body.len()), "{line}");
        }
        // §13.2.2: a tag that differs wins over a date that doesn't.
        let lines = ["if-none-match: \"other\"", &format!("if-modified-since: {date}")];
        assert_eq!(site.get_with(path, &lines).status, 200);
    });
}

#[test]
fn what_a_client_expects_has_to_be_there() {
    both(|site, path| {
        let first = site.get(path);
        let (tag, date) = (first.field("etag").unwrap(), first.field("last-modified").unwrap());
        for (line, status) in [
            (format!("if-match: {tag}"), 200),
            ("if-match: *".to_owned(), 200),
            (format!("if-match: W/{tag}"), 412),
            ("if-match: \"other\"".to_owned(), 412),
            (format!("if-unmodified-since: {date}"), 200),
            ("if-unmodified-since: Sun, 06 Nov 1994 08:49:37 GMT".to_owned(), 412),
        ] {
            assert_eq!(site.get_with(path, &[&line]).status, status, "{line}");
        }
    });
}

#[test]
fn conditions_say_nothing_about_what_is_not_there() {
    let site = Site::of(&[]);
    for line in ["if-match: *", "if-none-match: *", "range: bytes=0-1"] {
        assert_eq!(site.get_with("/missing", &[line]).status, 404, "{line}");
    }
}

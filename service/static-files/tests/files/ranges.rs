//! RFC 9110 §14 against files: from memory, and from the disk.

use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::client::{RawResponse, Site};

fn site() -> (Site, String) {
    let content: String = (0..30_000).map(|number| format!("{number:05}")).collect();
    let site = Site::of(&[("small", &content[..1000]), ("large", &content)]);
    (site, content)
}

/// The parts of a multipart response: `Content-Range` and bytes.
fn parts(response: &RawResponse) -> Vec<(String, Vec<u8>)> {
    let media_type = response.field("content-type").unwrap();
    let boundary = media_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let text = response.text();
    let whole = text.strip_suffix(&format!("\r\n--{boundary}--\r\n")).unwrap();
    let separator = format!("\r\n--{boundary}\r\n");
    let mut parts = whole.split(&separator);
    assert_eq!(parts.next(), Some(""));
    parts
        .map(|part| {
            let (head, body) = part.split_once("\r\n\r\n").unwrap();
            assert!(head.contains("Content-Type: application/octet-stream"), "{head}");
            let range = head.lines().find_map(|line| line.strip_prefix("Content-Range: "));
            (range.unwrap().to_owned(), body.as_bytes().to_vec())
        })
        .collect()
}

#[test]
fn one_part() {
    let (site, content) = site();
    for (path, length) in [("/small", 1000), ("/large", content.len())] {
        for (range, start, end) in [
            ("0-0", 0, 1),
            ("5-9", 5, 10),
            ("990-", 990, length),
            ("-7", length - 7, length),
            ("0-99999999", 0, length),
            ("-99999999", 0, length),
            ("1-2,3-4,2-9", 1, 10),
        ] {
            let response = site.get_with(path, &[&format!("range: bytes={range}")]);
            assert_eq!(response.status, 206, "{path} {range}");
            assert_eq!(response.text(), &content[start..end], "{path} {range}");
            let expected = format!("bytes {start}-{}/{length}", end - 1);
            assert_eq!(response.field("content-range"), Some(expected.as_str()));
            assert_eq!(response.field("content-type"), Some("application/octet-stream"));
            assert!(response.field("etag").is_some());
        }
    }
}

#[test]
fn several_parts() {
    let (site, content) = site();
    for (path, length) in [("/small", 1000), ("/large", content.len())] {
        let response = site.get_with(path, &["range: bytes=900-909,0-4,-1"]);
        assert_eq!(response.status, 206);
        assert_eq!(response.field("content-range"), None);
        assert!(response.field("etag").is_some());
        let expected = [(900, 910), (0, 5), (length - 1, length)].map(|(start, end)| {
            let range = format!("bytes {start}-{}/{length}", end - 1);
            (range, content.as_bytes()[start..end].to_vec())
        });
        assert_eq!(parts(&response), expected, "{path}");
    }
    let response = site.get_with("/large", &["range: bytes=0-99999,100001-149999"]);
    let parts = parts(&response);
    assert_eq!(parts[0].1, content.as_bytes()[..100_000]);
    assert_eq!(parts[1].1, content.as_bytes()[100_001..]);
}

#[test]
fn what_cannot_be_satisfied_and_what_is_no_range() {
    let (site, content) = site();
    for (path, length) in [("/small", 1000), ("/large", content.len())] {
        for range in ["999999-", "-0", "999999-9999999,8888888-"] {
            let response = site.get_with(path, &[&format!("range: bytes={range}")]);
            assert_eq!(response.status, 416, "{path} {range}");
            let expected = format!("bytes */{length}");
            assert_eq!(response.field("content-range"), Some(expected.as_str()));
        }
        let many = (0..17).map(|n| format!("{}-{}", n * 9, n * 9)).collect::<Vec<_>>().join(",");
        for range in ["bytes=9-5", "bytes=a-b", "lines=1-2", "bytes=0-,0-,0-", &many] {
            let response = site.get_with(path, &[&format!("range: {range}")]);
            assert_eq!((response.status, response.body.len()), (200, length), "{path} {range}");
        }
        let head = site.connect().ask("HEAD", path, &["range: bytes=0-1"]);
        assert_eq!(head.status, 200, "a range is of GET");
        assert_eq!(head.field("content-length"), Some(length.to_string().as_str()));
    }
}

#[test]
fn a_part_of_another_version_is_not_sent() {
    let (site, content) = site();
    for path in ["small", "large"] {
        // Long enough ago that the second of the change tells versions apart.
        let file = File::options().write(true).open(site.path(path)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    }
    for (path, length) in [("/small", 1000), ("/large", content.len())] {
        let first = site.get(path);
        let (tag, date) = (first.field("etag").unwrap(), first.field("last-modified").unwrap());
        for (value, status) in [
            (tag, 206),
            (date, 206),
            (&*format!("W/{tag}"), 200),
            ("\"other\"", 200),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ] {
            let lines = ["range: bytes=0-4", &format!("if-range: {value}")];
            let response = site.get_with(path, &lines);
            let bytes = if status == 206 { 5 } else { length };
            assert_eq!((response.status, response.body.len()), (status, bytes), "{path} {value}");
        }
    }
}

#[test]
fn the_date_of_a_change_just_now_is_no_proof() {
    let site = Site::of(&[("a", "0123456789")]);
    let date = site.get("/a").field("last-modified").unwrap().to_owned();
    let lines = ["range: bytes=0-4", &*format!("if-range: {date}")];
    let response = site.get_with("/a", &lines);
    assert_eq!((response.status, response.body.len()), (200, 10));
}

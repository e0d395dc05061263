//! Files that change, shrink, move and go while they are served.

use std::fs::{self, File};
use std::io::Write;
use std::time::{Duration, Instant};

use crate::client::Site;

/// Large enough that no buffer on the way holds all of it.
const LARGE_BYTES: u64 = 64 * 1024 * 1024;

/// A site with a large file of zeros.
fn large() -> Site {
    let site = Site::of(&[]);
    File::create(site.path("large")).unwrap().set_len(LARGE_BYTES).unwrap();
    site
}

#[test]
fn without_freshness_every_change_is_seen_at_once() {
    let site = Site::with(&[("a", "first")], |site| site.fresh(Duration::ZERO));
    let mut client = site.connect();
    assert_eq!(client.ask("GET", "/a", &[]).text(), "first");
    let tag = format!("if-none-match: {}", client.ask("GET", "/a", &[]).field("etag").unwrap());
    assert_eq!(client.ask("GET", "/a", &[&tag]).status, 304);
    for content in ["second", "third!", "4"] {
        fs::write(site.path("a"), content).unwrap();
        assert_eq!(client.ask("GET", "/a", &[]).text(), content, "written in place");
        fs::write(site.path("new"), "moved").unwrap();
        fs::rename(site.path("new"), site.path("a")).unwrap();
        assert_eq!(client.ask("GET", "/a", &[]).text(), "moved");
    }
    fs::remove_file(site.path("a")).unwrap();
    assert_eq!(client.ask("GET", "/a", &[&tag]).status, 404);
    fs::create_dir(site.path("a")).unwrap();
    assert_eq!(client.ask("GET", "/a", &[]).status, 301);
    fs::remove_dir(site.path("a")).unwrap();
    fs::write(site.path("a"), "again").unwrap();
    assert_eq!(client.ask("GET", "/a", &[]).text(), "again");
    fs::write(site.path("a.gz"), "sibling").unwrap();
    let response = client.ask("GET", "/a", &["accept-encoding: gzip"]);
    assert_eq!(response.text(), "sibling", "a new sibling is a change too");
}

#[test]
fn other_bytes_have_another_tag_though_length_and_time_are_the_same() {
    use std::os::unix::fs::MetadataExt;
    let site = Site::with(&[("a", "first")], |site| site.fresh(Duration::ZERO));
    let then = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let path = site.path("a");
    let write = |content: &str| {
        fs::write(&path, content).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let changed = write("first");
    let mut client = site.connect();
    let tag = format!("if-none-match: {}", client.ask("GET", "/a", &[]).field("etag").unwrap());
    assert_eq!(client.ask("GET", "/a", &[&tag]).status, 304);
    // The kernel's clock may tick seldom.
    while write("other") == changed {}
    let response = client.ask("GET", "/a", &[&tag]);
    assert_eq!((response.status, response.text()), (200, "other"));
}

#[test]
fn a_change_is_served_within_a_second_and_never_half() {
    let (old, new) = ("o".repeat(60_000), "n".repeat(60_000));
    let site = Site::of(&[("a", &old)]);
    let mut client = site.connect();
    assert_eq!(client.ask("GET", "/a", &[]).text(), old);
    fs::write(site.path("new"), &new).unwrap();
    fs::rename(site.path("new"), site.path("a")).unwrap();
    let changed = Instant::now();
    loop {
        let asked = Instant::now();
        let response = client.ask("GET", "/a", &[]);
        if response.text() == new {
            return;
        }
        assert_eq!(response.text(), old);
        assert!(asked - changed < Duration::from_secs(1), "old after {:?}", asked - changed);
    }
}

#[test]
fn a_file_that_shrinks_breaks_the_response_off() {
    let site = large();
    let mut client = site.connect();
    client.send("GET", "/large", &[]);
    let (status, head) = client.head();
    assert_eq!(status, 200);
    assert!(head.contains(&format!("content-length: {LARGE_BYTES}")));
    let file = File::options().write(true).open(site.path("large")).unwrap();
    file.set_len(1000).unwrap();
    let rest = client.rest();
    assert!((rest.len() as u64) < LARGE_BYTES, "nothing is made up to fill the length");
    assert!(rest.iter().all(|byte| *byte == 0));
}

#[test]
fn a_file_that_is_appended_to_is_sent_to_the_promised_length() {
    for sends in [false, true] {
        let site = Site::with(&[], |site| site.sendfile(sends));
        File::create(site.path("large")).unwrap().set_len(LARGE_BYTES).unwrap();
        let mut client = site.connect();
        client.send("GET", "/large", &[]);
        assert_eq!(client.head().0, 200);
        let mut log = File::options().append(true).open(site.path("large")).unwrap();
        for taken in 0..64 {
            log.write_all(b"one more line\n").unwrap();
            let piece = client.take(1024 * 1024);
            assert!(
                piece.len() == 1024 * 1024 && piece.iter().all(|byte| *byte == 0),
                "{taken} MiB"
            );
        }
        assert_eq!(
            client.ask("GET", "/ping", &[]).text(),
            "pong",
            "nothing follows what was promised"
        );
    }
}

#[test]
fn a_file_that_is_written_anew_and_longer_breaks_the_response_off() {
    for sends in [false, true] {
        let site = Site::with(&[], |site| site.sendfile(sends));
        File::create(site.path("large")).unwrap().set_len(LARGE_BYTES).unwrap();
        let mut client = site.connect();
        client.send("GET", "/large", &[]);
        assert_eq!(client.head().0, 200);
        fs::write(site.path("large"), vec![1; LARGE_BYTES as usize + 1000]).unwrap();
        assert!(
            (client.rest().len() as u64) < LARGE_BYTES,
            "a response of two versions looks complete"
        );
    }
}

/// Asks for a file of zeros that is written over with ones meanwhile. What came of the body.
fn written_over(site: &Site) -> Vec<u8> {
    fs::write(site.path("large"), vec![0; LARGE_BYTES as usize]).unwrap();
    let mut client = site.connect();
    client.send("GET", "/large", &[]);
    assert_eq!(client.head().0, 200);
    let mut file = File::options().write(true).open(site.path("large")).unwrap();
    let ones = vec![1; 1024 * 1024];
    for _ in 0..LARGE_BYTES / ones.len() as u64 {
        file.write_all(&ones).unwrap();
    }
    client.rest()
}

#[test]
fn a_file_written_over_breaks_the_response_off() {
    let rest = written_over(&Site::with(&[], |site| site.sendfile(false)));
    assert!((rest.len() as u64) < LARGE_BYTES);
    assert!(rest.iter().all(|byte| *byte == 0), "no byte of another version was sent");
}

#[test]
fn a_file_written_over_while_the_kernel_sends_it_breaks_the_response_off() {
    let rest = written_over(&Site::of(&[]));
    assert!((rest.len() as u64) < LARGE_BYTES, "a response of two versions looks complete");
}

#[test]
fn a_file_that_is_replaced_or_removed_is_sent_to_its_end() {
    for remove in [false, true] {
        let site = large();
        let mut client = site.connect();
        client.send("GET", "/large", &[]);
        if remove {
            assert_eq!(client.head().0, 200);
            fs::remove_file(site.path("large")).unwrap();
        } else {
            assert_eq!(client.head().0, 200);
            fs::write(site.path("new"), "new").unwrap();
            fs::rename(site.path("new"), site.path("large")).unwrap();
        }
        let rest = client.take(usize::try_from(LARGE_BYTES).unwrap());
        assert!(rest.iter().all(|byte| *byte == 0));
        let response = client.ask("GET", "/large", &[]);
        assert_eq!(response.status, if remove { 404 } else { 200 });
    }
}

#[test]
fn many_slow_downloads_do_not_keep_others_from_the_disk() {
    let site = large();
    fs::write(site.path("small"), "small").unwrap();
    let stalled: Vec<_> = (0..40)
        .map(|_| {
            let mut client = site.connect();
            client.send("GET", "/large", &[]);
            assert_eq!(client.head().0, 200);
            client
        })
        .collect();
    assert_eq!(site.get("/small").text(), "small");
    let whole = site.get_with("/large", &["range: bytes=-5000000"]);
    assert_eq!((whole.status, whole.body.len()), (206, 5_000_000));
    drop(stalled);
}

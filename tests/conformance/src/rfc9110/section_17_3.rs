//! RFC 9110 §17.3: attacks based on file and path names. A file named `secret` is next to the directory
//! that is served, another next to `files` in it.

use crate::{After, Case};

/// A path that must not lead there; a server may find out where it leads, and serve what is allowed.
fn refused(name: &'static str, path: &str) -> Case {
    Case::accepted(name, format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .statuses(&[400, 403, 404])
        .after(After::Any)
}

/// The cases of this section.
pub fn cases() -> Vec<Case> {
    vec![
        refused("path-up-and-out", "/files/../../secret"),
        refused("path-up-from-the-root", "/../secret"),
        refused("path-up-escaped", "/files/%2e%2e/%2e%2e/secret"),
        refused("path-up-half-escaped", "/files/.%2E/../secret"),
        refused("path-slash-escaped", "/files/..%2f..%2fsecret"),
        refused("path-all-escaped", "/files/%2e%2e%2f%2e%2e%2fsecret"),
        refused("path-backslash", "/files/..\\..\\secret"),
        refused("path-backslash-escaped", "/files/..%5c..%5csecret"),
        refused("path-escaped-twice", "/files/%252e%252e/%252e%252e/secret"),
        refused("path-overlong-utf8", "/files/%c0%ae%c0%ae/%c0%ae%c0%ae/secret"),
        refused("path-with-nul", "/files/a.txt%00"),
        refused("path-with-nul-and-ending", "/files/missing%00.txt"),
        refused("path-half-escape", "/files/a.txt%2"),
        refused("path-below-a-file", "/files/a.txt/b"),
        refused("path-very-long-name", &format!("/files/{}", "n".repeat(300))),
        refused("path-link-out", "/files/out"),
        refused("path-link-out-to-directory", "/files/out-directory/secret"),
        refused("path-pipe", "/files/pipe"),
        Case::accepted("path-escaped", "GET /files/%61.t%78t HTTP/1.1\r\nHost: a\r\n\r\n")
            .content("0123456789"),
        Case::accepted("path-directory", "GET /files/directory HTTP/1.1\r\nHost: a\r\n\r\n")
            .statuses(&[301, 302, 307, 308])
            .field("location", ""),
        Case::accepted("path-index", "GET /files/directory/ HTTP/1.1\r\nHost: a\r\n\r\n")
            .content("index"),
    ]
}

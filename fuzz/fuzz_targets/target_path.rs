//! RFC 3986 §3.3: whatever a target's path is, what it names lies below the root; and what has no dot segment names the
//! same for servers that resolve dots.

#![no_main]

use bolide_semantics::{decode_path, has_dot_segment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(path) = std::str::from_utf8(input) else { return };
    if !has_dot_segment(input) {
        let read =
            path.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/");
        let read = read.replace("%5c", "/").replace("%5C", "/").replace('\\', "/");
        assert!(!read.split('/').any(|segment| matches!(segment, "." | "..")), "{path}");
        assert!(!read.contains("/..;") && !read.contains("/.;"), "{path}");
    }
    let Some(name) = decode_path(path) else { return };
    let below = name.strip_prefix('/').expect("a name begins with a slash");
    let below = below.strip_suffix('/').unwrap_or(below);
    for segment in below.split('/') {
        assert!(segment != "." && segment != "..");
        assert!(!segment.is_empty() || below.is_empty());
    }
    assert!(!name.bytes().any(|byte| byte < 0x20 || byte == b'\\'));
    if !path.contains('%') {
        assert_eq!(name, path);
    }
});

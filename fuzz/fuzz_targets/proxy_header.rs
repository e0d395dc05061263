//! The PROXY protocol: a header is refused or whole at the same byte in any split, and what is written again is read again.

#![no_main]

use bolide_server::{ProxyHeader, ProxyVersion};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut settled = None;
    for end in 0..=input.len().min(300) {
        let now = ProxyHeader::read(&input[..end]);
        if let Some(before) = settled {
            assert_eq!(now, before);
        } else if now != Ok(None) {
            settled = Some(now);
        }
    }
    let Ok(Some((header, length))) = ProxyHeader::read(input) else { return };
    assert!(length <= input.len());
    for version in [ProxyVersion::V1, ProxyVersion::V2] {
        let mut bytes = Vec::new();
        header.write(version, &mut bytes);
        let (again, whole) = ProxyHeader::read(&bytes).expect("ours").expect("whole");
        assert_eq!(whole, bytes.len());
        let mut twice = Vec::new();
        again.write(version, &mut twice);
        assert_eq!(bytes, twice);
    }
});

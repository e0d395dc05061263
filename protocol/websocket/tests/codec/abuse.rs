//! The attacks that the limits answer.

use bolide_semantics::Role;
use bolide_websocket::{Codec, Deflate, Limits, Settings, limits};
use flate2::{Compress, Compression, FlushCompress};

use crate::wire::{Seen, feed, masked, output, plain, serve};

const AGREED: Deflate = Deflate {
    server_no_context_takeover: true,
    client_no_context_takeover: true,
    server_max_window_bits: 15,
    client_max_window_bits: 15,
};

fn with(limits: Limits) -> Codec {
    let settings = Settings { limits, deflate: Some(AGREED), ..Settings::default() };
    Codec::new(Role::Server, settings)
}

fn code(seen: &[Seen]) -> Option<u16> {
    match seen.last() {
        Some(Seen::Failed(code, _)) => Some(*code),
        _ => None,
    }
}

#[test]
fn a_large_message_is_refused_by_its_head() {
    let mut frame = masked(0x82, &[]);
    frame[1] = 0x80 | 127;
    frame.splice(2..2, (Limits::DEFAULT.message_bytes + 1).to_be_bytes());
    assert_eq!(code(&serve(&frame).1), Some(1009));
    // In fragments, by their sum.
    let small = Limits { message_bytes: 10, ..Limits::default() };
    let frames = [masked(0x02, b"12345"), masked(0x00, b"12345")].concat();
    assert_eq!(code(&feed(&mut with(small), [&frames[..]])), None);
    let frames = [masked(0x02, b"12345"), masked(0x80, b"123456")].concat();
    assert_eq!(code(&feed(&mut with(small), [&frames[..]])), Some(1009));
}

#[test]
fn a_fragment_flood_is_refused() {
    let few = Limits { fragments_count: 100, ..Limits::default() };
    let mut frames = masked(0x02, b"a");
    for _ in 1..100 {
        frames.extend(masked(0x00, b"a"));
    }
    assert_eq!(code(&feed(&mut with(few), [&frames[..]])), None);
    frames.extend(masked(0x80, b"a"));
    assert_eq!(code(&feed(&mut with(few), [&frames[..]])), Some(1008));
}

#[test]
fn empty_fragments_are_refused() {
    let mut frames = masked(0x02, b"");
    for _ in 1..Limits::DEFAULT.empty_fragments_count {
        frames.extend(masked(0x00, b""));
    }
    assert_eq!(code(&serve(&frames).1), None);
    frames.extend(masked(0x00, b""));
    assert_eq!(code(&serve(&frames).1), Some(1008));
}

/// So many zeros, compressed as hard as can be, in a message.
fn bomb(length: usize) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut out = Vec::with_capacity(length / 500 + 1024);
    compress.compress_vec(&vec![0; length], &mut out, FlushCompress::Sync).unwrap();
    out.truncate(out.len() - 4);
    masked(0xc2, &out)
}

#[test]
fn a_deflate_bomb_is_refused_before_it_is_large() {
    let free = Limits::DEFAULT.inflate_free_bytes as usize;
    assert!(matches!(&feed(&mut with(Limits::default()), [&bomb(free)[..]])[..], [
        Seen::Message(_, content)
    ] if content.len() == free));
    let seen = feed(&mut with(Limits::default()), [&bomb(64 * free)[..]]);
    let [Seen::Part(_, content), Seen::Failed(1009, _)] = &seen[..] else { panic!("{seen:?}") };
    assert!(content.len() <= 2 * free, "{} bytes were inflated", content.len());
}

#[test]
fn a_large_message_is_refused_however_small_it_is_on_the_wire() {
    let small = Limits { message_bytes: 1000, ..Limits::default() };
    assert_eq!(code(&feed(&mut with(small), [&bomb(1000)[..]])), None);
    assert_eq!(code(&feed(&mut with(small), [&bomb(1001)[..]])), Some(1009));
    // Blocks without content inflate to nothing, and are still a message.
    let endless = masked(0xc2, &[0, 0, 0, 0xff, 0xff].repeat(1000));
    assert_eq!(code(&feed(&mut with(small), [&endless[..]])), Some(1009));
}

#[test]
fn a_websocket_ping_flood_is_answered_within_bounds() {
    let mut flood = Vec::new();
    for count in 0..10_000 {
        flood.extend(masked(0x89, format!("ping {count}").as_bytes()));
    }
    let mut codec = with(Limits::default());
    feed(&mut codec, [&flood[..]]);
    assert!(codec.output_bytes() < limits::PONGS_BYTES + 127 + 127, "{}", codec.output_bytes());
    let pongs = output(&mut codec);
    assert!(pongs.starts_with(&plain(0x8a, b"ping 0")), "the first ones are answered at once");
    assert!(pongs.ends_with(&plain(0x8a, b"ping 9999")), "and the newest one in any case");
}

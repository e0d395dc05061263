//! Gigabytes of random data through curl and back, compared byte by byte while they arrive.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use bolide_e2e::{assert_same, random};
use bolide_launcher::{Server, find};

/// Size that is sent at a time: no multiple of any buffer's size, in bytes.
const PIECE_BYTES: usize = 1024 * 1024 + 13;

/// How much is sent each way, in pieces: enough to pass 32-bit counts in CI, and a look elsewhere.
fn pieces() -> usize {
    let bytes: u64 = if std::env::var_os("CI").is_some() { 4 << 30 } else { 256 << 20 };
    (bytes / PIECE_BYTES as u64) as usize + 1
}

/// Random bytes, with the piece's number in front: no two pieces are alike.
fn stamp(piece: &mut [u8], number: usize) {
    piece[..8].copy_from_slice(&(number as u64).to_be_bytes());
}

fn curl(program: &Path, options: &[&str], url: &str) -> Child {
    Command::new(program)
        .args(["--silent", "--show-error", "--insecure", "--no-buffer", "--max-time", "300"])
        .args(options)
        .args(["--request", "POST", "--upload-file", "-", url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl was found")
}

#[test]
fn curl_moves_random_data_there_and_back() {
    let Some(program) = find("curl", "curl_moves_random_data_there_and_back") else { return };
    let server = Server::start_both();
    let count = pieces();
    for (options, url) in [
        (&["--http1.1"][..], server.http()),
        (&["--http2-prior-knowledge"], server.http()),
        (&["--http2"], server.https()),
    ] {
        let began = Instant::now();
        let mut child = curl(&program, options, &format!("{url}/echo"));
        let mut stdin = child.stdin.take().expect("it is piped");
        let sending = std::thread::spawn(move || {
            let mut piece = random(PIECE_BYTES, 1);
            for number in 0..count {
                stamp(&mut piece, number);
                stdin.write_all(&piece).expect("curl takes all of it");
            }
        });
        let mut stdout = child.stdout.take().expect("it is piped");
        let (mut wanted, mut got) = (random(PIECE_BYTES, 1), vec![0; PIECE_BYTES]);
        for number in 0..count {
            stamp(&mut wanted, number);
            stdout.read_exact(&mut got).unwrap_or_else(|error| {
                panic!("{options:?}: piece {number} of {count}: {error}");
            });
            if got != wanted {
                assert_same(&got, &wanted, &format!("{options:?}: piece {number}"));
            }
        }
        assert_eq!(stdout.read(&mut got).unwrap(), 0, "{options:?}: nothing follows");
        sending.join().expect("all of it was sent");
        assert!(child.wait().unwrap().success(), "{options:?}");
        let gib = (count * PIECE_BYTES) as f64 / f64::from(1 << 30);
        println!("{options:?}: {gib:.2} GiB each way in {:.1} s", began.elapsed().as_secs_f64());
    }
}

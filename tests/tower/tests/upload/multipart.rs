//! The uploads.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::client::{Framing, over_http1, over_http2};
use crate::servers::start;

/// Size that is uploaded over HTTP/1.1.
const LENGTH: u64 = 1 << 30;

/// Size that is uploaded over HTTP/2.
const LENGTH_HTTP2: u64 = 64 << 20;

/// Size that is uploaded first, for what a process needs once, it needs for any upload.
const LENGTH_SMALL: u64 = 4 << 20;

/// Growth of the process during an upload to Bolide: a quarter of the smallest, six times what is seen. What the same application holds under hyper
/// is mostly 4 MB, and on a machine with one core 36 MB now and then: it is printed and not judged.
const GROWTH_BYTES_MAX: u64 = 16 << 20;

/// One upload at a time, for the memory that is looked at is the process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Longer than an upload takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// A line of what the kernel says of this process, in bytes.
fn memory_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("such a line");
    let kilobytes = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().expect("a number") * 1024
}

/// The most that the kernel remembers of this process's memory is what it has now. A kernel without this remembers more, which makes the
/// test stricter.
fn forget_the_most() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Uploads to both servers, little and then `length`; compares the responses; returns Bolide's.
async fn same<F>(what: &str, length: u64, upload: impl Fn(SocketAddr, u64) -> F) -> String
where
    F: Future<Output = String>,
{
    let _alone = ONE_AT_A_TIME.lock().await;
    let [hyper, bolide] = start().await;
    let mut responses = Vec::new();
    // What hyper leaves to the allocator would be room for Bolide.
    for (name, address) in [bolide, hyper] {
        upload(address, LENGTH_SMALL).await;
        let is_linux = cfg!(target_os = "linux");
        let before = if is_linux { memory_bytes("VmRSS") } else { 0 };
        if is_linux {
            forget_the_most();
        }
        let start = Instant::now();
        let response = tokio::time::timeout(PATIENCE, upload(address, length)).await;
        responses.push(response.unwrap_or_else(|_| panic!("{name} takes too long: {what}")));
        let took = start.elapsed().as_secs_f64();
        if is_linux {
            let growth = memory_bytes("VmHWM").saturating_sub(before);
            eprintln!("{what}: {name} took {took:.1} s, {growth} bytes more than {before}");
            let may_grow = address == hyper.1 || growth < GROWTH_BYTES_MAX;
            assert!(may_grow, "{what}: {name} and its client hold {growth} bytes");
        } else {
            eprintln!("SKIPPED: the memory of a process is read from /proc");
        }
    }
    let [bolide, hyper] = &responses[..] else { panic!("two responses") };
    assert_eq!(bolide, hyper, "{what}");
    bolide.clone()
}

async fn same_over_http1(framing: Framing) {
    let upload = |address, length| over_http1(address, length, framing);
    let response = same(&format!("{framing:?}"), LENGTH, upload).await;
    assert!(response.starts_with("HTTP/1.1 200 OK\n"), "{response}");
    let told = r#"empty None 0 true;file Some("f") 1073741824 true;"#;
    assert!(response.contains(told), "{response}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gibibyte_of_known_length_arrives_and_nobody_holds_it() {
    same_over_http1(Framing::Length).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gibibyte_in_chunks_arrives_and_nobody_holds_it() {
    same_over_http1(Framing::Chunked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_over_http2_arrives_and_nobody_holds_it() {
    let response = same("HTTP/2", LENGTH_HTTP2, over_http2).await;
    assert_eq!(response, r#"200 OK empty None 0 true;file Some("f") 67108864 true;"#);
}

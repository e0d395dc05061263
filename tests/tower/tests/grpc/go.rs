//! The same cases as grpc-go asserts them.

use bolide_launcher::{find, root, run, scratch, skip};

use crate::start::start;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_go_passes_its_own_cases() {
    let Some(go) = find("go", "grpc_go") else { return };
    let built = scratch("grpc_go").join("interop");
    let source = root().join("tests/tower/go");
    let arguments =
        ["-C".as_ref(), source.as_os_str(), "-o".as_ref(), built.as_os_str(), ".".as_ref()];
    let build = std::iter::once("build".as_ref()).chain(arguments);
    let finished = run(&go, build);
    if !finished.status.success() {
        return skip(&format!("this Go can't build the client (grpc_go): {}", finished.both()));
    }
    let address = start().await.to_string();
    let told = run(&built, [address]).well().text();
    assert_eq!(told.lines().filter(|line| line.starts_with("passed ")).count(), 14, "{told}");
}

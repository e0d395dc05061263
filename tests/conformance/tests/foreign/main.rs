//! The suite is right only if others pass it too: the same cases against hyper and nginx, but for
//! the deviations that `expected/` lists with their reasons.

mod hyper_server;
mod nginx;

use bolide_conformance::{Case, Target, check, rfc9110, rfc9112};

fn check_all(address: String, server: &str, more: &[Case]) {
    let target = Target::foreign(address, Some(server));
    let cases = [rfc9110::all(), rfc9112::all(), more.to_vec()].concat();
    check(&target, &cases);
}

#[test]
fn hyper_passes() {
    check_all(hyper_server::start(), "hyper", &[]);
}

#[test]
fn nginx_passes() {
    let Some(program) = bolide_launcher::find("nginx", "nginx_passes") else { return };
    let version = bolide_launcher::run(&program, ["-v"]).both();
    if !version.contains(nginx::VERSION) {
        // Another version deviates in other cases: nothing can be said about the suite.
        bolide_launcher::skip(&format!("{} is not installed (nginx_passes)", nginx::VERSION));
        return;
    }
    let nginx = nginx::start(&program, &hyper_server::start());
    check_all(nginx.address().to_owned(), "nginx", &rfc9110::of_files());
}

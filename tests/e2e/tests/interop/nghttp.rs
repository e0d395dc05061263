//! nghttp, the client of nghttp2, before the server alone and through proxies.

use bolide_e2e::{SIZES, assert_same, random_file};
use bolide_launcher::{Server, find, run, scratch};

#[test]
fn nghttp_gets() {
    let Some(nghttp) = find("nghttp", "nghttp_gets") else { return };
    let servers = Server::start_everywhere();
    for url in servers.iter().flat_map(Server::both) {
        let ping = format!("{url}/ping");
        let response = run(&nghttp, ["-nv", "--no-verify-peer", &ping]).well();
        let text = response.text();
        assert!(text.contains(":status: 200"), "{url}: {text}");
        assert!(text.contains("recv SETTINGS frame"), "{url}: {text}");
        for size in SIZES {
            let echo = format!("{url}/echo?size={size}");
            let response = run(&nghttp, ["--no-verify-peer", &echo]).well();
            assert_same(&response.stdout, &vec![b'x'; *size], &echo);
        }
    }
}

#[test]
fn nghttp_posts() {
    let Some(nghttp) = find("nghttp", "nghttp_posts") else { return };
    let directory = scratch("nghttp_posts");
    let servers = Server::start_everywhere();
    for url in servers.iter().flat_map(Server::both) {
        for size in SIZES {
            let file = random_file(&directory, *size);
            let data = format!("--data={}", file.display());
            let echo = format!("{url}/echo");
            let response =
                run(&nghttp, ["--no-verify-peer", "-H:method: POST", &data, &echo]).well();
            let sent = std::fs::read(&file).unwrap();
            assert_same(&response.stdout, &sent, &format!("{url} {size}"));
        }
    }
}

#[test]
fn nghttp_posts_with_trailers_and_padding() {
    let test = "nghttp_posts_with_trailers_and_padding";
    let Some(nghttp) = find("nghttp", test) else { return };
    let servers = Server::start_everywhere();
    let file = random_file(&scratch(test), 300_000);
    let sent = std::fs::read(&file).unwrap();
    let data = format!("--data={}", file.display());
    for url in servers.iter().flat_map(Server::both) {
        let echo = format!("{url}/echo");
        for option in ["--trailer=x-sum: 1", "--padding=200", "--header-table-size=0", "--no-dep"] {
            let arguments = ["--no-verify-peer", "-H:method: POST", option, &data, &echo];
            let response = run(&nghttp, arguments).well();
            assert_same(&response.stdout, &sent, &format!("{url} {option}"));
        }
    }
}

#[test]
fn nghttp_asks_many_on_one_connection() {
    let Some(nghttp) = find("nghttp", "nghttp_asks_many_on_one_connection") else { return };
    let servers = Server::start_everywhere();
    for url in servers.iter().flat_map(Server::both) {
        let echo = format!("{url}/echo?size=1000");
        let response = run(&nghttp, ["--no-verify-peer", "--multiply=150", &echo]).well();
        assert_same(&response.stdout, &vec![b'x'; 150_000], url);
    }
}

#[test]
fn nghttp_with_small_windows() {
    let Some(nghttp) = find("nghttp", "nghttp_with_small_windows") else { return };
    let servers = Server::start_everywhere();
    for url in servers.iter().flat_map(Server::both) {
        // Windows of 2^10 - 1 bytes: the server stalls and goes on for each of them.
        let echo = format!("{url}/echo?size=1048576");
        let response = run(&nghttp, ["--no-verify-peer", "-w10", "-W16", &echo]).well();
        assert_same(&response.stdout, &vec![b'x'; 1024 * 1024], url);
    }
}

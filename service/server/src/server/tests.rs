//! Mistakes that are refused before a server starts.

use super::*;

#[test]
fn addresses() {
    for good in ["127.0.0.1:0", "[::1]:8080", "unix:/tmp/a"] {
        assert!(parse_address(good).is_some(), "{good}");
    }
    for bad in ["", "8080", "localhost", "127.0.0.1", "127.0.0.1:65536", "::1:80", "unix:"] {
        assert!(parse_address(bad).is_none(), "{bad}");
    }
}

#[test]
fn what_cannot_start_says_why() {
    let message = |server: Server| server.start(Router::new).unwrap_err().to_string();
    assert!(message(Server::new()).starts_with("nothing to listen on"));
    assert!(message(Server::new().http("8080")).starts_with("can't listen on `8080`"));
    let server = Server::new().http("127.0.0.1:0");
    let error = server.start(|| Router::new().get("ping", |_| "")).unwrap_err();
    assert!(error.to_string().starts_with("route `ping`"));
}

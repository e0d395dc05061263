//! TLS to upstreams: the certificate that is shown, and the name that is expected.

use bolide_client::Identity;
use bolide_reverse_proxy::{HealthCheck, ProxySettings, Trust, Upstream};
use bolide_server::{Clients, Router, Running, Server, Tls};

use crate::scene::Proxy;
use crate::watch::{SHORT, until};

/// A certificate that vouches for itself: its PEM text, and with its key.
fn certificate(name: &str) -> (Vec<u8>, Identity) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("an identity");
    (chain.into_bytes(), identity)
}

/// A server that is `backend.internal`, and requires a certificate of this client.
fn strict(client: &[u8]) -> (Running, Upstream, Trust) {
    let (chain, identity) = certificate("backend.internal");
    let tls = Tls::with(&[identity], Clients::Required(client.to_vec())).expect("settings");
    let router = || {
        Router::new().get("/", |request| {
            let facts = request.tls().expect("TLS");
            format!("{:?} {}", facts.server_name, facts.client.is_some())
        })
    };
    let server = Server::new().workers(1).https("127.0.0.1:0", &tls);
    let running = server.start(router).expect("a free port");
    let address = running.addresses()[0].expect("an address");
    let upstream = Upstream::parse(&format!("https://{address}")).expect("an upstream");
    (running, upstream, Trust::Pem(chain))
}

#[test]
fn an_upstream_gets_the_certificate_and_is_known_by_the_name() {
    let (client, identity) = certificate("client");
    let (running, upstream, trust) = strict(&client);
    let settings = |check| {
        let settings = ProxySettings::trusting(vec![upstream.clone()], &trust).expect("settings");
        let settings = settings.server_name("backend.internal").expect("a name");
        if check {
            settings.health_check(HealthCheck::new("/").interval(SHORT)).expect("a path")
        } else {
            settings
        }
    };
    let proxy = Proxy::with(settings(true).identity(identity.clone()).expect("a certificate"));
    let response = proxy.get();
    assert!(response.ends_with("Some(\"backend.internal\") true"), "{response}");
    until(&proxy.settings, 0, |stats| stats.health_checks > 0);
    assert_eq!(proxy.settings.stats()[0].health_check_failures, 0);
    let without = Proxy::with(settings(false)).get();
    assert!(without.starts_with("HTTP/1.1 502"), "{without}");
    let by_address = ProxySettings::trusting(vec![upstream.clone()], &trust).expect("settings");
    let other = Proxy::with(by_address.identity(identity).expect("a certificate")).get();
    assert!(other.contains("tls_certificate_error"), "{other}");
    running.shut_down();
    running.join().expect("no worker failed");
}

#[test]
fn a_server_name_that_is_none_is_refused() {
    let upstream = Upstream::parse("https://127.0.0.1:1").expect("an upstream");
    let settings = ProxySettings::trusting(vec![upstream], &Trust::Any).expect("settings");
    assert!(settings.server_name("a b").is_err());
}

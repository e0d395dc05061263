//! Several certificates, clients that say who they are, and settings that are replaced.

use std::cell::Cell;

use super::*;
use crate::{Issued, IssuedNames};

/// The parameters of a certificate that is valid on the day of these tests.
fn parameters(names: &[&str]) -> rcgen::CertificateParams {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut parameters = rcgen::CertificateParams::new(names).unwrap();
    parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(2036, 1, 1);
    parameters
}

fn identity(name: &str) -> Identity {
    let (chain, key) = pem(name);
    Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap()
}

/// An authority in PEM, and the certificate of a client that it has signed, which expires at the end of the tests' day.
fn authority_and_client() -> (Vec<u8>, Identity) {
    let mut authority = parameters(&[]);
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "authority");
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let mut client = parameters(&[]);
    client.not_after = rcgen::date_time_ymd(2026, 9, 22);
    client.distinguished_name = rcgen::DistinguishedName::new();
    client.distinguished_name.push(rcgen::DnType::CommonName, "alice");
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = client.signed_by(&key, &issuer).unwrap();
    let (chain, key) = (certificate.pem(), key.serialize_pem());
    (root.pem().into_bytes(), Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap())
}

fn client(identity: Option<&Identity>) -> ClientTls {
    let options =
        ClientOptions { trust: &Trust::Any, alpn: &[], identity, resume: true, early_data: false };
    ClientTls::with(&options, CLOCK).unwrap()
}

fn send(from: &mut TlsLayer, to: &mut TlsLayer) -> Result<(), TlsFailure> {
    let mut wire = Vec::new();
    from.flush(&mut SendQueue::new(), &mut wire).unwrap();
    let mut input = ReceiveBuffer::new(65_536);
    input.start(&wire);
    to.receive(&mut input, &mut ReceiveBuffer::new(65_536)).map(drop)
}

/// Returns what the server knows after a handshake, and the certificate that the client saw.
fn handshake(
    server: &ServerTls,
    client: &ClientTls,
    name: &str,
) -> Result<(HandshakeFacts, Vec<u8>), TlsFailure> {
    let (mut client, mut server) = (client.connect(name).unwrap(), server.accept().unwrap());
    for _ in 0..4 {
        send(&mut client, &mut server)?;
        send(&mut server, &mut client)?;
    }
    let seen = client.connection.peer_certificates().unwrap()[0].to_vec();
    Ok((server.facts().unwrap(), seen))
}

fn server(identities: &[Identity], clients: Clients) -> ServerTls {
    ServerTls::with(&ServerOptions { identities, clients, ..ServerOptions::default() }, CLOCK)
        .unwrap()
}

#[test]
fn each_name_gets_its_certificate() {
    let identities = [identity("first.org"), identity("*.example.org"), identity("a.example.org")];
    let server = server(&identities, Clients::Any);
    for (name, expected) in [
        ("first.org", 0),
        ("b.example.org", 1),
        ("a.example.org", 2),
        ("unknown.org", 0),
        ("127.0.0.1", 0),
    ] {
        let (_, seen) = handshake(&server, &client(None), name).unwrap();
        assert_eq!(seen, identities[expected].certificate_der(), "{name}");
    }
}

#[test]
fn a_client_that_has_to_say_who_it_is_does_so_or_is_refused() {
    let own = [identity("localhost")];
    let (authority, alice) = authority_and_client();
    let stranger = identity("stranger");
    let known = |clients: Clients, identity: Option<&Identity>| {
        handshake(&server(&own, clients), &client(identity), "localhost")
            .map(|(facts, _)| facts.client.map(|client| client.subject.clone()))
    };
    let (optional, required) =
        (Clients::Optional(authority.clone()), Clients::Required(authority.clone()));
    let named = Ok(Some("CN=alice".to_owned()));
    assert_eq!(known(Clients::Any, Some(&alice)), Ok(None), "nobody has asked");
    assert_eq!(known(optional.clone(), Some(&alice)), named);
    assert_eq!(known(required.clone(), Some(&alice)), named);
    assert_eq!(known(optional.clone(), None), Ok(None));
    for (clients, identity) in
        [(required.clone(), None), (required, Some(&stranger)), (optional, Some(&stranger))]
    {
        let failure = known(clients, identity).unwrap_err();
        assert!(failure.in_handshake, "{failure}");
    }
}

#[test]
fn a_new_certificate_is_shown_and_old_sessions_are_resumed() {
    let (old, new) = ([identity("localhost")], [identity("localhost")]);
    let server = server(&old, Clients::Any);
    let before = client(None);
    let (facts, seen) = handshake(&server, &before, "localhost").unwrap();
    assert!(!facts.resumed && seen == old[0].certificate_der());
    let another = server.clone();
    another.replace(&ServerOptions { identities: &new, ..ServerOptions::default() }).unwrap();
    let (facts, _) = handshake(&server, &before, "localhost").unwrap();
    assert!(facts.resumed, "a new certificate costs no full handshake");
    let (facts, seen) = handshake(&server, &client(None), "localhost").unwrap();
    assert!(!facts.resumed && seen == new[0].certificate_der());
}

thread_local! {
    /// Seconds that have passed for a server.
    static PASSED: Cell<u64> = const { Cell::new(0) };
}

const MOVED: WallClock = WallClock(|| (CLOCK.0)() + Duration::from_secs(PASSED.get()));

#[test]
fn a_session_is_resumed_after_one_rotation_of_the_ticket_keys_and_not_after_two() {
    const ROTATION: u64 = 6 * 60 * 60;
    let own = [identity("localhost")];
    let options = ServerOptions { identities: &own, ..ServerOptions::default() };
    let server = ServerTls::with(&options, MOVED).unwrap();
    for (passes, resumed) in
        [(ROTATION - 1, true), (ROTATION, true), (2 * ROTATION - 1, true), (2 * ROTATION, false)]
    {
        // Each time another client that has been here once; the keys were made at a full hour of rotation.
        let client = client(None);
        assert!(!handshake(&server, &client, "localhost").unwrap().0.resumed);
        PASSED.set(PASSED.get() + passes);
        let (facts, _) = handshake(&server, &client, "localhost").unwrap();
        assert_eq!(facts.resumed, resumed, "after {passes} s");
        PASSED.set(PASSED.get().next_multiple_of(ROTATION));
    }
}

#[test]
fn a_client_shows_its_certificate_on_each_connection() {
    let own = [identity("localhost")];
    let (authority, alice) = authority_and_client();
    let server = server(&own, Clients::Any);
    let (alice, nobody) = (client(Some(&alice)), client(None));
    for resumed in [false, true] {
        let (facts, _) = handshake(&server, &nobody, "localhost").unwrap();
        assert_eq!(facts.resumed, resumed);
    }
    let asks = |clients| {
        server
            .replace(&ServerOptions { identities: &own, clients, ..ServerOptions::default() })
            .unwrap()
    };
    for clients in [Clients::Optional(authority.clone()), Clients::Required(authority)] {
        asks(clients);
        for _ in 0..2 {
            let (facts, _) = handshake(&server, &alice, "localhost").unwrap();
            assert!(!facts.resumed && facts.client.is_some());
        }
    }
    assert!(handshake(&server, &nobody, "localhost").is_err(), "a session of before is resumed");
}

#[test]
fn a_client_certificate_that_has_expired_ends_what_it_began() {
    /// Within the time of a ticket's key, and after the end of the day.
    const EXPIRED: u64 = 10 * 60 * 60;
    let own = [identity("localhost")];
    let (authority, alice) = authority_and_client();
    for clients in [Clients::Optional(authority.clone()), Clients::Required(authority)] {
        PASSED.set(0);
        let options = ServerOptions { identities: &own, clients, ..ServerOptions::default() };
        let server = ServerTls::with(&options, MOVED).unwrap();
        let alice = client(Some(&alice));
        // As often as it comes back, nothing is prolonged.
        for passed in (0..EXPIRED).step_by(3600).take(9) {
            PASSED.set(passed);
            assert!(handshake(&server, &alice, "localhost").unwrap().0.client.is_some());
        }
        PASSED.set(EXPIRED);
        let failure = handshake(&server, &alice, "localhost").map(drop).unwrap_err();
        assert!(failure.what.to_lowercase().contains("expired"), "{failure}");
    }
}

#[test]
fn an_authority_that_is_taken_out_ends_what_its_clients_began() {
    let own = [identity("localhost")];
    let ((authority, alice), (other, _)) = (authority_and_client(), authority_and_client());
    let server = server(&own, Clients::Required(authority));
    let alice = client(Some(&alice));
    assert!(handshake(&server, &alice, "localhost").is_ok());
    let clients = Clients::Required(other);
    server
        .replace(&ServerOptions { identities: &own, clients, ..ServerOptions::default() })
        .unwrap();
    assert!(handshake(&server, &alice, "localhost").is_err());
}

#[test]
fn settings_that_cannot_be_leave_the_old_ones() {
    let own = [identity("localhost")];
    let server = server(&own, Clients::Any);
    let none = ServerOptions { identities: &[], ..ServerOptions::default() };
    assert!(matches!(server.replace(&none), Err(IdentityError::NoCertificate)));
    let clients = Clients::Required(b"no certificate".to_vec());
    let unread = ServerOptions { identities: &own, clients, ..ServerOptions::default() };
    assert!(server.replace(&unread).is_err());
    assert!(handshake(&server, &client(None), "localhost").is_ok());
}

/// Returns what a server with these rules and a client that offers these protocols agree on.
fn agreed(rules: HandshakeRules, alpn: &[Alpn]) -> Result<HandshakeFacts, TlsFailure> {
    let own = [identity("localhost")];
    let options = ServerOptions { identities: &own, rules, ..ServerOptions::default() };
    let server = ServerTls::with(&options, CLOCK).unwrap();
    let options =
        ClientOptions { trust: &Trust::Any, alpn, identity: None, resume: true, early_data: false };
    let client = ClientTls::with(&options, CLOCK).unwrap();
    handshake(&server, &client, "localhost").map(|(facts, _)| facts)
}

#[test]
fn a_server_agrees_to_what_its_rules_allow() {
    let both = [Alpn::H2, Alpn::Http11];
    let of = |least, most, suites: &[&str], alpn: &[Alpn]| HandshakeRules {
        least,
        most,
        cipher_suites: suites.iter().map(ToString::to_string).collect(),
        alpn: alpn.to_vec(),
        early_data: false,
    };
    let (old, new) = (TlsVersion::Tls12, TlsVersion::Tls13);
    for (rules, version, cipher, alpn) in [
        (HandshakeRules::default(), "TLSv1.3", "TLS_AES_128_GCM_SHA256", Alpn::H2),
        (of(old, old, &[], &both), "TLSv1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Alpn::H2),
        (
            of(new, new, &["TLS_CHACHA20_POLY1305_SHA256"], &[Alpn::Http11]),
            "TLSv1.3",
            "TLS_CHACHA20_POLY1305_SHA256",
            Alpn::Http11,
        ),
        (
            of(old, old, &["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"], &[Alpn::Http11, Alpn::H2]),
            "TLSv1.2",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            Alpn::Http11,
        ),
    ] {
        let facts = agreed(rules.clone(), &both).unwrap();
        assert_eq!((facts.version, facts.cipher.as_str()), (version, cipher), "{rules:?}");
        assert_eq!(facts.alpn, Some(alpn), "{rules:?}");
    }
    let only_h2 = of(old, new, &[], &[Alpn::H2]);
    assert!(agreed(only_h2.clone(), &[Alpn::Http11]).is_err());
    assert_eq!(agreed(only_h2, &[]).unwrap().alpn, None);
}

#[test]
fn rules_that_cannot_be_are_refused() {
    let default = HandshakeRules::default();
    let (old, new) = (TlsVersion::Tls12, TlsVersion::Tls13);
    let suite = |name: &str| vec![name.to_owned()];
    let aes = "TLS_AES_128_GCM_SHA256";
    for (rules, said) in [
        (HandshakeRules { least: new, most: old, ..default.clone() }, "newer than the newest"),
        (
            HandshakeRules { cipher_suites: suite("TLS_NONE"), ..default.clone() },
            "`TLS_NONE` is not a",
        ),
        (HandshakeRules { cipher_suites: suite(aes), ..default.clone() }, "is for TLS 1.2"),
        (
            HandshakeRules { cipher_suites: suite(aes), least: old, most: old, ..default.clone() },
            "is for TLS 1.2",
        ),
        (HandshakeRules { alpn: vec![Alpn::H3], ..default.clone() }, "over QUIC alone"),
    ] {
        let told = rules.check().unwrap_err().to_string();
        assert!(told.contains(said), "{rules:?}: {told}");
    }
    let least = HandshakeRules { cipher_suites: suite(aes), least: new, ..default };
    assert!(least.check().is_ok());
}

#[test]
fn quic_needs_tls_1_3_and_its_first_suite() {
    let default = HandshakeRules::default();
    let other = vec!["TLS_AES_256_GCM_SHA384".to_owned()];
    assert!(default.allow_quic());
    assert!(!HandshakeRules { most: TlsVersion::Tls12, ..default.clone() }.allow_quic());
    let least = TlsVersion::Tls13;
    assert!(!HandshakeRules { cipher_suites: other, least, ..default }.allow_quic());
}

/// A server with certificates that are issued while it runs, and their table.
fn issuing(identities: &[Identity], names: &[&str]) -> (ServerTls, Issued) {
    let table = Issued::default();
    let names = names.iter().map(ToString::to_string).collect();
    let issued = Some(IssuedNames { table: table.clone(), names });
    let options = ServerOptions { identities, issued, ..ServerOptions::default() };
    (ServerTls::with(&options, CLOCK).unwrap(), table)
}

#[test]
fn a_name_without_its_certificate_fails_and_is_named() {
    let (server, table) = issuing(&[identity("other.org")], &["a.org"]);
    let failure = |name: &str| {
        let (mut client, mut server) =
            (client(None).connect(name).unwrap(), server.accept().unwrap());
        send(&mut client, &mut server).unwrap_err()
    };
    let failed = failure("a.org");
    assert_eq!((failed.kind, failed.in_handshake), (TlsFailure::NO_CERTIFICATE, true));
    assert!(failed.what.contains("no certificate for `a.org`"), "{failed}");
    let issued = identity("a.org");
    table.set("a.org", &issued);
    let (_, seen) = handshake(&server, &client(None), "a.org").unwrap();
    assert_eq!(seen, issued.certificate_der(), "no setting was replaced");
    let (server, _) = issuing(&[], &["a.org"]);
    let mut client = client(None).connect("127.0.0.1").unwrap();
    let failed = send(&mut client, &mut server.accept().unwrap()).unwrap_err();
    assert!(failed.what.contains("requested no name"), "{failed}");
}

/// RFC 8737 §3: the connection of a CA that validates a name.
#[test]
fn a_connection_that_validates_a_name_gets_its_challenge_alone() {
    let (server, table) = issuing(&[identity("other.org")], &["a.org"]);
    let (issued, challenge) = (identity("a.org"), identity("a.org"));
    table.set("a.org", &issued);
    let seen = |protocols: &[&[u8]], name: &str| {
        let mut config = rustls::ClientConfig::clone(&client(None).quic(b""));
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
        let connection = rustls::ClientConnection::new(config.into(), name).unwrap();
        let (mut client, mut server) = (TlsLayer::new(connection.into()), server.accept().unwrap());
        for _ in 0..4 {
            send(&mut client, &mut server).map_err(|failure| failure.kind)?;
            send(&mut server, &mut client).map_err(|failure| failure.kind)?;
        }
        assert_eq!(server.connection.alpn_protocol(), Some(protocols[0]));
        Ok(client.connection.peer_certificates().unwrap()[0].to_vec())
    };
    let validation: &[&[u8]] = &[b"acme-tls/1"];
    assert_eq!(seen(validation, "a.org"), Err(TlsFailure::NO_CERTIFICATE));
    table.set_challenge("a.org", Some(&challenge));
    assert_eq!(seen(validation, "A.org").unwrap(), challenge.certificate_der());
    assert_eq!(seen(validation, "other.org"), Err(TlsFailure::NO_CERTIFICATE));
    for others in [&[&b"h2"[..], b"acme-tls/1"], &[b"http/1.1", b"acme-tls/1"]] {
        assert_eq!(seen(others, "a.org").unwrap(), issued.certificate_der());
    }
    table.set_challenge("a.org", None);
    assert_eq!(seen(validation, "a.org"), Err(TlsFailure::NO_CERTIFICATE));
}

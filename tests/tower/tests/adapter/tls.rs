//! Facts for handlers about the TLS connection.

use std::sync::Arc;

use axum::Router;
use axum::extract::Extension;
use axum::routing::{get, post};
use bolide::client::{Client, Trust, Versions};
use bolide::tls::{Clients, Identity, Tls};
use bolide::tower::TlsInfo;
use http_body_util::BodyExt;
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::start::{get as request, http1, in_time, read, start};

/// An authority in PEM, and a client's certificate that it signed, with its key.
fn authority_and_client() -> (Vec<u8>, CertificateDer<'static>, KeyPair) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "authority");
    let authority_key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let mut client = CertificateParams::new(Vec::new()).unwrap();
    client.distinguished_name = DistinguishedName::new();
    client.distinguished_name.push(DnType::CommonName, "alice");
    let key = KeyPair::generate().unwrap();
    let certificate = client.signed_by(&key, &issuer).unwrap();
    (root.pem().into_bytes(), certificate.der().clone(), key)
}

async fn told(info: Option<Extension<TlsInfo>>) -> String {
    let Some(Extension(info)) = info else { return "cleartext".to_owned() };
    let client = info.client_certificate().expect("every client has one here");
    let (der, hex) = (client.der.len(), client.fingerprint_hex());
    let subject = &client.subject;
    format!("{} {:?} {:?} {subject} {der} {hex}", info.version(), info.alpn(), info.server_name())
}

#[tokio::test]
async fn a_handler_sees_the_certificate_of_its_client() {
    let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let (authority, certificate, key) = authority_and_client();
    let tls = Tls::with(&[identity], Clients::Required(authority)).unwrap();
    let app = Router::new().route("/", get(told));
    let address = start(app, |serve| serve.tls(&tls).tls_info()).await;
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("a.example").unwrap();
    let secured = in_time(TlsConnector::from(Arc::new(config)).connect(name, socket)).await;
    let made = handshake(TokioExecutor::new(), TokioIo::new(secured.unwrap())).await;
    let (mut sender, connection) = made.unwrap();
    tokio::spawn(connection);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let response = in_time(sender.send_request(request("/"))).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        seen.push(String::from_utf8(body.to_vec()).unwrap());
    }
    let expected =
        format!("TLSv1.3 Some(\"h2\") Some(\"a.example\") CN=alice {} ", certificate.len());
    assert!(seen[0].starts_with(&expected), "{}", seen[0]);
    assert_eq!(seen[0].len(), expected.len() + 64, "and the fingerprint");
    assert_eq!(seen[0], seen[1], "each request of the connection");
}

#[tokio::test]
async fn an_application_is_served_over_http3_next_to_https() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let tls = Tls::new(&identity).unwrap();
    let app = Router::new()
        .route(
            "/version",
            get(
                |request: axum::extract::Request| async move { format!("{:?}", request.version()) },
            ),
        )
        .route("/echo", post(|body: String| async move { body }));
    let address = start(app, |serve| serve.tls(&tls).server(|server| server.http3(true))).await;
    let asked = tokio::task::spawn_blocking(move || {
        let over = |versions| {
            let trust = Trust::Pem(chain.clone().into_bytes());
            Client::builder().versions(versions).trust(trust).build().unwrap()
        };
        let url = format!("https://{address}/version");
        // The response over TCP names the UDP port, which is open then.
        let response = over(Versions::Http2).get(&url).send().unwrap();
        let offered = response.header("alt-svc").unwrap_or_default().to_owned();
        let client = over(Versions::Http3);
        let version = client.get(&url).send().unwrap().text().unwrap();
        let content = "x".repeat(100_000);
        let echo = client.post(&format!("https://{address}/echo")).body(content.clone());
        (offered, version, echo.send().unwrap().text().unwrap() == content)
    });
    let (offered, version, is_echoed) = in_time(asked).await.unwrap();
    assert!(offered.starts_with(&format!("h3=\":{}\"", address.port())), "{offered}");
    assert_eq!((version.as_str(), is_echoed), ("HTTP/3.0", true));
}

#[tokio::test]
async fn over_cleartext_there_is_nothing_to_tell() {
    let address = start(Router::new().route("/", get(told)), |serve| serve.tls_info()).await;
    let response = in_time(http1(address).await.send_request(request("/"))).await.unwrap();
    assert_eq!(read(response).await, (200, "cleartext".to_owned()));
}

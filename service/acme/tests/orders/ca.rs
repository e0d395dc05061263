//! A CA as RFC 8555 has it, over cleartext, that can be told to be broken.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bolide_acme::Results;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData};
use serde_json::{Value, json};

/// Bytes before the point in the public key of a request (RFC 5480 §2): the curve and a bit string of 66 bytes.
const POINT: [u8; 13] = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7, 3, 0x42, 0];

/// A response in place of the CA's own.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// Prefix of the path.
    pub(super) path: &'static str,
    pub(super) status: u16,
    pub(super) fields: &'static str,
    pub(super) body: String,
}

/// A problem document (RFC 8555 §6.7).
pub(super) fn problem(path: &'static str, status: u16, name: &str) -> Fault {
    let name = format!("urn:ietf:params:acme:error:{name}");
    let body = json!({ "type": name, "detail": "as you wished" }).to_string();
    Fault { path, status, fields: "", body }
}

#[derive(Debug, Default)]
struct Order {
    name: String,
    status: &'static str,
    certificate: String,
    replaces: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Methods and paths, in order.
    pub(super) requests: Vec<String>,
    /// Faults, taken from the front.
    pub(super) faults: Vec<Fault>,
    /// Certificates that new orders replaced.
    pub(super) replaced: Vec<Option<String>>,
    /// Renewal information that is given, with its fields; none: the directory has none.
    pub(super) renewal_info: Option<(&'static str, String)>,
    /// True if names are valid.
    pub(super) is_strict: bool,
    pub(super) lifetime: Duration,
    /// For which name certificates are, unless for the one of the order.
    pub(super) other_name: Option<String>,
    orders: BTreeMap<usize, Order>,
    accounts: usize,
    nonces: usize,
}

impl State {
    /// How many requests began with this.
    pub(super) fn count(&self, method_and_path: &str) -> usize {
        self.requests.iter().filter(|one| one.starts_with(method_and_path)).count()
    }
}

/// A running CA.
#[derive(Debug)]
pub(super) struct Ca {
    url: String,
    pub(super) state: Arc<Mutex<State>>,
}

struct Signer {
    issuer: Issuer<'static, KeyPair>,
    chain: String,
}

/// The key of a request.
struct Point(Vec<u8>);

impl PublicKeyData for Point {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl Ca {
    /// Starts one. `results`: where it looks for the responses to its challenges.
    pub(super) fn start(results: &Results) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let lifetime = Duration::from_secs(90 * 86_400);
        let state = State { lifetime, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let chain = authority.self_signed(&key).unwrap().pem();
        let signer = Signer { issuer: Issuer::new(authority, key), chain };
        let (own, results, base) = (Arc::clone(&state), results.clone(), url.clone());
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client that has gone away is none of ours.
                let _ = answer(&stream, &mut own.lock().unwrap(), &results, &base, &signer);
            }
        });
        Self { url, state }
    }

    pub(super) fn directory(&self) -> String {
        format!("{}/directory", self.url)
    }
}

fn answer(
    stream: &TcpStream,
    state: &mut State,
    results: &Results,
    base: &str,
    signer: &Signer,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line)?;
    loop {
        let mut field = String::new();
        reader.read_line(&mut field)?;
        if field.trim().is_empty() {
            break;
        }
        let (name, value) = field.split_once(':').unwrap();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (method, rest) = line.split_once(' ').unwrap();
    let path = rest.split(' ').next().unwrap();
    state.requests.push(format!("{method} {path}"));
    state.nonces += 1;
    let fault = state.faults.iter().position(|fault| path.starts_with(fault.path));
    let (status, fields, text) = match fault.map(|at| state.faults.remove(at)) {
        Some(Fault { status, fields, body, .. }) => (status, fields.to_owned(), body),
        None => reply(path, &payload(&body), state, results, base, signer),
    };
    let nonce = state.nonces;
    let length = text.len();
    let text = if method == "HEAD" { "" } else { text.as_str() };
    let head = format!(
        "HTTP/1.1 {status} -\r\nReplay-Nonce: {nonce}\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n"
    );
    (&mut &*stream).write_all(format!("{head}{text}").as_bytes())
}

/// RFC 8555 §6.2: what is signed; the signature is not checked.
fn payload(body: &[u8]) -> Value {
    let signed: Value = serde_json::from_slice(body).unwrap_or_default();
    let payload = signed["payload"].as_str().unwrap_or_default();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap_or_default()
}

fn reply(
    path: &str,
    payload: &Value,
    state: &mut State,
    results: &Results,
    base: &str,
    signer: &Signer,
) -> (u16, String, String) {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let number = parts.get(1).and_then(|part| part.parse::<usize>().ok()).unwrap_or_default();
    let url = |what: &str| format!("{base}/{what}");
    let ok = |value: Value| (200, String::new(), value.to_string());
    match parts[0] {
        "directory" => {
            let mut directory = json!({
                "newNonce": url("nonce"), "newAccount": url("account"), "newOrder": url("new-order"),
            });
            if state.renewal_info.is_some() {
                directory["renewalInfo"] = url("renewal").into();
            }
            ok(directory)
        }
        "nonce" => ok(Value::Null),
        "account" => {
            state.accounts += 1;
            let location = format!("Location: {}\r\n", url(&format!("account/{}", state.accounts)));
            (201, location, json!({ "status": "valid" }).to_string())
        }
        "new-order" => {
            let replaces = payload["replaces"].as_str().map(str::to_owned);
            state.replaced.push(replaces.clone());
            let name = payload["identifiers"][0]["value"].as_str().unwrap().to_owned();
            let number = state.orders.len() + 1;
            state
                .orders
                .insert(number, Order { name, status: "pending", replaces, ..Order::default() });
            let location = format!("Location: {}\r\n", url(&format!("order/{number}")));
            (201, location, order(state, number, base).to_string())
        }
        "authorization" => ok(authorization(&state.orders[&number], number, base)),
        "challenge" => {
            validate(state, number, parts[2], results);
            ok(json!({ "type": parts[2], "url": url(path), "token": "t", "status": "processing" }))
        }
        "finalize" => {
            let request = payload["csr"].as_str().unwrap();
            issue(state, number, &BASE64_URL_SAFE_NO_PAD.decode(request).unwrap(), signer);
            ok(order(state, number, base))
        }
        "certificate" => (200, String::new(), state.orders[&number].certificate.clone()),
        "renewal" => {
            let (fields, text) = state.renewal_info.clone().unwrap();
            (200, fields.to_owned(), text)
        }
        _ => ok(order(state, number, base)),
    }
}

fn order(state: &State, number: usize, base: &str) -> Value {
    let order = &state.orders[&number];
    let mut value = json!({
        "status": order.status,
        "identifiers": [{ "type": "dns", "value": order.name }],
        "authorizations": [format!("{base}/authorization/{number}")],
        "finalize": format!("{base}/finalize/{number}"),
    });
    if !order.certificate.is_empty() {
        value["certificate"] = format!("{base}/certificate/{number}").into();
    }
    if let Some(replaces) = &order.replaces {
        value["replaces"] = replaces.as_str().into();
    }
    value
}

fn authorization(order: &Order, number: usize, base: &str) -> Value {
    let is_invalid = order.status == "invalid";
    let challenges: Vec<Value> = ["http-01", "tls-alpn-01"]
        .iter()
        .map(|kind| {
            let url = format!("{base}/challenge/{number}/{kind}");
            let mut challenge =
                json!({ "type": kind, "url": url, "token": format!("token-{number}"), "status": "pending" });
            if is_invalid {
                challenge["error"] = json!({
                    "type": "urn:ietf:params:acme:error:unauthorized",
                    "detail": "the name leads\nelsewhere",
                });
            }
            challenge
        })
        .collect();
    json!({
        "identifier": { "type": "dns", "value": order.name },
        "status": if is_invalid { "invalid" } else { "pending" },
        "challenges": challenges,
    })
}

/// RFC 8555 §8.3: looks for the response to a challenge.
fn validate(state: &mut State, number: usize, kind: &str, results: &Results) {
    let token = format!("token-{number}");
    let is_there = match kind {
        "http-01" => results.responses.get(&token).is_some_and(|content| {
            content
                .strip_prefix(&token)
                .is_some_and(|rest| rest.len() == 44 && rest.starts_with('.'))
        }),
        // The resolver of a listener shows it: its own tests look at that.
        _ => true,
    };
    let order = state.orders.get_mut(&number).unwrap();
    order.status = if is_there && !state.is_strict { "ready" } else { "invalid" };
}

fn issue(state: &mut State, number: usize, request: &[u8], signer: &Signer) {
    let at = request.windows(POINT.len()).position(|window| window == POINT).unwrap() + POINT.len();
    let point = Point(request[at..at + 65].to_vec());
    let order = state.orders.get_mut(&number).unwrap();
    let name = state.other_name.clone().unwrap_or_else(|| order.name.clone());
    let mut parameters = CertificateParams::new(vec![name]).unwrap();
    let now = SystemTime::now();
    parameters.not_before = (now - Duration::from_secs(1)).into();
    parameters.not_after = (now + state.lifetime).into();
    parameters.use_authority_key_identifier_extension = true;
    let certificate = parameters.signed_by(&point, &signer.issuer).unwrap();
    order.status = "valid";
    order.certificate = format!("{}{}", certificate.pem(), signer.chain);
}

//! RFC 7617: Basic authentication against hashes of passwords (argon2, RFC 9106).

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blake2::{Blake2s256, Digest};
use bolide_server::{HeaderValue, Offload, OffloadLimits, Responder, Response, StatusCode};

use crate::limits::{
    AUTH_CREDENTIALS_BYTES, AUTH_MEMORY_BYTES_MAX, AUTH_REMEMBERED, AUTH_THREADS_COUNT,
    AUTH_WAITING_COUNT, AUTH_WAITING_EACH_COUNT, RATE_IPV6_BITS_COUNT,
};

/// The users of a route, and the hashes of their passwords.
pub struct BasicAuth {
    challenge: HeaderValue,
    users: HashMap<String, User>,
    /// Hash that the password of an unknown user is compared with, for it takes the same time: the first user's.
    stand_in: Option<PasswordHash>,
    /// Of the digests of credentials.
    key: [u8; 32],
    verifications: Mutex<Verifications>,
}

struct User {
    hash: PasswordHash,
    /// The credentials that were right last, and until when they are taken without another look.
    remembered: Mutex<Option<(Digest256, Instant)>>,
}

/// Keyed hash of a user's name and password.
type Digest256 = [u8; 32];

/// Verifications under way.
#[derive(Default)]
struct Verifications {
    /// The requests that wait for the same credentials.
    flights: HashMap<Digest256, Flight>,
    /// How many of these the clients have sent.
    clients: HashMap<Option<IpAddr>, usize>,
}

struct Flight {
    client: Option<IpAddr>,
    waiting: Vec<Responder>,
}

/// Result of a check of credentials.
#[derive(Debug)]
pub(crate) enum Checked {
    /// Right, as they were before: those of this user.
    Right(String),
    /// There are none, or none that can be right.
    Wrong,
    /// They must be verified.
    Unknown(Credentials),
}

/// Credentials that must be verified.
pub(crate) struct Credentials {
    pub(crate) user: String,
    password: Vec<u8>,
    digest: Digest256,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users: Vec<_> = self.users.keys().collect();
        let named = formatter
            .debug_struct("BasicAuth")
            .field("challenge", &self.challenge)
            .finish_non_exhaustive();
        named.and_then(|()| users.fmt(formatter))
    }
}

/// Why users, a realm or a server can't be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthError(pub(crate) String);

impl fmt::Display for AuthError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for AuthError {}

/// The hash of a password, for [`BasicAuth::user`]: argon2id with a salt of its own.
///
/// # Errors
///
/// The system has no randomness, or the password is too long.
pub fn hash_password(password: &[u8]) -> Result<String, AuthError> {
    let hash = Argon2::default().hash_password(password);
    hash.map(|hash| hash.to_string()).map_err(|error| AuthError(error.to_string()))
}

impl BasicAuth {
    /// No users yet, for this realm.
    ///
    /// # Errors
    ///
    /// The realm is not printable ASCII without quotes and backslashes, or the system has no randomness.
    pub fn new(realm: &str) -> Result<Self, AuthError> {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        if realm.is_empty() || !realm.bytes().all(is_plain) {
            let what = "a realm is printable ASCII without quotes and backslashes";
            return Err(AuthError(what.to_owned()));
        }
        let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        let challenge =
            HeaderValue::try_from(challenge).map_err(|error| AuthError(error.to_string()))?;
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| AuthError(error.to_string()))?;
        Ok(Self {
            challenge,
            users: HashMap::new(),
            stand_in: None,
            key,
            verifications: Mutex::default(),
        })
    }

    /// Adds a user with the hash of a password, as [`hash_password`] writes it.
    ///
    /// # Errors
    ///
    /// The name has a colon or a control or is there already, or the hash is not one of argon2.
    pub fn user(&mut self, name: &str, hash: &str) -> Result<(), AuthError> {
        let shown = name.escape_debug();
        if name.is_empty() || name.contains(|letter: char| letter == ':' || letter.is_control()) {
            let what =
                format!("the user name `{shown}` is empty, or has a colon or a control character");
            return Err(AuthError(what));
        }
        let not_one = || {
            AuthError(format!(
                "the hash of `{shown}` is not one of argon2: make it with `bolide hash-password`"
            ))
        };
        let hash = PasswordHash::new(hash).map_err(|_| not_one())?;
        let is_argon2 = hash.algorithm.as_str().starts_with("argon2");
        let memory = hash
            .params
            .get_decimal("m")
            .filter(|_| is_argon2 && hash.hash.is_some())
            .ok_or_else(not_one)?;
        if u64::from(memory) * 1024 > AUTH_MEMORY_BYTES_MAX {
            let most = AUTH_MEMORY_BYTES_MAX / 1024;
            let what = format!(
                "the hash of `{shown}` takes {memory} KiB of memory: the most is {most} KiB"
            );
            return Err(AuthError(what));
        }
        self.stand_in.get_or_insert_with(|| hash.clone());
        let user = User { hash, remembered: Mutex::new(None) };
        match self.users.insert(name.to_owned(), user) {
            None => Ok(()),
            Some(_) => Err(AuthError(format!("the user `{shown}` is there twice"))),
        }
    }

    /// Returns whether there are no users.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// The response to a request whose credentials are wrong, or missing.
    pub(crate) fn unauthorized(&self) -> Response {
        Response::error(StatusCode::UNAUTHORIZED).header("www-authenticate", self.challenge.clone())
    }

    /// Returns what the value of `Authorization` says.
    pub(crate) fn check(&self, value: Option<&[u8]>, now: Instant) -> Checked {
        let Some((user, password)) = value.and_then(credentials) else { return Checked::Wrong };
        let digest = self.digest(&user, &password);
        if let Some(known) = self.users.get(&user) {
            let remembered = *lock(&known.remembered);
            if remembered.is_some_and(|(right, until)| now < until && is_same(&right, &digest)) {
                return Checked::Right(user);
            }
        }
        Checked::Unknown(Credentials { user, password, digest })
    }

    fn digest(&self, user: &str, password: &[u8]) -> Digest256 {
        let digest = Blake2s256::new()
            .chain_update(self.key)
            .chain_update((user.len() as u64).to_le_bytes())
            .chain_update(user)
            .chain_update(password);
        digest.finalize().into()
    }

    /// Has credentials verified by another thread, which passes the request on, or refuses it. `false`: too many wait.
    pub(crate) fn verify(
        self: &Arc<Self>,
        credentials: Credentials,
        client: Option<IpAddr>,
        responder: impl FnOnce() -> Responder,
    ) -> bool {
        static POOL: LazyLock<Offload> = LazyLock::new(|| {
            let offload_threads_count = AUTH_THREADS_COUNT;
            Offload::new(OffloadLimits { offload_threads_count, ..OffloadLimits::default() })
        });
        let client = client.map(network_of);
        let mut verifications = lock(&self.verifications);
        if let Some(flight) = verifications.flights.get_mut(&credentials.digest) {
            flight.waiting.push(responder());
            return true;
        }
        let own = verifications.clients.get(&client).copied().unwrap_or(0);
        if own >= AUTH_WAITING_EACH_COUNT || verifications.flights.len() >= AUTH_WAITING_COUNT {
            return false;
        }
        verifications.clients.insert(client, own + 1);
        let flight = Flight { client, waiting: vec![responder()] };
        verifications.flights.insert(credentials.digest, flight);
        drop(verifications);
        let landing =
            Landing { auth: Arc::clone(self), digest: credentials.digest, is_right: false };
        // Without a thread it lands at once, and refuses.
        let _ = POOL.resume(move || landing.run(&credentials));
        true
    }
}

/// Says what was found out, whatever becomes of the thread.
struct Landing {
    auth: Arc<BasicAuth>,
    digest: Digest256,
    is_right: bool,
}

impl Landing {
    fn run(mut self, credentials: &Credentials) {
        let user = self.auth.users.get(&credentials.user);
        let hash = user.map(|user| &user.hash).or(self.auth.stand_in.as_ref());
        let Some(hash) = hash else { return };
        let is_one = Argon2::default().verify_password(&credentials.password, hash).is_ok();
        if let Some(user) = user.filter(|_| is_one) {
            *lock(&user.remembered) = Some((self.digest, Instant::now() + AUTH_REMEMBERED));
            self.is_right = true;
        }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut verifications = lock(&self.auth.verifications);
        let Some(flight) = verifications.flights.remove(&self.digest) else { return };
        if let Some(count) = verifications.clients.get_mut(&flight.client) {
            *count -= 1;
            if *count == 0 {
                verifications.clients.remove(&flight.client);
            }
        }
        drop(verifications);
        for responder in flight.waiting {
            if self.is_right {
                responder.pass_on();
            } else {
                responder.respond(self.auth.unauthorized());
            }
        }
    }
}

/// The addresses that are one client's: the first of them.
fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => {
            let rest = u128::MAX.checked_shr(RATE_IPV6_BITS_COUNT.into()).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & !rest).into())
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether both are the same, in the same time wherever they differ.
fn is_same(one: &Digest256, other: &Digest256) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// The name and the password of a value of `Authorization`.
fn credentials(value: &[u8]) -> Option<(String, Vec<u8>)> {
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") || value.len() > AUTH_CREDENTIALS_BYTES {
        return None;
    }
    let decoded = STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let user = std::str::from_utf8(&decoded[..colon]).ok()?;
    Some((user.to_owned(), decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    /// It has no hash at its end.
    const HASH: &str = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21l$";

    fn basic(user: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    }

    #[test]
    fn names_hashes_and_realms_that_cannot_be_are_refused() {
        for realm in ["", "a\"b", "a\\b", "ä", "a\r\nb"] {
            assert!(BasicAuth::new(realm).is_err(), "{realm:?}");
        }
        let hash = hash_password(b"secret").unwrap();
        let mut auth = BasicAuth::new("Admin").unwrap();
        auth.user("alice", &hash).unwrap();
        let heavy = hash.replace("m=19456", "m=99999999");
        for (name, hash, said) in [
            ("alice", &*hash, "is there twice"),
            ("a:b", &hash, "colon"),
            ("", &hash, "empty"),
            ("bob", "secret", "bolide hash-password"),
            ("bob", "$2y$10$abcdefghijklmnopqrstuuO", "bolide hash-password"),
            ("bob", HASH, "bolide hash-password"),
            ("bob", &heavy, "of memory"),
        ] {
            let error = auth.user(name, hash).unwrap_err().to_string();
            assert!(error.contains(said), "{name} {hash}: {error}");
        }
    }

    #[test]
    fn what_was_right_is_remembered_for_a_time_and_nothing_else() {
        let mut auth = BasicAuth::new("Admin").unwrap();
        auth.user("alice", &hash_password(b"secret").unwrap()).unwrap();
        let auth = Arc::new(auth);
        let now = Instant::now();
        let value = basic("alice", "secret");
        let Checked::Unknown(credentials) = auth.check(Some(value.as_bytes()), now) else {
            panic!("nothing was verified")
        };
        let landing =
            Landing { auth: Arc::clone(&auth), digest: credentials.digest, is_right: false };
        landing.run(&credentials);
        let check = |value: &str, at| auth.check(Some(value.as_bytes()), at);
        assert!(matches!(check(&value, now), Checked::Right(user) if user == "alice"));
        assert!(matches!(check(&value.replace("Basic", "bASIC"), now), Checked::Right(_)));
        let later = Instant::now() + AUTH_REMEMBERED + Duration::from_secs(1);
        assert!(matches!(check(&value, later), Checked::Unknown(_)));
        for wrong in [basic("alice", "Secret"), basic("bob", "secret"), basic("alice", "")] {
            assert!(matches!(check(&wrong, now), Checked::Unknown(_)), "{wrong}");
        }
    }

    /// password-flood: one client guesses, and another one has its password verified.
    #[test]
    fn password_flood_of_one_client_gets_503_and_leaves_the_others_their_places() {
        use bolide_server::{Router, Server};
        use std::io::{Read, Write};
        use std::net::TcpStream;

        // It takes so long that the requests after it find it at work.
        let slow = argon2::Params::new(64 * 1024, 8, 1, None).unwrap();
        let slow = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, slow);
        let hash = slow.hash_password(b"secret").unwrap().to_string();
        let mut auth = BasicAuth::new("Admin").unwrap();
        auth.user("alice", &hash).unwrap();
        let access = crate::Access { basic: Some(Arc::new(auth)), ..crate::Access::default() };
        let trusted = bolide_server::Ingress {
            trusted: ["127.0.0.0/8".parse::<bolide_server::Network>().unwrap()]
                .into_iter()
                .collect(),
            ..bolide_server::Ingress::default()
        };
        let server = Server::new().workers(1).ingress(trusted).http("127.0.0.1:0");
        let server = server
            .start(move || {
                Router::new().fallback(access.guard(|_: &mut bolide_server::Request<'_>| "in"))
            })
            .unwrap();
        let address = server.addresses()[0].unwrap();
        let send = |client: &str, password: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            let value = basic("alice", password);
            write!(
                stream,
                "GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {client}\r\nauthorization: {value}\r\nconnection: close\r\n\r\n"
            )
            .unwrap();
            stream
        };
        let status = |mut stream: TcpStream| {
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            response[9..12].to_owned()
        };
        let guesses: Vec<TcpStream> = (0..AUTH_WAITING_EACH_COUNT + 20)
            .map(|nth| send(&format!("2001:db8::{nth}"), &format!("guess {nth}")))
            .collect();
        let right: Vec<TcpStream> = (0..10).map(|_| send("192.0.2.1", "secret")).collect();
        let statuses: Vec<String> = guesses.into_iter().map(status).collect();
        let verified = statuses.iter().filter(|status| *status == "401").count();
        assert!(statuses.iter().all(|status| status == "401" || status == "503"), "{statuses:?}");
        assert!((1..statuses.len()).contains(&verified), "{statuses:?}");
        // Those with the same credentials wait together.
        assert_eq!(right.into_iter().map(status).collect::<Vec<_>>(), ["200"; 10]);
        server.shut_down();
        server.join().unwrap();
    }

    #[test]
    fn credentials_that_cannot_be_are_wrong_at_once() {
        let auth = BasicAuth::new("Admin").unwrap();
        let long = basic("a", &"b".repeat(AUTH_CREDENTIALS_BYTES));
        let none = STANDARD.encode("alice");
        for value in ["", "Basic", "Basic !", "Bearer YTpi", &long, &format!("Basic {none}")] {
            let checked = auth.check(Some(value.as_bytes()), Instant::now());
            assert!(matches!(checked, Checked::Wrong), "{value}");
        }
        assert!(matches!(auth.check(None, Instant::now()), Checked::Wrong));
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in proptest::collection::vec(any::<u8>(), 0..60), valid in any::<bool>()) {
            let mut value = value;
            if valid {
                value = format!("Basic {}", STANDARD.encode(&value)).into_bytes();
            }
            if let Some((user, _)) = credentials(&value) {
                prop_assert!(!user.contains(':'));
            }
        }
    }
}

//! How a part joins a run: each side proves to the other that it knows the secret, and clocks are compared.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bolide_probe::engine::Share;

use super::agreement::Agreement;
use super::clock::{Clock, Offset, PINGS_COUNT, Ping};
use super::protocol::{Hello, MESSAGE_BYTES, Message, STRANGER_BYTES, VERSION};
use super::secret::{Nonce, Prover, Secret};

/// How long a stranger may take to prove that it knows the secret, and a write may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a part that takes part may be silent: it says every two seconds that it is there.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Knowledge of both sides before they meet.
#[derive(Debug, Clone)]
pub(super) struct Introduction {
    pub(super) secret: Secret,
    pub(super) agreement: Agreement,
    pub(super) share: Share,
    pub(super) clock: Clock,
}

/// A part that has joined.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) stream: TcpStream,
    /// Its number, from 0.
    pub(super) number: usize,
    pub(super) host: String,
    pub(super) offset: Offset,
}

/// Why a part has not joined.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is a stranger, or gone: the others are waited for.
    Stranger(String),
    /// It knows the secret and can't take part: the run can't begin.
    Differs(String),
}

/// The program's version, as parts compare it.
fn version() -> (u32, String) {
    (VERSION, env!("CARGO_PKG_VERSION").to_owned())
}

/// Reads until a time, however slowly something comes.
struct Hurried {
    stream: TcpStream,
    latest: Instant,
}

impl Read for Hurried {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.latest.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

/// Part 1's side: lets a part in that knows the secret and has the same program and options.
pub(super) fn admit(mut stream: TcpStream, us: &Introduction) -> Result<Joined, Refusal> {
    let stranger = |what: String| Refusal::Stranger(what);
    prepare(&stream, PATIENCE).map_err(stranger)?;
    let reader = stream.try_clone().map_err(|error| stranger(error.to_string()))?;
    let mut reader = Hurried { stream: reader, latest: Instant::now() + PATIENCE };
    let Message::Hello(hello) = Message::receive(&mut reader, STRANGER_BYTES).map_err(stranger)?
    else {
        return Err(Refusal::Stranger("it did not say hello".into()));
    };
    let challenge = Nonce::new().map_err(stranger)?;
    say(&mut stream, &Message::Challenge(challenge.clone())).map_err(stranger)?;
    let proof = Message::receive(&mut reader, STRANGER_BYTES).map_err(stranger)?;
    let is_proved = matches!(&proof, Message::Proof(proof)
        if us.secret.verifies(proof, Prover::Other, &hello, &challenge));
    if !is_proved {
        let why = "it has another secret than part 1 (BOLIDE_SECRET)".to_owned();
        let _ = say(&mut stream, &Message::Refused(why.clone()));
        return Err(Refusal::Stranger(why));
    }
    if let Some(why) = difference(&hello, us) {
        let _ = say(&mut stream, &Message::Refused(why.clone()));
        return Err(Refusal::Differs(format!("part {} on {}: {why}", hello.part, hello.host)));
    }
    prepare(&stream, SILENCE).map_err(stranger)?;
    let welcome = us.secret.prove(Prover::First, &hello, &challenge);
    say(&mut stream, &Message::Welcome(welcome)).map_err(stranger)?;
    let offset = compare_clocks(&mut stream, us.clock).map_err(stranger)?;
    Ok(Joined { stream, number: hello.part - 1, host: hello.host.clone(), offset })
}

/// Why a part with the right secret can't take part.
fn difference(hello: &Hello, us: &Introduction) -> Option<String> {
    let (ours, theirs) = (version(), &hello.version);
    if ours != *theirs {
        return Some(format!(
            "its version is {} (messages {}), and part 1 has {} (messages {}): all parts need the same",
            theirs.1, theirs.0, ours.1, ours.0
        ));
    }
    let count = us.share.count();
    if hello.parts != count || !(2..=count).contains(&hello.part) {
        return Some(format!(
            "it is part {} of {}, and part 1 waits for 2 to {count} of {count}",
            hello.part, hello.parts
        ));
    }
    let groups = us.agreement.difference(&hello.agreement)?;
    Some(format!("it has other options than part 1: {groups}"))
}

/// Asks for the other clock, without anything else on the connection.
fn compare_clocks(stream: &mut TcpStream, clock: Clock) -> Result<Offset, String> {
    let mut pings = Vec::with_capacity(PINGS_COUNT);
    while pings.len() < PINGS_COUNT {
        let sent_ns = clock.now_ns();
        say(stream, &Message::Ping)?;
        let theirs_ns = loop {
            match Message::receive(stream, MESSAGE_BYTES)? {
                Message::Pong { ns } => break ns,
                Message::Alive => {}
                other => return Err(format!("`{}` came instead of `pong`", other.name())),
            }
        };
        pings.push(Ping { sent_ns, theirs_ns, received_ns: clock.now_ns() });
    }
    Ok(Offset::of_fastest(&pings).expect("there were pings"))
}

/// The other side: introduces itself to what listens, and verifies that it is part 1.
pub(super) fn join(stream: &mut TcpStream, us: &Introduction, host: &str) -> Result<(), String> {
    prepare(stream, PATIENCE)?;
    let hello = Hello {
        version: version(),
        part: us.share.number() + 1,
        parts: us.share.count(),
        host: host.to_owned(),
        agreement: us.agreement.clone(),
        nonce: Nonce::new()?,
    };
    say(stream, &Message::Hello(Box::new(hello.clone())))?;
    let challenge = match Message::receive(stream, STRANGER_BYTES)? {
        Message::Challenge(challenge) => challenge,
        Message::Refused(why) => return Err(why),
        other => return Err(format!("`{}` came instead of `challenge`", other.name())),
    };
    say(stream, &Message::Proof(us.secret.prove(Prover::Other, &hello, &challenge)))?;
    match Message::receive(stream, STRANGER_BYTES)? {
        Message::Welcome(proof)
            if us.secret.verifies(&proof, Prover::First, &hello, &challenge) =>
        {
            prepare(stream, SILENCE)
        }
        Message::Welcome(_) => Err("what listens there does not know the secret".into()),
        Message::Refused(why) => Err(why),
        other => Err(format!("`{}` came instead of `welcome`", other.name())),
    }
}

/// Messages leave at once, and nothing waits forever.
pub(super) fn prepare(stream: &TcpStream, patience: Duration) -> Result<(), String> {
    stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(patience)))
        .and_then(|()| stream.set_write_timeout(Some(patience)))
        .map_err(|error| error.to_string())
}

fn say(stream: &mut impl Write, message: &Message) -> Result<(), String> {
    message.send(stream).map_err(|error| error.kind().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn introduction(number: usize, secret: &str) -> Introduction {
        Introduction {
            secret: Secret::new(Some(secret.into())),
            agreement: Agreement::default(),
            share: Share::new(number, 4),
            clock: Clock::begin(),
        }
    }

    /// Returns what part 1 and a peer say of each other.
    fn met<T: Send + 'static>(
        peer: impl FnOnce(&mut TcpStream) -> T + Send + 'static,
    ) -> (Result<Joined, Refusal>, T) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let other = thread::spawn(move || peer(&mut TcpStream::connect(address).unwrap()));
        let admitted = admit(listener.accept().unwrap().0, &introduction(0, "s"));
        (admitted, other.join().unwrap())
    }

    /// Answers pings by a clock, after it has joined.
    fn joins(us: &Introduction, stream: &mut TcpStream, ahead_ns: u64) -> Result<(), String> {
        join(stream, us, "load3")?;
        for _ in 0..PINGS_COUNT {
            assert!(matches!(Message::receive(stream, 100), Ok(Message::Ping)));
            let ns = us.clock.now_ns() + ahead_ns;
            say(stream, &Message::Pong { ns })?;
        }
        Ok(())
    }

    #[test]
    fn a_part_with_the_secret_joins_and_its_clock_is_corrected() {
        let clock = Clock::begin();
        let us = Introduction { clock, ..introduction(2, "s") };
        let (joined, theirs) = met(move |stream| joins(&us, stream, 3_000_000_000));
        theirs.unwrap();
        let joined = joined.unwrap();
        assert_eq!((joined.number, joined.host.as_str()), (2, "load3"));
        // Part 1's clock began after the other's, by less than a second.
        let ahead_ns = joined.offset.theirs(0);
        assert!((3_000_000_000..4_000_000_000).contains(&ahead_ns), "{ahead_ns}");
    }

    #[test]
    fn another_secret_is_refused_on_both_sides() {
        let (refused, theirs) = met(|stream| join(stream, &introduction(1, "t"), "x"));
        let why = "it has another secret than part 1 (BOLIDE_SECRET)".to_owned();
        assert_eq!(theirs, Err(why.clone()));
        assert_eq!(refused.unwrap_err(), Refusal::Stranger(why));
    }

    #[test]
    fn other_options_another_number_or_version_are_named() {
        let (refused, theirs) = met(|stream| join(stream, &introduction(0, "s"), "x"));
        let why = "it is part 1 of 4, and part 1 waits for 2 to 4 of 4".to_owned();
        assert_eq!(theirs, Err(why.clone()));
        assert_eq!(refused.unwrap_err(), Refusal::Differs(format!("part 1 on x: {why}")));
        let hello = Hello { version: (0, "0.1".into()), ..Hello::fabricated() };
        let why = difference(&hello, &introduction(0, "s")).unwrap();
        assert!(why.starts_with("its version is 0.1 (messages 0), and part 1 has "), "{why}");
    }

    #[test]
    fn who_does_not_know_the_secret_is_not_taken_for_part_1() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let impostor = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let hello = Message::receive(&mut stream, STRANGER_BYTES).unwrap();
            let Message::Hello(hello) = hello else { panic!("{}", hello.name()) };
            let challenge = Nonce::new().unwrap();
            say(&mut stream, &Message::Challenge(challenge.clone())).unwrap();
            // The proof is sent back, and would do if it did not say who made it.
            let proof = Message::receive(&mut stream, STRANGER_BYTES).unwrap();
            let Message::Proof(proof) = proof else { panic!("{}", proof.name()) };
            let known = Secret::new(Some("other".into()));
            assert!(!known.verifies(&proof, Prover::Other, &hello, &challenge));
            say(&mut stream, &Message::Welcome(proof)).unwrap();
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let told = join(&mut stream, &introduction(1, "s"), "x").unwrap_err();
        assert_eq!(told, "what listens there does not know the secret");
        impostor.join().unwrap();
    }

    #[test]
    fn a_peer_that_says_something_else_is_told_from_a_part() {
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\x05\"end\"", b""] {
            let (refused, ()) = met(move |stream| stream.write_all(bytes).unwrap());
            assert!(matches!(refused, Err(Refusal::Stranger(_))), "{refused:?}");
        }
    }
}

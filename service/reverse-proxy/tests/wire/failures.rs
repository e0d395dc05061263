//! Upstreams that are not there, die, or talk nonsense.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use bolide_frames::{END_HEADERS, END_STREAM, HEADERS, frame, window_update};
use bolide_reverse_proxy::{ProxyLimits, ProxySettings, ReverseProxy, Trust, Upstream, limits};
use bolide_server::{Router, Server};

use crate::scene::{Behind, Proxy, Talk, Vacant, settings};

const POST: &str = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi";

fn assert_failed(response: &str, status: &str, error: &str) {
    let expected = format!("proxy-status: bolide; error={error}; details=\"");
    assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
    assert!(response.contains(&expected), "{response}");
}

#[test]
fn nobody_listens() {
    let vacant = Vacant::new();
    let proxy = Proxy::to(&[&vacant.url()]);
    assert_failed(&proxy.get(), "502", "connection_refused");
    let gone = Proxy::to(&["unix:/nonexistent/socket"]);
    assert_failed(&gone.get(), "502", "connection_refused");
    let stats = &proxy.settings.stats()[0];
    assert_eq!((stats.requests, stats.failures, stats.retries), (0, 3, 2), "{stats:?}");
}

#[test]
fn it_dies_before_the_head() {
    let behind = Behind::new(|talk, _| drop(talk.head()));
    let proxy = Proxy::to(&[&behind.url()]);
    assert_failed(&proxy.ask(POST), "502", "http_response_incomplete");
    assert_eq!(behind.connections(), 1, "what is not idempotent is not repeated");
    assert_failed(&proxy.get(), "502", "http_response_incomplete");
    assert_eq!(behind.connections(), 4, "what is idempotent is, twice");
}

#[test]
fn it_responds_and_resets_before_it_has_read_the_request() {
    let behind = Behind::new(|talk, _| {
        talk.head();
        // There is content, and what it has not read of that makes the end of its script a reset.
        assert_eq!(talk.stream.peek(&mut [0]).expect("content"), 1);
        talk.send(
            "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        );
    });
    let proxy = Proxy::to(&[&behind.url()]);
    let mut talk = proxy.connect();
    talk.send("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 67108864\r\n\r\n");
    let mut stream = talk.stream.try_clone().expect("a descriptor");
    // The proxy takes it until it has the response.
    let sent = std::thread::spawn(move || while stream.write_all(&[b'x'; 65_536]).is_ok() {});
    let head = talk.head();
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    talk.abort();
    sent.join().expect("the writer ends with the connection");
}

#[test]
fn it_dies_in_the_head() {
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-le");
    });
    let proxy = Proxy::to(&[&behind.url()]);
    assert_failed(&proxy.get(), "502", "http_response_incomplete");
}

#[test]
fn it_dies_in_the_body() {
    for (framing, arrived) in [
        ("content-length: 10\r\n\r\nhalf", "half"),
        ("transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", "4\r\nhalf\r\n"),
    ] {
        let behind = Behind::new(move |talk, _| {
            talk.head();
            talk.send("HTTP/1.1 200 OK\r\n");
            talk.send(framing);
        });
        let proxy = Proxy::to(&[&behind.url()]);
        let mut talk = proxy.connect();
        talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let head = talk.head();
        if head.starts_with("HTTP/1.1 502") {
            // All of it came at once, and nothing had been sent on: the client is told.
            assert!(head.contains("http_response_incomplete"), "{head}");
            continue;
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(arrived.starts_with(&talk.rest()), "the message must not look complete");
        assert_eq!(behind.connections(), 1, "a response that has begun is not repeated");
    }
}

#[test]
fn it_closes_after_the_body_while_the_connection_is_idle() {
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    let proxy = Proxy::to(&[&behind.url()]);
    for _ in 0..5 {
        assert!(proxy.get().ends_with("ok"), "nobody sees connections come and go");
    }
}

#[test]
fn ambiguous_responses_are_refused() {
    for response in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: x\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\r\n folded\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\nx: a\n\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.1 999 Too much\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n",
    ] {
        let behind = Behind::answering(response);
        let proxy = Proxy::to(&[&behind.url()]);
        assert_failed(&proxy.get(), "502", "http_protocol_error");
        assert_eq!(behind.connections(), 1, "{response}");
    }
}

#[test]
fn a_response_that_nobody_asked_for_is_not_given_to_the_next() {
    let behind = Behind::new(|talk, number| {
        let own = if number == 0 { "first" } else { "other" };
        let mut response = format!("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{own}");
        if number == 0 {
            // In one piece: it is there before the next request can be.
            response += "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nplanted";
        }
        talk.head();
        talk.send(&response);
        talk.rest();
    });
    let proxy = Proxy::to(&[&behind.url()]);
    assert!(proxy.get().ends_with("first"));
    let next = proxy.get();
    assert!(next.ends_with("other") || next.starts_with("HTTP/1.1 502"), "{next}");
}

#[test]
fn another_upstream_answers_for_one_that_is_gone() {
    let gone = Vacant::new();
    let behind = Behind::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let proxy = Proxy::to(&[&gone.url(), &behind.url()]);
    for _ in 0..8 {
        assert!(proxy.ask(POST).ends_with("ok"), "nothing was sent to the one that is gone");
    }
    let stats = proxy.settings.stats();
    assert_eq!(stats[0].ejections, 1, "{stats:?}");
    assert_eq!((stats[0].failures, stats[1].responses), (3, 8), "{stats:?}");
}

#[test]
fn a_certificate_that_is_not_trusted() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("one");
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = bolide_server::Identity::from_pem(chain.as_bytes(), key.as_bytes());
    let tls = bolide_server::Tls::new(&identity.expect("an identity")).expect("settings");
    let behind = Server::new()
        .workers(1)
        .https("127.0.0.1:0", &tls)
        .start(|| Router::new().get("/", |_| "ok"))
        .expect("a free port");
    let url = format!("https://{}", behind.addresses()[0].expect("an address"));
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("one");
    for (trusted, is_trusted) in [(other.cert.pem(), false), (chain, true)] {
        let upstream = Upstream::parse(&url).expect("an upstream");
        let trust = Trust::Pem(trusted.into_bytes());
        let settings = ProxySettings::trusting(vec![upstream], &trust).expect("settings");
        let response = Proxy::with(settings).get();
        if is_trusted {
            assert!(response.ends_with("ok"), "{response}");
        } else {
            assert_failed(&response, "502", "tls_certificate_error");
        }
    }
    behind.shut_down();
    behind.join().expect("no worker failed");
}

#[test]
fn silent_upstream() {
    let short = Duration::from_millis(150);
    let limits = ProxyLimits {
        times: limits::Times {
            first_byte_timeout: short,
            connect_timeout: short,
            ..limits::Times::DEFAULT
        },
        ..ProxyLimits::default()
    };
    let behind = Behind::new(|talk, _| drop(talk.rest()));
    let proxy = Proxy::limited(&[&behind.url()], limits.clone());
    assert_failed(&proxy.get(), "504", "http_response_timeout");
    assert_eq!(behind.connections(), 1, "the upstream may have acted on it");
    // It takes the connection, and never shakes hands.
    let upstream = Upstream::parse(&format!("https://{}", behind.address)).expect("an upstream");
    let settings = ProxySettings::trusting(vec![upstream], &Trust::Any).expect("settings");
    assert_failed(&Proxy::with(settings.limits(limits)).get(), "504", "connection_timeout");
}

#[test]
fn an_upstream_that_takes_a_body_slowly_is_not_silent() {
    // A stream's first window (RFC 9113 §6.9.2), and steps in which it is opened after that.
    const WINDOW_BYTES: usize = 65_535;
    const STEP_BYTES: usize = 1000;
    const STEPS_COUNT: usize = 15;
    let limits = ProxyLimits {
        times: limits::Times {
            first_byte_timeout: Duration::from_millis(500),
            ..limits::Times::DEFAULT
        },
        ..ProxyLimits::default()
    };
    let behind = Behind::new(|talk, _| {
        let mut bytes = [bolide_frames::settings(&[]), window_update(0, 1 << 20)].concat();
        for _ in 0..STEPS_COUNT {
            talk.stream.write_all(&bytes).expect("the proxy goes on");
            bytes = window_update(1, STEP_BYTES as u32);
            std::thread::sleep(Duration::from_millis(100));
        }
        let response = frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x89]);
        talk.stream.write_all(&[bytes, response].concat()).expect("the proxy goes on");
        talk.rest();
    });
    let proxy = Proxy::limited(&[&behind.url().replace("http:", "h2c:")], limits);
    let mut client = proxy.connect();
    let bytes = WINDOW_BYTES + STEPS_COUNT * STEP_BYTES;
    client.send(&format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {bytes}\r\n\r\n"));
    client.send(&"x".repeat(bytes));
    let response = client.message();
    assert!(response.starts_with("HTTP/1.1 204 "), "{response}");
}

#[test]
fn stalled_upstream() {
    let limits = ProxyLimits {
        times: limits::Times {
            pause_timeout: Duration::from_millis(150),
            ..limits::Times::DEFAULT
        },
        ..ProxyLimits::default()
    };
    let behind = Behind::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        talk.rest();
    });
    let proxy = Proxy::limited(&[&behind.url()], limits);
    let response = proxy.get();
    assert!(response.ends_with("\r\n\r\nhalf"), "{response}");
    assert_eq!(proxy.settings.stats()[0].timeouts, 1);
}

#[test]
fn a_proxy_whose_upstream_is_itself_says_so() {
    // A port that is free for the proxy itself.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let settings = settings(&[&format!("http://{address}")]);
    let routed = settings.clone();
    let server = Server::new().workers(1).http(&address.to_string());
    let running = server
        .start(move || Router::new().fallback(ReverseProxy::new(&routed)))
        .expect("the port is still free");
    let stream = TcpStream::connect(address).expect("the proxy listens");
    let mut client = Talk::new(stream);
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let response = client.message();
    assert!(response.starts_with("HTTP/1.1 508"), "{response}");
    assert!(response.contains("proxy_loop_detected"), "{response}");
    assert_eq!(settings.stats()[0].connections, 1, "it went round once");
    drop(client);
    running.shut_down();
    assert_eq!(running.join().expect("no worker failed").panics, 0);
}

#[test]
fn proxies_in_a_row_are_no_loop() {
    let behind = Behind::new(|talk, _| {
        let head = talk.head();
        let vias = head.lines().filter_map(|line| line.strip_prefix("via: 1.1 bolide-"));
        let length = vias.count();
        talk.send(&format!("HTTP/1.1 200 OK\r\nx-vias: {length}\r\ncontent-length: 0\r\n\r\n"));
        talk.rest();
    });
    let inner = Proxy::to(&[&behind.url()]);
    let outer = Proxy::to(&[&format!("http://{}", inner.address)]);
    let response = outer.get();
    assert!(
        response.starts_with("HTTP/1.1 200") && response.contains("\r\nx-vias: 2\r\n"),
        "{response}"
    );
}

#[test]
fn what_came_before_an_upstream_broke_off_is_passed_on() {
    let (go_on, waits) = mpsc::channel::<()>();
    let waits = Mutex::new(waits);
    let behind = Behind::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst");
        waits.lock().expect("no panic").recv().expect("the test goes on");
        talk.send("last");
        talk.will_abort();
    });
    let proxy = Proxy::to(&[&behind.url()]);
    for _ in 0..20 {
        let mut talk = proxy.connect();
        talk.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        assert!(talk.head().starts_with("HTTP/1.1 200 "));
        assert_eq!(talk.take(5), b"first");
        go_on.send(()).expect("the upstream waits");
        assert_eq!(talk.rest(), "last");
    }
}

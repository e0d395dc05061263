use std::net::Ipv4Addr;

use super::*;

const SOON: Duration = Duration::from_secs(10);

fn server() -> Listener {
    listen((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap()
}

fn connected(listener: &Listener) -> TcpStream {
    TcpStream::connect(listener.address().unwrap()).unwrap()
}

#[test]
fn requests_are_read_exactly() {
    let get = Request { verb: Verb::Get, bytes: 17 };
    assert_eq!(Request::parse(b"GET 17"), Ok(get));
    assert_eq!(get.line(), "GET 17\n");
    let endless = Request { verb: Verb::Put, bytes: ENDLESS };
    assert_eq!(Request::parse(endless.line().trim_end().as_bytes()), Ok(endless));
    for wrong in ["", "GET", "GET ", "GET -1", "GET +1", "get 1", "HEAD 1", "GET 1 2", "GET 1e9"] {
        assert!(Request::parse(wrong.as_bytes()).unwrap_err().contains("`GET <bytes>`"), "{wrong}");
    }
    let large = Request::parse(b"GET 18446744073709551616").unwrap_err();
    assert!(large.contains("more than 2^64 - 1"), "{large}");
}

#[test]
fn what_is_asked_for_comes_and_is_counted_on_both_sides() {
    let listener = server();
    thread::scope(|scope| {
        let serving =
            scope.spawn(|| (listener.serve_one(SOON).unwrap(), listener.serve_one(SOON).unwrap()));
        let bytes = 3 * BLOCK_BYTES as u64 + 17;
        let down = get(connected(&listener), bytes, None, None).unwrap();
        let up = put(connected(&listener), bytes, None, None).unwrap();
        let ((first, sent), (second, taken)) = serving.join().unwrap();
        assert_eq!((first.verb, second.verb), (Verb::Get, Verb::Put));
        assert_eq!([down.bytes, up.bytes, sent.bytes, taken.bytes], [bytes; 4]);
        assert!(down.bits_per_second() > 0.0 && taken.cpu_seconds_per_gib() > 0.0);
    });
}

#[test]
fn a_transfer_by_time_ends_by_itself_in_both_directions() {
    let listener = server();
    let time = Some(Duration::from_millis(50));
    thread::scope(|scope| {
        let serving =
            scope.spawn(|| (listener.serve_one(SOON).unwrap(), listener.serve_one(SOON).unwrap()));
        let down = get(connected(&listener), ENDLESS, time, None).unwrap();
        let up = put(connected(&listener), ENDLESS, time, None).unwrap();
        let ((_, sent), (_, taken)) = serving.join().unwrap();
        assert!(down.bytes > 0 && down.bytes <= sent.bytes);
        assert_eq!(up.bytes, taken.bytes);
    });
}

#[test]
fn a_raw_request_flood_is_answered_with_one_sentence_and_a_close() {
    let listener = server();
    for (bytes, expected) in [
        (b"DELETE 1\n".to_vec(), "must be `GET <bytes>`"),
        (vec![b'9'; RAW_REQUEST_BYTES_AND_MORE], "longer than 64 bytes"),
    ] {
        let mut stream = connected(&listener);
        stream.write_all(&bytes).unwrap();
        let error = listener.serve_one(SOON).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("error: ") && response.contains(expected), "{response}");
    }
    let error = request::read(&mut silent(&listener), Duration::from_millis(20)).unwrap_err();
    assert!(error.to_string().contains("no request came"), "{error}");
}

const RAW_REQUEST_BYTES_AND_MORE: usize = crate::limits::RAW_REQUEST_BYTES + 1;

/// A connection whose other side says nothing.
fn silent(listener: &Listener) -> TcpStream {
    connected(listener)
}

#[test]
fn a_server_that_ends_early_is_an_error() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = request::read(&mut stream, RAW_REQUEST_TIMEOUT);
            stream.write_all(&[0; 10]).unwrap();
        });
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let error = get(stream, 20, None, None).unwrap_err();
        assert_eq!(error.to_string(), "the raw server closed after 10 of 20 bytes");
    });
}

#[test]
fn a_server_does_not_wait_for_ever() {
    let error = server().serve_one(Duration::from_millis(1)).unwrap_err();
    assert!(error.to_string().starts_with("no client connected"), "{error}");
}

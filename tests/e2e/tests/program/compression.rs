//! Compression of responses that a route makes or passes on: what is compressed, for whom, and what it says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bolide_launcher::{Server, find, program, run, scratch};

/// The versions that each test uses, as curl's options.
const VERSIONS: [&str; 2] = ["--http1.1", "--http2-prior-knowledge"];

fn serve(directory: &Path, routes: &str) -> Server {
    let path = directory.join("bolide.toml");
    std::fs::write(&path, format!("[[listen]]\nhttp = \"127.0.0.1:0\"\n{routes}")).unwrap();
    Server::start(&["--config", &path.display().to_string()])
}

/// A file that shrinks, of about 20 KiB.
fn json() -> String {
    (0..500).map(|id| format!("{{\"id\": {id}, \"name\": \"item {id}\"}}\n")).collect()
}

/// An upstream with files, and a proxy that compresses before it, and curl. `None`: there is no curl.
fn sites(test: &str, compress: &str) -> Option<(Server, Server, PathBuf)> {
    let curl = find("curl", test)?;
    let (behind, front) = (scratch(&format!("{test}_upstream")), scratch(test));
    let files = behind.join("files");
    std::fs::create_dir_all(&files).unwrap();
    for (name, content) in [
        ("a.json", json()),
        ("small.json", json()[..500].to_owned()),
        ("large.txt", json().repeat(60)),
        ("a.png", json()),
        ("b.json", json()),
        ("b.json.gz", "not what it says".to_owned()),
        ("kept.json", json()),
    ] {
        std::fs::write(files.join(name), content).unwrap();
    }
    let behind = serve(
        &behind,
        "[[route]]\nroot = \"files\"\ncache-control = [\"/kept.json=no-transform\"]\n\
         [[route]]\npath = \"/none\"\nrespond = \"\"\nstatus = 204\ncontent-type = \"text/plain\"\n",
    );
    let proxy = behind.http();
    let front = serve(&front, &format!("[[route]]\nproxy = \"{proxy}\"\n{compress}\n"));
    Some((front, behind, curl))
}

/// The head, in lower case, and the content as curl decodes it.
fn ask(curl: &Path, server: &Server, path: &str, more: &[&str]) -> Vec<(String, String)> {
    let of = |version| {
        let url = format!("{}{path}", server.http());
        let own = ["-sSi", "--compressed", "--max-time", "60", version, &url];
        let text = run(curl, [&own, more].concat()).well().text();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (format!("{}\r\n", head.to_lowercase()), body.to_owned())
    };
    VERSIONS.into_iter().map(of).collect()
}

#[test]
fn proxied_responses_are_compressed_as_the_client_likes_best() {
    let test = "proxied_responses_are_compressed";
    let Some((front, _behind, curl)) = sites(test, "compress = true") else { return };
    for (path, whole) in [("/a.json", json()), ("/large.txt", json().repeat(60))] {
        for (accepted, coding) in [
            ("gzip, deflate, br, zstd", "zstd"),
            ("gzip, br", "br"),
            ("gzip;q=1, br;q=0.5, zstd;q=0", "gzip"),
            ("*;q=0.1", "zstd"),
        ] {
            let field = format!("Accept-Encoding: {accepted}");
            for (head, body) in ask(&curl, &front, path, &["-H", &field]) {
                assert!(head.contains(&format!("\r\ncontent-encoding: {coding}\r\n")), "{head}");
                assert!(head.contains("\r\nvary: accept-encoding\r\n"), "{head}");
                assert!(head.contains("\r\netag: w/\""), "{head}");
                for absent in ["content-length", "accept-ranges"] {
                    assert!(!head.contains(absent), "{head}");
                }
                assert!(body == whole, "{path} by {coding}: {} bytes", body.len());
            }
            for (head, _) in ask(&curl, &front, path, &["-I", "-H", &field]) {
                assert!(head.contains(&format!("\r\ncontent-encoding: {coding}\r\n")), "{head}");
                assert!(head.contains("\r\nvary: accept-encoding\r\n"), "{head}");
                assert!(!head.contains("content-length"), "{head}");
            }
        }
        for field in ["Accept-Encoding: identity", "Accept-Encoding;"] {
            for (head, body) in ask(&curl, &front, path, &["-H", field]) {
                assert!(!head.contains("content-encoding"), "{head}");
                assert!(head.contains("\r\nvary: accept-encoding\r\n"), "{head}");
                assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", whole.len())));
                assert!(head.contains("\r\netag: \""), "{head}");
                assert!(body == whole);
            }
        }
    }
}

#[test]
fn what_is_small_encoded_partial_or_not_to_be_transformed_stays_as_it_is() {
    let test = "what_is_small_encoded_partial";
    let Some((front, _behind, curl)) = sites(test, "compress = true") else { return };
    for (path, more) in [
        ("/small.json", &[][..]),
        ("/a.png", &[]),
        ("/kept.json", &[]),
        ("/none", &[]),
        ("/a.json", &["-r", "5-99"]),
        ("/a.json", &["-H", "Cache-Control: no-transform"]),
    ] {
        let given = ask(&curl, &front, path, &[more, &["-H", "Accept-Encoding: gzip"]].concat());
        for (head, _) in given {
            assert!(!head.contains("content-encoding"), "{path}: {head}");
            assert!(!head.contains("etag: w/"), "{path}: {head}");
        }
    }
    let url = format!("{}/b.json", front.http());
    let field = ["-sSi", "-H", "Accept-Encoding: gzip", &url];
    let encoded = run(&curl, field).well().text();
    assert!(encoded.ends_with("not what it says"), "{encoded}");
    // The validator of what was compressed finds the same file unchanged.
    let (head, _) = &ask(&curl, &front, "/a.json", &[])[0];
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: w/")).expect("a validator");
    let condition = format!("If-None-Match: W/{etag}");
    for (head, _) in ask(&curl, &front, "/a.json", &["-H", &condition]) {
        assert!(head.contains(" 304"), "{head}");
        assert!(!head.contains("content-encoding"), "{head}");
    }
}

#[test]
fn types_and_sizes_can_be_chosen_and_compression_is_off_by_default() {
    let test = "types_and_sizes_can_be_chosen";
    let compress = "compress = { types = [\"image/*\"], min-bytes = \"21KiB\" }";
    let Some((front, behind, curl)) = sites(test, compress) else { return };
    for path in ["/a.png", "/large.txt"] {
        for (head, _) in ask(&curl, &front, path, &[]) {
            assert!(!head.contains("content-encoding"), "{head}");
        }
    }
    for (head, _) in ask(&curl, &behind, "/a.json", &[]) {
        assert!(!head.contains("content-encoding") && !head.contains("vary"), "{head}");
    }
    let directory = scratch(&format!("{test}_all"));
    let page = "<p>text</p>".repeat(200);
    let defaults = "[defaults]\ncompress = true\nerror-pages = { 404 = \"404.html\" }\n\
                    [[route]]\npath = \"/text\"\nrespond = \"short\"\n\
                    [[route]]\npath = \"/files/\"\nroot = \".\"\n\
                    [[route]]\npath = \"/off/\"\nroot = \".\"\ncompress = false\n";
    std::fs::write(directory.join("404.html"), &page).unwrap();
    let server = serve(&directory, defaults);
    for (path, is_encoded) in [
        ("/text", false),
        ("/files/none", false),
        ("/files/404.html", true),
        ("/off/404.html", false),
    ] {
        for (head, body) in ask(&curl, &server, path, &[]) {
            assert_eq!(head.contains("\r\ncontent-encoding: "), is_encoded, "{path}: {head}");
            assert!(body == page || path == "/text", "{path}: {body}");
        }
    }
}

#[test]
fn an_event_is_sent_before_the_next_one_comes() {
    let test = "an_event_is_sent_before_the_next_one_comes";
    let Some(curl) = find("curl", test) else { return };
    for coding in ["gzip", "br", "zstd"] {
        for version in VERSIONS {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let url = format!("http://{}", listener.local_addr().expect("its address"));
            let (seen, sees) = mpsc::channel();
            let upstream = thread::spawn(move || events(&listener, &sees));
            let routes = format!("[[route]]\nproxy = \"{url}\"\ncompress = true\n");
            let server = serve(&scratch(test), &routes);
            let mut client = Command::new(&curl)
                .args(["-sSN", "--compressed", "--max-time", "60", version])
                .args(["-H", &format!("Accept-Encoding: {coding}"), server.http()])
                .stdout(Stdio::piped())
                .spawn()
                .expect("curl starts");
            let mut lines = BufReader::new(client.stdout.take().expect("a pipe")).lines();
            for nth in 0..3 {
                let line = lines.next().expect("an event").expect("text");
                assert_eq!(line, format!("data: {nth}"), "{coding} {version}");
                assert_eq!(lines.next().expect("an empty line").expect("text"), "");
                // Only now does the upstream send the next one.
                seen.send(()).expect("the upstream waits");
            }
            assert!(lines.next().is_none());
            assert!(client.wait().expect("curl ends").success());
            upstream.join().expect("it has sent everything");
        }
    }
}

/// Sends three events, each once the one before was seen.
fn events(listener: &TcpListener, sees: &mpsc::Receiver<()>) {
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).expect("a request");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the proxy reads");
    for nth in 0..3 {
        stream.write_all(format!("data: {nth}\n\n").as_bytes()).expect("the proxy reads");
        sees.recv_timeout(Duration::from_secs(60)).expect("the client sees it");
    }
    stream.shutdown(std::net::Shutdown::Both).expect("an end");
}

/// compression-flood: clients that take nothing of large responses that are compressed.
#[test]
fn a_client_that_takes_nothing_does_not_stop_the_others() {
    let test = "a_client_that_takes_nothing";
    let Some((front, _behind, curl)) = sites(test, "compress = true") else { return };
    let greedy: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(Server::authority(front.http())).unwrap();
            let request = "GET /large.txt HTTP/1.1\r\nhost: a\r\naccept-encoding: br\r\n\r\n";
            stream.write_all(request.repeat(20).as_bytes()).unwrap();
            stream
        })
        .collect();
    for (head, body) in ask(&curl, &front, "/a.json", &[]) {
        assert!(head.contains("\r\ncontent-encoding: "), "{head}");
        assert!(body == json());
    }
    drop(greedy);
}

#[test]
fn mistakes_in_compress_are_found() {
    let directory = scratch("mistakes_in_compress_are_found");
    let path = directory.join("bolide.toml");
    for (route, said) in [
        ("respond = \"a\"\ncompress = \"yes\"", "2:12: `compress`"),
        (
            "respond = \"a\"\ncompress = { types = [\"text/html; q=1\"] }",
            "`types` has `text/html; q=1`: not a media type: give one such as application/json, text/* or *+json",
        ),
        ("respond = \"a\"\ncompress = { types = [] }", "`types` is empty"),
        ("respond = \"a\"\ncompress = { min-byte = 1 }", "did you mean `min-bytes`?"),
        (
            "root = \".\"\ncompress = { min-bytes = 1 }",
            "files are compressed by their type, once for each version: write `compress = true`",
        ),
        ("builtin = true\ncompress = true", "remove `compress`"),
    ] {
        std::fs::write(&path, format!("[[route]]\n{route}\n")).unwrap();
        let finished =
            run(program(), ["serve", "--config", &path.display().to_string(), "--check"]);
        let told = finished.both();
        assert_eq!(finished.status.code(), Some(2), "{route}: {told}");
        assert!(told.contains(said) || told.contains(&said.replacen("2:", "3:", 1)), "{told}");
    }
}

//! Each kind of mistake has its sentence, and what is printed is read again.

use bolide::server::{LogFormat, LogLimits, LogTarget};
use bolide::tls::{Alpn, TlsVersion};

use super::*;

fn read(text: &str) -> Result<Configuration, String> {
    Configuration::of(&Document::of("b.toml", text), true)
}

#[track_caller]
fn mistaken(text: &str, said: &str) {
    let error = read(text).unwrap_err();
    assert!(error.starts_with(said), "{text}\n  said: {error}\n  want: {said}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn the_printed_defaults_are_read_again_as_the_defaults() {
    let printed = read(&print()).unwrap();
    let empty = read("").unwrap();
    assert_eq!(format!("{:?}", printed.limits), format!("{:?}", Limits::default()));
    assert_eq!(format!("{:?}", printed.limits), format!("{:?}", empty.limits));
    assert_eq!(printed.websocket, empty.websocket);
    assert_eq!((printed.workers, printed.drain), (empty.workers, empty.drain));
    assert_eq!(printed.routes.counts(), empty.routes.counts());
    assert_eq!(printed.observe, empty.observe);
    let addresses: Vec<_> =
        printed.listen.iter().map(|one| (one.address.as_str(), one.tls.is_some())).collect();
    assert_eq!(addresses, [("127.0.0.1:8080", false), ("127.0.0.1:8443", true)]);
}

#[test]
fn what_is_printed_as_a_comment_is_read_too() {
    let all = print();
    let examples = all.lines().filter_map(|line| {
        let rest = line.strip_prefix("# ")?;
        let key = rest.split(" = ").next().unwrap_or_default();
        let is_key = key.len() < rest.len() && !key.contains(' ');
        (is_key || rest.starts_with('[')).then_some(rest)
    });
    // Files that are named are not there, upstreams that are `insecure` have no `ca`, and those without TLS no name.
    let needs_file = [
        "ca =",
        "error-pages =",
        "include =",
        "ndt7-archive =",
        "root =",
        "basic-auth =",
        "cert =",
        "key =",
        "client-",
        "server-name =",
    ];
    let text: Vec<&str> =
        examples.filter(|line| !needs_file.iter().any(|key| line.starts_with(key))).collect();
    let start = text.iter().position(|line| *line == "path = \"/api/\"").unwrap();
    let text = format!("[[route]]\n{}\n", text[start..].join("\n"));
    let configuration = read(&text).unwrap();
    assert_eq!(configuration.routes.counts(), (3, 1), "{text}");
    let log = configuration.observe.access_log.unwrap();
    assert_eq!((log.format, log.limits), (LogFormat::Combined, LogLimits::default()));
    assert_eq!(configuration.observe.admin.unwrap().address.port(), 9090);
}

#[test]
fn limits_of_websockets_are_set_by_name() {
    let text = "[limits.websocket]\nmessage-bytes = \"64KiB\"\nempty-fragments-count = 0\n\
                ping-interval = \"0s\"\noutput-bytes = 4096\n";
    let websocket = read(text).unwrap().websocket;
    let (messages, kept) = (websocket.messages, websocket.peer);
    assert_eq!((messages.message_bytes, messages.empty_fragments_count), (65_536, 0));
    assert_eq!((kept.ping_interval, kept.output_bytes), (Duration::ZERO, 4096));
    for (line, said) in [
        (
            "mesage-bytes = 1",
            "b.toml:2:1: `mesage-bytes` is not known in [limits.websocket]: did you mean `message-bytes`?",
        ),
        (
            "message-bytes = 0",
            "b.toml:2:17: `message-bytes` is out of range: give a number from 1 to",
        ),
        ("message-bytes = \"2mb\"", "b.toml:2:17: `message-bytes` is \"2mb\""),
        ("close-timeout = 5", "b.toml:2:17: `close-timeout` is a number: give a time"),
    ] {
        mistaken(&format!("[limits.websocket]\n{line}\n"), said);
    }
    mistaken(
        "[limits.websockets]\n",
        "b.toml:1:9: `websockets` is not known in [limits]: did you mean `websocket`?",
    );
}

#[test]
fn limits_are_set_by_name() {
    let text = "drain = \"5s\"\nworkers = 3\n[limits]\nbody-bytes-max = \"2MiB\"\nresponse-timeout = \"0s\"\n\
                handshake-timeout = \"3s\"\n[limits.http1]\nhead-bytes = 1000\n\
                [limits.http2]\nconcurrent-streams-count = 7\n";
    let Configuration { workers, drain, limits, .. } = read(text).unwrap();
    assert_eq!((workers, drain), (Some(3), Duration::from_secs(5)));
    assert_eq!(limits.body_bytes_max, 2 * 1024 * 1024);
    assert_eq!(limits.response_timeout, Duration::ZERO);
    assert_eq!(limits.connection.opening.handshake_timeout, Duration::from_secs(3));
    assert_eq!(limits.connection.h1.heads.head_bytes, 1000);
    assert_eq!(limits.connection.h2.concurrent_streams_count, 7);
    mistaken(
        "[limits]\nbody_bytes_max = 1\n",
        "b.toml:2:1: `body_bytes_max` is not known in [limits]: did you mean `body-bytes-max`?",
    );
    mistaken(
        "[limits.http2]\nframe-bytes = 100\n",
        "b.toml:2:15: `frame-bytes` is out of range: give a number from 16384 to 16777215",
    );
    mistaken(
        "[limits]\nresponse-timeout = 30\n",
        "b.toml:2:20: `response-timeout` is a number: give a time",
    );
    mistaken(
        "[limits]\nhandshake-timeout = \"0s\"\n",
        "b.toml:2:21: `handshake-timeout` must be at least",
    );
    mistaken("limits = 1\n", "b.toml:1:10: `limits` is a table: write [limits]");
}

#[test]
fn top_level_keys() {
    mistaken("wrokers = 2\n", "b.toml:1:1: `wrokers` is not known here: did you mean `workers`?");
    mistaken("workers = \"2\"\n", "b.toml:1:11: `workers` is a string: give a number");
    mistaken("workers = 0\n", "b.toml:1:11: `workers` is 0: give a number from 1 to 1024");
    mistaken(
        "http3-congestion = \"brr\"\n",
        "b.toml:1:20: `http3-congestion` is `brr` (`bbr`?): give one of cubic, bbr",
    );
    mistaken(
        "http3-initial-packets = 1\n",
        "b.toml:1:25: `http3-initial-packets` is 1: give a number from 2 to 200",
    );
    mistaken("drain = \"soon\"\n", "b.toml:1:9: `drain` is \"soon\": give a time with a unit");
    mistaken("[route]\nroot = \".\"\n", "b.toml:1:1: `route` is a list of tables: write [[route]]");
    mistaken("a = \n", "b.toml:1:");
}

#[test]
fn listeners() {
    let good = "[[listen]]\nhttp = \"unix:/run/b.sock\"\n[[listen]]\nhttps = \"[::1]:443\"\n\
                cert = [\"a.pem\", \"b.pem\"]\nkey = [\"a.key\", \"b.key\"]\nclient-ca = \"c.pem\"\n\
                client-certificate = \"optional\"\n";
    let listen = read(good).unwrap().listen;
    assert_eq!(listen[0].address, "unix:/run/b.sock");
    let tls = listen[1].tls.as_ref().unwrap();
    assert_eq!((tls.pairs.len(), tls.client_required), (2, false));
    mistaken("[[listen]]\n", "b.toml:1:1: a listener needs an address: write `http` or `https`");
    mistaken(
        "[[listen]]\nhtpp = \"\"\n",
        "b.toml:2:1: `htpp` is not known in [[listen]]: did you mean `http`?",
    );
    mistaken("[[listen]]\nhttp = \"80808\"\n", "b.toml:2:8: can't listen on `80808`: give an IP");
    let both = "[[listen]]\nhttp = \"127.0.0.1:1\"\nhttps = \"127.0.0.1:2\"\n";
    mistaken(both, "b.toml:3:9: a listener is `http` or `https`, not both");
    let one = "[[listen]]\nhttps = \"127.0.0.1:2\"\ncert = \"a.pem\"\n";
    mistaken(one, "b.toml:1:1: 1 certificates and 0 keys: give them in pairs");
    let plain = "[[listen]]\nhttp = \"127.0.0.1:2\"\ncert = \"a.pem\"\nkey = \"a.key\"\n";
    mistaken(plain, "b.toml:1:1: certificates need `https`");
    let word = "[[listen]]\nhttps = \"127.0.0.1:2\"\nclient-ca = \"a\"\nclient-certificate = \"require\"\n";
    mistaken(word, "b.toml:4:22: `client-certificate` is `require` (`required`?): give optional");
    let alone = "[[listen]]\nhttps = \"127.0.0.1:2\"\nclient-certificate = \"optional\"\n";
    mistaken(alone, "b.toml:3:22: `client-certificate` needs `client-ca`");
    let twice = "[[listen]]\nhttp = \"127.0.0.1:2\"\n[[listen]]\nhttp = \"127.0.0.1:2\"\n";
    mistaken(twice, "b.toml:3:1: another [[listen]] already has the address 127.0.0.1:2");
}

#[test]
fn routes() {
    let good = "[[route]]\nhost = \"Example.org.\"\npath = \"/a/\"\nrespond = \"a\"\n\
                [[route]]\nhost = [\"*.example.org\", \"b.org\"]\nredirect = \"https://example.org/\"\n\
                [[route]]\nbuiltin = true\n[[route]]\nroot = \".\"\n[[route]]\npath = \"/users/{id}\"\n\
                respond = \"x\"\nstatus = 404\n";
    assert_eq!(read(good).unwrap().routes.counts(), (5, 0));
    mistaken("[[route]]\n", "b.toml:1:1: a route needs an action: write one of `root`, `proxy`");
    mistaken(
        "[[route]]\nrot = \".\"\n",
        "b.toml:2:1: `rot` is not known in [[route]]: did you mean `root`?",
    );
    let two = "[[route]]\nrespond = \"a\"\nredirect = \"/\"\n";
    mistaken(two, "b.toml:1:1: a route has one action, not `redirect` and `respond`: use one of");
    mistaken(
        "[[route]]\nroot = \"none\"\n",
        "b.toml:2:8: root `none` doesn't exist: name a directory",
    );
    mistaken(
        "[[route]]\nroot = \"Cargo.toml\"\n",
        "b.toml:2:8: root `Cargo.toml` is a file, not a directory",
    );
    mistaken(
        "[[route]]\npath = \"/a\"\nroot = \".\"\n",
        "b.toml:2:8: a route with `root` needs a path that ends with `/`: use `/a/`",
    );
    mistaken(
        "[[route]]\npath = \"/a\"\nbuiltin = true\n",
        "b.toml:3:11: the built-in routes have their own paths",
    );
    mistaken("[[route]]\nbuiltin = false\n", "b.toml:2:11: built-in routes are off");
    mistaken("[[route]]\nredirect = \"x\"\n", "b.toml:2:12: `redirect` is `x`: give a URL");
    let status = "[[route]]\nredirect = \"/\"\nstatus = 200\n";
    mistaken(status, "b.toml:3:10: `status` is 200: this route allows 301, 302, 303, 307 or 308");
    let page = "[[route]]\nroot = \".\"\nnot-found = \"none.html\"\n";
    mistaken(page, "b.toml:3:13: `not-found` is `none.html`: not in the root directory");
    let page = "[[route]]\nroot = \".\"\nfallback = \"none.html\"\n";
    mistaken(page, "b.toml:3:12: `fallback` is `none.html`: not in the root directory");
    let page =
        "[[route]]\nroot = \".\"\nfallback = \"Cargo.toml\"\nproxy = \"http://127.0.0.1:1\"\n";
    mistaken(page, "b.toml:3:12: `fallback` and `proxy` are for the same requests");
    let rule = "[[route]]\nroot = \".\"\ncache-control = \"x\"\n";
    mistaken(rule, "b.toml:3:17: `cache-control` is `x`: give a path pattern");
}

#[test]
fn routes_that_can_never_match() {
    for (path, why) in [
        ("a", "must begin with a slash"),
        ("/a?b", "no query"),
        ("/a b", "percent-encoded"),
        ("/../a", "dots"),
    ] {
        let text = format!("[[route]]\npath = \"{path}\"\nrespond = \"a\"\n");
        let said = read(&text).unwrap_err();
        assert!(said.starts_with("b.toml:2:8: ") && said.contains("can never match"), "{said}");
        assert!(said.contains(why), "{said}");
    }
    mistaken("[[route]]\nhost = []\nrespond = \"a\"\n", "b.toml:2:8: this route can never match");
    for host in ["a:80", "http://a", "a..b", "*"] {
        let said = read(&format!("[[route]]\nhost = \"{host}\"\nrespond = \"a\"\n")).unwrap_err();
        assert!(said.starts_with(&format!("b.toml:2:8: `host` is `{host}`: ")), "{said}");
    }
}

#[test]
fn routes_that_clash() {
    let same =
        "[[route]]\npath = \"/a\"\nrespond = \"a\"\n[[route]]\npath = \"/a\"\nrespond = \"b\"\n";
    mistaken(same, "b.toml:4:1: this route conflicts with the route in line 1: both match `/a`");
    let hosts = "[[route]]\nhost = \"a\"\nrespond = \"a\"\n[[route]]\nhost = [\"b\", \"A.\"]\nrespond = \"b\"\n";
    mistaken(hosts, "b.toml:4:1: this route conflicts with the route in line 1: both match `a/`");
    let other =
        "[[route]]\nhost = \"a\"\nrespond = \"a\"\n[[route]]\nhost = \"b\"\nrespond = \"b\"\n";
    assert!(read(other).is_ok());
    let builtin = "[[route]]\nbuiltin = true\n[[route]]\npath = \"/ping\"\nrespond = \"b\"\n";
    mistaken(builtin, "b.toml:3:1: this route conflicts with the built-in routes of line 1");
    let pattern = "[[route]]\npath = \"/{a}\"\nrespond = \"a\"\n[[route]]\npath = \"/{b}\"\nrespond = \"b\"\n";
    let both = "`/{b}` and `/{a}` match the same paths";
    mistaken(
        pattern,
        &format!("b.toml:4:1: this route conflicts with the route in line 1: {both}"),
    );
    let escaped = same.replacen("/a", "/%61", 1);
    mistaken(&escaped, "b.toml:2:8: path `/%61` has `%61`, which clients send as `a`: write `/a`");
    let twice = "[[route]]\nhost = [\"a\", \"A\"]\nrespond = \"a\"\n";
    mistaken(twice, "b.toml:2:14: `host` names `a` twice: remove one");
}

#[test]
fn every_built_in_path_is_taken() {
    let paths = bolide_measurement::paths();
    for path in ["/ping", "/echo", "/ws", "/small", "/large", "/slurp", "/config"] {
        assert!(paths.iter().any(|known| known == path), "{path}: {paths:?}");
    }
    for path in paths {
        let text =
            format!("[[route]]\nbuiltin = true\n[[route]]\npath = \"{path}\"\nrespond = \"b\"\n");
        let both = format!("both match `{path}`");
        mistaken(
            &text,
            &format!("b.toml:3:1: this route conflicts with the built-in routes of line 1: {both}"),
        );
        let elsewhere = text.replace("path", "host = \"a\"\npath");
        assert!(read(&elsewhere).is_ok(), "{path}");
    }
}

/// A route to an upstream with two servers, and keys from the sixth line on.
fn upstream(more: &str) -> String {
    format!(
        "[[route]]\nproxy = \"backend\"\n[[upstream]]\nname = \"backend\"\n\
         servers = [\"http://127.0.0.1:1\", {{ url = \"http://127.0.0.1:2\", weight = 3 }}]\n{more}"
    )
}

#[test]
fn upstreams() {
    let more = "balance = \"power-of-two\"\norigin = \"append\"\nrewrite-host = true\nidle-timeout = \"9s\"\n\
                dot-segments = \"pass\"\n";
    assert_eq!(read(&upstream(more)).unwrap().routes.counts(), (1, 1));
    let url = "[[route]]\nproxy = [\"http://127.0.0.1:1\", \"unix:/run/a\"]\n";
    assert_eq!(read(url).unwrap().routes.counts(), (1, 1));
    let both = "[[route]]\nroot = \".\"\nproxy = \"http://127.0.0.1:1\"\n";
    assert_eq!(read(both).unwrap().routes.counts(), (1, 1));
    mistaken(
        &upstream("balance = \"round\"\n"),
        "b.toml:6:11: `balance` is `round` (`round-robin`?): give one of",
    );
    mistaken(
        &upstream("idle-timout = \"9s\"\n"),
        "b.toml:6:1: `idle-timout` is not known in [[upstream]]: did you mean `idle-timeout`?",
    );
    mistaken(
        &upstream("dot-segments = \"resolve\"\n"),
        "b.toml:6:16: `dot-segments` is `resolve`: give one of refuse, pass",
    );
    let slip = upstream("").replace("proxy = \"backend\"", "proxy = \"bakend\"");
    mistaken(&slip, "b.toml:2:9: there is no upstream `bakend`: did you mean `backend`?");
    let unused = upstream("").replace("proxy = \"backend\"", "builtin = true");
    mistaken(&unused, "b.toml:3:1: upstream `backend` is used by no route");
    let bad = upstream("").replace("http://127.0.0.1:2", "ftp://127.0.0.1:2");
    mistaken(&bad, "b.toml:5:42: `ftp://127.0.0.1:2` is not an upstream: its scheme is not known");
    let weight = upstream("").replace("weight = 3", "weight = 0");
    mistaken(&weight, "b.toml:5:73: `weight` is out of range");
    let twice = upstream("[[upstream]]\nname = \"backend\"\nservers = [\"http://127.0.0.1:3\"]\n");
    mistaken(&twice, "b.toml:6:1: upstream `backend` is already defined in line 3");
    let checks = upstream(
        "health = \"/up\"\nhealth-statuses = \"204\"\nhealth-interval = \"1s\"\nhealth-fall-count = 1\n",
    );
    assert_eq!(read(&checks).unwrap().routes.counts(), (1, 1));
    let path = checks.replace("/up", "up");
    mistaken(
        &path,
        "b.toml:6:10: the health check `up` is invalid: its path must begin with a slash",
    );
    let statuses = checks.replace("204", "299-200");
    mistaken(&statuses, "b.toml:7:19: `health-statuses` is `299-200`: give one status");
    let zero = checks.replace("\"1s\"", "\"0s\"");
    mistaken(&zero, "b.toml:8:19: `health-interval` must be at least");
    let alone = checks.replace("health = \"/up\"\n", "");
    mistaken(&alone, "b.toml:3:1: `health-statuses` needs `health`");
    assert!(read(&upstream("resolve-period = \"0s\"\n")).is_ok(), "never");
    let tunnels = upstream("").replace("weight = 3", "http1-tunnel = true");
    mistaken(
        &tunnels,
        "b.toml:5:64: `http1-tunnel` is not known in `servers`: did you mean `http1-tunnels`?",
    );
    mistaken("[[route]]\nproxy = \"http://\"\n", "b.toml:2:9: `http://` is not an upstream");
    mistaken("[[upstream]]\nname = \"a\"\n", "b.toml:1:1: upstream `a` has no server");
    mistaken(
        "[[upstream]]\nservers = [\"http://127.0.0.1:3\"]\n",
        "b.toml:1:1: an upstream needs a name",
    );
}

#[test]
fn what_is_observed() {
    let text = "[log]\nlevel = \"info\"\nformat = \"json\"\n[log.targets]\n\"bolide::tls\" = \"debug\"\n\
                [access-log]\nfile = \"/a/log\"\nformat = \"json\"\nqueue-count = 7\nblock-bytes = \"8KiB\"\n\
                delay = \"1s\"\n[admin]\nlisten = \"0.0.0.0:1\"\npublic = true\n";
    let observe = read(text).unwrap().observe;
    assert_eq!(observe.levels.to_string(), "info,bolide::tls=debug");
    assert_eq!(observe.event_format, observe::EventFormat::Json);
    let log = observe.access_log.unwrap();
    assert_eq!(log.target, LogTarget::File("/a/log".into()));
    let limits = LogLimits { block_bytes: 8192, queue_count: 7, delay: Duration::from_secs(1) };
    assert_eq!((log.format, log.limits), (LogFormat::Json, limits));
    assert!(observe.admin.unwrap().public);
    let stdout = read("[access-log]\nfile = \"-\"\n").unwrap().observe.access_log.unwrap();
    assert_eq!((stdout.target, stdout.format), (LogTarget::Stdout, LogFormat::Combined));
}

#[test]
fn what_is_observed_has_its_mistakes() {
    for (text, said) in [
        (
            "[log]\nlevel = \"wran\"\n",
            "b.toml:2:9: `level` is `wran` (`warn`?): give one of off, error",
        ),
        (
            "[log]\nlevl = \"warn\"\n",
            "b.toml:2:1: `levl` is not known in [log]: did you mean `level`?",
        ),
        ("[log]\nformat = \"xml\"\n", "b.toml:2:10: `format` is `xml`: give one of text, json"),
        (
            "[log.targets]\n\"bolide::tsl\" = \"info\"\n",
            "b.toml:2:1: `bolide::tsl` is not known in [log.targets]: did you mean `bolide::tls`?",
        ),
        ("log = \"info\"\n", "b.toml:1:7: `log` is a table: write [log]"),
        (
            "[access_log]\nfile = \"a\"\n",
            "b.toml:1:2: `access_log` is not known here: did you mean `access-log`?",
        ),
        (
            "[access-log]\nformat = \"json\"\n",
            "b.toml:1:1: [access-log] needs a file: write `file`",
        ),
        ("[access-log]\nfile = \"\"\n", "b.toml:2:8: `file` is empty: name a file"),
        ("[access-log]\nfile = 1\n", "b.toml:2:8: `file` is a number: give a string"),
        (
            "[access-log]\nfile = \"a\"\nformat = \"jsonl\"\n",
            "b.toml:3:10: `format` is `jsonl` (`json`?): give one of common, combined, json",
        ),
        (
            "[access-log]\nfile = \"a\"\nqueue-count = 0\n",
            "b.toml:3:15: `queue-count` is out of range: give a number from 1 to 65536",
        ),
        (
            "[access-log]\nfile = \"a\"\nque = 1\n",
            "b.toml:3:1: `que` is not known in [access-log]: known keys are",
        ),
        ("[admin]\npublic = true\n", "b.toml:1:1: [admin] needs an address: write `listen`"),
        (
            "[admin]\nlisten = \"localhost:1\"\n",
            "b.toml:2:10: `listen` is `localhost:1`: give an IP address",
        ),
        (
            "[admin]\nlisten = \"0.0.0.0:1\"\n",
            "b.toml:2:10: `listen` is 0.0.0.0:1: other machines could reach it",
        ),
        (
            "[admin]\nlisten = \"127.0.0.1:1\"\npublc = true\n",
            "b.toml:3:1: `publc` is not known in [admin]",
        ),
        ("[profile]\none-in = 0\n", "b.toml:2:10: `one-in` is 0: give a number from 1 to 1000000"),
        ("[profile]\none = 1\n", "b.toml:2:1: `one` is not known in [profile]"),
        ("server-timing = 1\n", "b.toml:1:17: `server-timing` is a number: give true or false"),
        (
            "[[route]]\nbuiltin = true\nndt7-archive = \"none\"\n",
            "b.toml:3:16: `ndt7-archive` none: directory doesn't exist (create it first)",
        ),
        ("[[route]]\nroot = \".\"\nfresh = 1\n", "b.toml:3:9: `fresh` is a number: give a time"),
    ] {
        mistaken(text, said);
    }
}

#[test]
fn how_an_upstream_is_chosen_has_its_mistakes() {
    for keys in [
        "balance = \"hash:client\"\nhash-load-percent = 150\nslow-start = \"30s\"\n",
        "balance = \"hash:header:X-User\"\nproxy-protocol = \"v2\"\n",
        "balance = \"hash:cookie:id\"\nsticky = { cookie = \"at\" }\n",
        "sticky = { cookie = \"at\", path = \"/a\", same-site = \"none\", max-age = \"1h\", secret = \"0123456789abcdef\" }\n",
    ] {
        assert_eq!(read(&upstream(keys)).unwrap().routes.counts(), (1, 1), "{keys}");
    }
    for (keys, said) in [
        (
            "balance = \"hash\"\n",
            "b.toml:6:11: `balance` is `hash` (`hash:uri`?): give one of round-robin,",
        ),
        (
            "balance = \"hash:ip\"\n",
            "b.toml:6:11: `balance` is `hash:ip`: give hash:client, hash:uri,",
        ),
        (
            "proxy-protocol = \"v3\"\n",
            "b.toml:6:18: `proxy-protocol` is `v3` (`v1`?): give one of off, v1, v2",
        ),
        (
            "hash-load-percent = 100\n",
            "b.toml:6:21: `hash-load-percent` is out of range: give a number from 101",
        ),
        ("sticky = true\n", "b.toml:6:10: `sticky` is a table: write sticky = {"),
        ("sticky = { path = \"/\" }\n", "b.toml:6:10: `sticky` needs a name: write `cookie"),
        (
            "sticky = { cookie = \"a b\" }\n",
            "b.toml:6:21: the cookie that names upstreams can't have `a b`: its name",
        ),
        (
            "sticky = { cookie = \"a\", path = \"a\" }\n",
            "b.toml:6:33: the cookie that names upstreams can't have `a`: its path",
        ),
        (
            "sticky = { cookie = \"a\", same-site = \"laxx\" }\n",
            "b.toml:6:38: `same-site` is `laxx` (`lax`?): give one of lax,",
        ),
        (
            "sticky = { cookie = \"a\", max-age = \"0s\" }\n",
            "b.toml:6:36: `max-age` must be at least \"1s\"",
        ),
        (
            "sticky = { cookie = \"a\", secret = \"short\" }\n",
            "b.toml:6:35: `secret` must have at least 16",
        ),
        (
            "sticky = { cookei = \"a\" }\n",
            "b.toml:6:12: `cookei` is not known in `sticky`: did you mean `cookie`?",
        ),
    ] {
        mistaken(&upstream(keys), said);
    }
}

#[test]
fn what_tls_agrees_to_has_its_mistakes() {
    let listen = |more: &str| format!("[[listen]]\nhttps = \"127.0.0.1:0\"\n{more}\n");
    let fine = "min-version = \"1.3\"\nmax-version = \"1.3\"\ncipher-suites = \"TLS_AES_256_GCM_SHA384\"\nalpn = [\"http/1.1\"]";
    let configuration = read(&listen(fine)).unwrap();
    let rules = &configuration.listen[0].tls.as_ref().unwrap().rules;
    assert_eq!((rules.least, rules.most), (TlsVersion::Tls13, TlsVersion::Tls13));
    assert_eq!(
        (&rules.cipher_suites[..], &rules.alpn[..]),
        (&["TLS_AES_256_GCM_SHA384".to_owned()][..], &[Alpn::Http11][..])
    );
    for (keys, said) in [
        (
            "min-version = \"1.1\"",
            "b.toml:3:15: `min-version` is `1.1` (`1.2`?): give one of 1.2, 1.3",
        ),
        (
            "min-version = \"1.3\"\nmax-version = \"1.2\"",
            "b.toml:4:15: `max-version` is older than `min-version`",
        ),
        (
            "cipher-suites = [\"TLS_AES_128_GCM_SHA384\"]",
            "b.toml:3:18: `cipher-suites` has `TLS_AES_128_GCM_SHA384`: known are TLS_AES_",
        ),
        (
            "cipher-suites = [\"TLS_AES_128_GCM_SHA256\"]",
            "b.toml:3:17: `cipher-suites`: no cipher suite is for TLS 1.2",
        ),
        (
            "early-data = true\nmax-version = \"1.2\"",
            "b.toml:3:14: `early-data`: early data needs HTTP/3",
        ),
        (
            "early-data = true\nclient-ca = \"a.pem\"",
            "b.toml:3:14: `early-data` comes before a client has shown a certificate",
        ),
        ("early-data = 1", "b.toml:3:14: `early-data`"),
        ("alpn = []", "b.toml:3:8: `alpn` is empty: give h2, http/1.1 or both"),
        ("alpn = \"h3\"", "b.toml:3:8: `alpn` is `h3` (`h2`?): give one of h2, http/1.1"),
    ] {
        mistaken(&listen(keys), said);
    }
    mistaken(
        "[[listen]]\nhttp = \"127.0.0.1:0\"\nalpn = \"h2\"\n",
        "b.toml:3:8: `alpn` needs `https`: this listener is `http`",
    );
    for (keys, said) in [
        ("cert = \"a\"\n", "b.toml:6:8: `cert` needs its `key`"),
        ("key = \"a\"\n", "b.toml:6:7: `key` needs its `cert`"),
        ("cert = \"none\"\nkey = \"none\"\n", "b.toml:6:8: `cert` none: can't be read"),
        ("server-name = \"a\"\n", "b.toml:6:15: `server-name` needs a server with https://"),
    ] {
        mistaken(&upstream(keys), said);
    }
    let name = "[[route]]\nproxy = \"u\"\n[[upstream]]\nname = \"u\"\ninsecure = true\nservers = [\"https://127.0.0.1:1\"]\nserver-name = ";
    assert!(read(&format!("{name}\"backend.internal\"\n")).is_ok());
    mistaken(&format!("{name}\"a b\"\n"), "b.toml:7:15: TLS to upstreams: ");
}

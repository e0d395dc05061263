//! Conditions and rules of routes: each kind of mistake has its sentence.

use super::*;

fn read(text: &str) -> Result<Configuration, String> {
    Configuration::of(&Document::of("b.toml", text), true)
}

/// A route with these keys.
#[track_caller]
fn fine(keys: &str) {
    let text = format!("[[route]]\npath = \"/a/\"\nproxy = \"http://127.0.0.1:1\"\n{keys}");
    if let Err(said) = read(&text) {
        panic!("{text}\n{said}");
    }
}

/// The fourth line, which is wrong.
#[track_caller]
fn wrong(line: &str, said: &str) {
    let text = format!("[[route]]\npath = \"/a/\"\nproxy = \"http://127.0.0.1:1\"\n{line}\n");
    mistaken(&text, said);
}

#[track_caller]
fn mistaken(text: &str, said: &str) {
    let error = read(text).unwrap_err();
    assert!(error.starts_with(said), "{text}\n  said: {error}\n  want: {said}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn conditions_are_read_and_their_mistakes_named() {
    fine(
        "scheme = \"https\"\nlisten = \"0.0.0.0:443\"\nmethod = \"GET\"\nheader = { X-A = true }\n\
          query = { a = \"b*\" }\naddress = \"10.0.0.0/8\"\nwhile-file = \"none\"\n",
    );
    for (line, said) in [
        (
            "scheme = \"htps\"",
            "b.toml:4:10: `scheme` is `htps` (`https`?): give one of http, https",
        ),
        ("listen = \"eighty\"", "b.toml:4:10: `listen` is `eighty`: give the address and port"),
        ("listen = \"0.0.0.0:0\"", "b.toml:4:10: `listen` is `0.0.0.0:0`: give the address"),
        ("method = \"get\"", "b.toml:4:10: `method` is `get`: give a method such as `GET`"),
        ("header = { x-a = 1 }", "b.toml:4:18: `x-a` is neither a string nor true or false"),
        ("query = \"a\"", "b.toml:4:9: `query` is a table: write query = { … }"),
        (
            "address = \"10.0.0.1/8\"",
            "b.toml:4:11: `address` is `10.0.0.1/8`: the address has bits beyond its prefix: write 10.0.0.0/8",
        ),
        ("address = \"office\"", "b.toml:4:11: `address` is `office`: give a network such as"),
        (
            "shceme = \"http\"",
            "b.toml:4:1: `shceme` is not known in [[route]]: did you mean `scheme`?",
        ),
    ] {
        wrong(line, said);
    }
}

#[test]
fn rewriting_is_read_and_its_mistakes_named() {
    fine(
        "strip-prefix = \"/a\"\nrewrite = { from = \"^/(.)\", to = \"/{1}\" }\nadd-prefix = \"/b/\"\n",
    );
    for (line, said) in [
        (
            "strip-prefix = \"/b\"",
            "b.toml:4:16: `strip-prefix` is `/b`: the paths of this route don't begin so",
        ),
        (
            "strip-prefix = \"a\"",
            "b.toml:4:16: `strip-prefix` is `a`: a prefix begins with a slash",
        ),
        ("add-prefix = \"/\"", "b.toml:4:14: `add-prefix` is `/`: give a path such as /api"),
        ("rewrite = \"/b\"", "b.toml:4:11: `rewrite` is a table: write rewrite = { … }"),
        ("rewrite = { from = \"a\" }", "b.toml:4:11: `rewrite` needs both: write { from ="),
        ("rewrite = { from = \"(\", to = \"/\" }", "b.toml:4:20: `from` is `(`: invalid pattern: "),
        (
            "rewrite = { from = \"a\", to = \"/{1}\" }",
            "b.toml:4:30: `to` is `/{1}`: has {1}, but there is no pattern",
        ),
        (
            "rewrite = { from = \"a\", to = \"/{pth}\" }",
            "b.toml:4:30: `to` is `/{pth}`: `{pth}` is not a placeholder: did you mean `{path}`?",
        ),
        (
            "rewrite = { form = \"a\" }",
            "b.toml:4:13: `form` is not known in `rewrite`: did you mean `from`?",
        ),
    ] {
        wrong(line, said);
    }
    mistaken(
        "[[route]]\npath = \"/a/\"\nroot = \".\"\nstrip-prefix = \"/a\"\n",
        "b.toml:4:16: `strip-prefix` is `/a`: files are found below the route's path already",
    );
}

#[test]
fn rules_for_fields_are_read_and_their_mistakes_named() {
    fine(
        "request-headers = { set = { x-a = \"{client}\" }, add = { x-b = \"1\" }, remove = \"x-c\" }\n\
          response-headers = { remove = [\"server\", \"x-powered-by\"] }\nhsts = true\nsecurity-headers = true\n\
          cors = { origins = \"*\", methods = [\"GET\"], headers = [\"x-a\"], expose = [\"x-b\"], max-age = \"5min\" }\n\
          body-bytes-max = \"5MiB\"\nresponse-timeout = \"0s\"\nexchange-timeout = \"1h\"\n",
    );
    fine("hsts = { max-age = \"8760h\", include-subdomains = true, preload = true }\n");
    for (line, said) in [
        (
            "request-headers = { set = { host = \"a\" } }",
            "b.toml:4:29: `host` can't be edited: routes are chosen by it",
        ),
        (
            "response-headers = { remove = [\"Content-Length\"] }",
            "b.toml:4:32: `content-length` can't be edited: it frames",
        ),
        (
            "response-headers = { set = { x-a = \"a\\r\\nb\" } }",
            "b.toml:4:36: `x-a` is `a\\r\\nb`: has '\\r', which a field",
        ),
        (
            "response-headers = { sett = {} }",
            "b.toml:4:22: `sett` is not known in `response-headers`: did you mean `set`?",
        ),
        ("hsts = 1", "b.toml:4:8: `hsts` is a number: give true or false"),
        ("hsts = { preload = true }", "b.toml:4:20: `preload` needs `include-subdomains = true`"),
        ("cors = { }", "b.toml:4:8: `cors` needs `origins`"),
        (
            "cors = { origins = [\"*\"], credentials = true }",
            "b.toml:4:41: `credentials` needs named origins",
        ),
        (
            "cors = { origins = [\"a.example\"] }",
            "b.toml:4:20: `a.example` is not an origin: write a scheme",
        ),
        (
            "cors = { origins = [\"*\"], methods = [\"a b\"] }",
            "b.toml:4:37: `methods`: `a b` is not a method",
        ),
        (
            "error-pages = { 200 = \"a.html\" }",
            "b.toml:4:17: `200` in `error-pages` is not a status from 400",
        ),
        ("error-pages = { 404 = \"none.html\" }", "b.toml:4:23: page `none.html` can't be read: "),
        (
            "error-pages = { 404 = \"Cargo.toml\" }",
            "b.toml:4:23: page `Cargo.toml`: name an .html, .txt or",
        ),
        (
            "body-bytes-max = \"5mb\"",
            "b.toml:4:18: `body-bytes-max` is \"5mb\": give a number of bytes",
        ),
        ("response-timeout = 5", "b.toml:4:20: `response-timeout` is a number: give a time"),
    ] {
        wrong(line, said);
    }
    mistaken(
        "[[route]]\nbuiltin = true\nhsts = true\n",
        "b.toml:1:1: the built-in routes have no conditions and rules: remove `hsts`",
    );
    mistaken(
        "[[route]]\nrespond = { fil = \"a\" }\n",
        "b.toml:2:13: `fil` is not known in `respond`: did you mean `file`?",
    );
}

#[test]
fn defaults_are_rules_of_all_routes() {
    let text = "[defaults]\nhsts = true\nsecurity-headers = true\nresponse-timeout = \"5s\"\n[[route]]\nrespond = \"a\"\n\
                [[route]]\npath = \"/b\"\nrespond = \"b\"\nhsts = false\n[[route]]\nhost = \"c\"\nbuiltin = true\n";
    let rules = read(text).unwrap().routes.rules();
    let hsts: Vec<bool> = rules.iter().map(|rules| rules.hsts.is_some()).collect();
    assert_eq!(hsts, [true, false, false]);
    assert!(rules[1].security && rules[1].response_timeout == Some(Duration::from_secs(5)));
    assert!(rules[2].is_empty());
    mistaken(
        "[defaults]\nstrip-prefix = \"/a\"\n",
        "b.toml:2:1: `strip-prefix` is not known in [defaults]: known keys are `response-headers`, `hsts`",
    );
}

#[test]
fn a_route_behind_those_that_come_first_is_found() {
    let http = "[[listen]]\nhttp = \"127.0.0.1:1\"\n";
    let both = format!("{http}[[listen]]\nhttps = \"127.0.0.1:2\"\n");
    let secure = "[[route]]\nscheme = \"http\"\nredirect = \"https://{host}{path}{query}\"\n";
    let page = "[[route]]\npath = \"/a/\"\nrespond = \"a\"\n";
    assert_eq!(read(&[&both, secure, page].concat()).err(), None, "it is there over TLS");
    mistaken(
        &[http, page, secure].concat(),
        "b.toml:3:1: this route is never reached: the route at b.toml:6:1 takes its requests",
    );
    let trusted = "trusted = [\"10.0.0.0/8\"]\n";
    assert_eq!(read(&[trusted, http, secure, page].concat()).err(), None, "a balancer speaks TLS");
    let tls = "[[route]]\nscheme = \"https\"\nhost = \"a.example\"\nrespond = \"b\"\n";
    assert_eq!(read(&[&both, secure, tls, page].concat()).err(), None, "for other hosts");
    let host = page.replace("respond", "host = \"a.example\"\nrespond");
    mistaken(&[&both, secure, tls, &host].concat(), "b.toml:12:1: this route is never reached");
    let narrower =
        "[[route]]\npath = \"/a/\"\nscheme = \"http\"\nmethod = \"PUT\"\nrespond = \"b\"\n";
    assert_eq!(read(&[http, secure, narrower, page].concat()).err(), None, "a narrower one first");
    let maintenance = "[[route]]\nwhile-file = \"down\"\nrespond = \"b\"\n";
    assert_eq!(read(&[http, maintenance, page].concat()).err(), None, "only while there is a file");
}

#[test]
fn a_route_that_is_never_reached_is_found() {
    let route = |keys: &str| format!("[[route]]\nrespond = \"a\"\n{keys}\n");
    let reached = [route("method = \"PUT\""), route("method = \"GET\""), route("")].concat();
    assert!(read(&reached).is_ok());
    let behind = [route(""), route("method = \"PUT\"")].concat();
    mistaken(
        &behind,
        "b.toml:4:1: this route is never reached: the route at b.toml:1:1 takes its requests",
    );
    let twice = [route("method = \"PUT\""), route("method = \"PUT\"")].concat();
    mistaken(&twice, "b.toml:4:1: this route is never reached");
    for (first, second) in [
        ("method = [\"GET\", \"PUT\"]", "method = \"PUT\""),
        ("header = { a = \"1*\" }", "header = { a = \"12\" }\nmethod = \"GET\""),
        ("header = { a = true }", "header = { a = \"1*\" }"),
        ("query = { q = \"1\" }", "query = { q = \"1\", r = true }"),
    ] {
        let narrower = [route(first), route(second)].concat();
        mistaken(&narrower, "b.toml:4:1: this route is never reached");
        let wider = [route(second), route(first)].concat();
        assert_eq!(read(&wider).err(), None, "{second}");
    }
    let tiers = [route(""), route("scheme = \"http\"")].concat();
    assert!(read(&tiers).is_ok(), "it comes first");
    let listen = "[[listen]]\nhttp = \"127.0.0.1:1\"\n";
    for given in ["127.0.0.1:1", "1", "localhost:1"] {
        let known = [listen, &route(&format!("listen = \"{given}\""))].concat();
        assert_eq!(read(&known).err(), None, "{given}");
    }
    let two = format!("{listen}[[listen]]\nhttps = \"127.0.0.1:2\"\n");
    let contradiction = "listen = \"127.0.0.1:1\"\nscheme = \"https\"";
    mistaken(
        &(two + &route(contradiction)),
        "b.toml:5:1: this route is never reached: the [[listen]] 127.0.0.1:1 is `http`",
    );
    // A balancer that is trusted may say that its client has spoken TLS.
    let behind = format!("trusted = [\"10.0.0.0/8\"]\n{listen}");
    for keys in ["scheme = \"https\"", contradiction] {
        assert_eq!(read(&format!("{behind}{}", route(keys))).err(), None, "{keys}");
    }
    let none = [listen, &route("scheme = \"https\"")].concat();
    mistaken(&none, "b.toml:3:1: this route is never reached: no [[listen]] has `https`");
    let other = [listen, &route("listen = \"127.0.0.1:2\"")].concat();
    mistaken(
        &other,
        "b.toml:3:1: there is no [[listen]] with the address 127.0.0.1:2: known are 127.0.0.1:1",
    );
}

#[test]
fn a_redirect_onto_itself_is_found() {
    let redirect = |keys: &str| format!("[[route]]\n{keys}\n");
    for (keys, whose) in [
        (
            "redirect = \"https://{host}{path}{query}\"",
            "https requests for any host to themselves: add `scheme = \"http\"`",
        ),
        (
            "host = \"a.example\"\nredirect = \"https://a.example/\"",
            "https requests for a.example to themselves",
        ),
        ("redirect = \"https://a.example/\"", "https requests for a.example to themselves"),
        ("redirect = \"{path}\"", "http requests for any host to themselves"),
        ("path = \"/a\"\nredirect = \"/a\"", "http requests for any host to themselves"),
        (
            "path = \"/a/{*rest}\"\nredirect = \"{path}\"",
            "http requests for any host to themselves",
        ),
        ("path = \"/{id}/a\"\nredirect = \"{path}\"", "http requests for any host to themselves"),
        (
            "redirect = { from = \"^/a/(.*)$\", to = \"/a/{1}\" }",
            "http requests for any host to themselves",
        ),
        (
            "scheme = \"http\"\nredirect = \"http://{host}{path}\"",
            "to themselves: name another host or path",
        ),
    ] {
        let said = read(&redirect(keys)).unwrap_err();
        assert!(
            said.starts_with("b.toml:1:1: this route redirects ") && said.contains(whose),
            "{keys}: {said}"
        );
    }
}

#[test]
fn redirects_in_circles_are_found() {
    let redirect = |keys: &str| format!("[[route]]\n{keys}\n");
    for (keys, first, next) in [
        ("redirect = \"/app/\"", "/", "/app/"),
        ("redirect = \"/app\"", "/", "/app"),
        ("redirect = { from = \"^/(.*)$\", to = \"/a/{1}\" }", "/", "/a/"),
        (
            "path = \"/a/\"\nquery = { b = \"c\" }\nredirect = \"/a/d{query}\"",
            "/a/?b=c",
            "/a/d?b=c",
        ),
    ] {
        let said = read(&redirect(keys)).unwrap_err();
        let what =
            format!("this route redirects `{first}` to `{next}`, which it redirects again: ");
        assert!(said.starts_with(&format!("b.toml:1:1: {what}")), "{keys}: {said}");
    }
    for pattern in ["^/(old|new)/(.*)$", "^/new(/(.*))?$", "^/new/[0-9]{4}[a-f]*$"] {
        let leads = |to: &str| {
            read(&redirect(&format!("redirect = {{ from = \"{pattern}\", to = \"{to}\" }}")))
        };
        assert_eq!(leads("/other/").err(), None, "{pattern}");
        let onto_itself = if pattern.contains('|') { "/new/{2}" } else { "{path}" };
        assert!(leads(onto_itself).is_err(), "{pattern}");
    }
    for keys in [
        "query = { b = \"c\" }\nredirect = \"{path}\"",
        "redirect = \"/app/\"\n[[route]]\npath = \"/app/\"\nrespond = \"a\"",
        "redirect = { from = \"^/(.*)/$\", to = \"/{1}\" }",
        "scheme = \"http\"\nredirect = \"https://{host}{path}{query}\"",
        "host = \"www.a.example\"\nredirect = \"https://a.example/\"",
        "path = \"/old/\"\nredirect = \"/new/\"",
        "redirect = { from = \"^/a/(.*)$\", to = \"/b/{1}\" }",
        "redirect = \"https://a.example/\"\n[[route]]\nhost = \"a.example\"\nrespond = \"a\"",
    ] {
        assert_eq!(read(&redirect(keys)).err(), None, "{keys}");
    }
}

#[test]
fn an_upstream_that_is_the_server_is_found() {
    for (listen, upstream) in [
        ("127.0.0.1:7", "http://127.0.0.1:7"),
        ("0.0.0.0:7", "h2c://localhost:7/"),
        ("[::]:7", "http://[::1]:7"),
        ("0.0.0.0:7", "http://127.0.0.9:7"),
        ("unix:/run/a", "unix:/run/a"),
    ] {
        let text = format!("[[listen]]\nhttp = \"{listen}\"\n[[route]]\nproxy = \"{upstream}\"\n");
        mistaken(
            &text,
            &format!("b.toml:3:1: the upstream `{upstream}` is this server's listener {listen}"),
        );
        assert!(read(&text.replacen(":7", ":8", 1).replacen("run/a", "run/b", 1)).is_ok());
    }
    for (port, upstream) in
        [(80, "http://127.0.0.1"), (80, "http://localhost/"), (443, "https://127.0.0.1")]
    {
        let listen = format!("[[listen]]\nhttp = \"0.0.0.0:{port}\"\n");
        let text = format!("{listen}[[route]]\nproxy = \"{upstream}\"\n");
        mistaken(&text, "b.toml:3:1: the upstream `http");
    }
}

#[test]
fn paths_that_others_write_with_a_star_are_refused_with_the_right_spelling() {
    for (path, said) in [
        (
            "/api/*",
            "b.toml:2:8: path `/api/*` matches a `*` alone: write `/api/` for everything below it",
        ),
        ("/api*", "b.toml:2:8: path `/api*` matches a `*` alone: write `/api/`, or `/api{*rest}`"),
        ("/*/a", "b.toml:2:8: path `/*/a` matches a `*` alone: write {name} for one segment"),
    ] {
        mistaken(&format!("[[route]]\npath = \"{path}\"\nrespond = \"a\"\n"), said);
    }
    mistaken(
        "[[route]]\npath = \"/{*rest}\"\nroot = \".\"\n",
        "b.toml:2:8: a route with `root` needs a path that ends with `/`: use `/`",
    );
    mistaken(
        "[[route]]\nroot = \".\"\nindx = \"a\"\n",
        "b.toml:3:1: `indx` is not known in [[route]]: did you mean `index`?",
    );
}

#[test]
fn variables_are_replaced_in_every_string() {
    let path = std::env::var("PATH").unwrap_or_default();
    assert!(!path.is_empty(), "a test needs a variable that is set");
    mistaken(
        "[[route]]\nproxy = [\"${BOLIDE_NONE}\"]\n",
        "b.toml:2:10: the environment variable `BOLIDE_NONE` is not set: set it, or write ${BOLIDE_NONE:-default}",
    );
    assert!(read("[[route]]\nrespond = \"${PATH}\"\n").is_ok());
    assert!(read("[[listen]]\nhttp = \"127.0.0.1:${BOLIDE_NONE:-80}\"\n").is_ok());
}

use super::*;

fn found(router: &Router, method: Method, path: &str) -> String {
    found_at(router, method, "", path)
}

fn found_at(router: &Router, method: Method, host: &str, path: &str) -> String {
    match router.find(None, &method, path.as_bytes(), || Some(host)).1 {
        Found::Handler(handler, parameters) => {
            let parameters: Vec<_> = parameters
                .iter()
                .flat_map(matchit::Params::iter)
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!("{:?} {}", handler.body_bytes_max(), parameters.join(","))
        }
        Found::MethodNotAllowed(allow) => format!("405 {}", allow.to_str().unwrap()),
        Found::Options(allow) => format!("204 {}", allow.to_str().unwrap()),
        Found::Nothing => "404".to_owned(),
    }
}

fn numbered(number: u64) -> impl Handler {
    crate::body_limit(number, |_: &mut Request<'_>| "")
}

#[test]
fn exact_paths_win_over_parameters_and_these_over_the_rest() {
    let router = Router::new()
        .handle(Method::GET, "/users/me", numbered(1))
        .handle(Method::GET, "/users/{id}", numbered(2))
        .handle(Method::DELETE, "/users/{id}", numbered(3))
        .handle(Method::GET, "/files/{*path}", numbered(4));
    assert_eq!(router.check(), Ok(()));
    for (method, path, expected) in [
        (Method::GET, "/users/me", "Some(1) "),
        (Method::HEAD, "/users/7", "Some(2) id=7"),
        (Method::DELETE, "/users/7", "Some(3) id=7"),
        (Method::GET, "/files/a/b", "Some(4) path=a/b"),
        (Method::GET, "/users", "404"),
        (Method::GET, "/users/7/x", "404"),
        (Method::GET, "/Users/me", "404"),
        (Method::POST, "/users/7", "405 DELETE, GET, HEAD, OPTIONS"),
        (Method::OPTIONS, "/users/me", "204 GET, HEAD, OPTIONS"),
    ] {
        assert_eq!(found(&router, method, path), expected, "{path}");
    }
}

#[test]
fn routes_that_cannot_be_are_named() {
    let error = |router: Router| router.check().unwrap_err().to_string();
    assert_eq!(
        error(Router::new().get("ping", |_| "")),
        "route `ping`: a path begins with a slash"
    );
    let twice = Router::new().get("/a", |_| "").get("/a", |_| "");
    assert_eq!(error(twice), "route `/a`: GET is routed twice");
    let clash = Router::new().get("/{a}", |_| "").get("/{b}", |_| "");
    assert!(error(clash).starts_with("route `/{b}`: "));
    assert!(error(Router::new().get("/{a", |_| "")).starts_with("route `/{a`: "));
}

#[test]
fn any_method_is_what_no_other_route_of_the_path_answers() {
    let router = Router::new()
        .any("/a", numbered(1))
        .handle(Method::POST, "/a", numbered(2))
        .any("/b/{id}", numbered(3));
    assert_eq!(router.check(), Ok(()));
    for (method, path, expected) in [
        (Method::GET, "/a", "Some(1) "),
        (Method::OPTIONS, "/a", "Some(1) "),
        (Method::POST, "/a", "Some(2) "),
        (Method::PUT, "/b/7", "Some(3) id=7"),
    ] {
        assert_eq!(found(&router, method, path), expected, "{path}");
    }
    let twice = Router::new().any("/a", numbered(1)).any("/a", numbered(2));
    let error = twice.check().unwrap_err().to_string();
    assert_eq!(error, "route `/a`: any method is routed twice");
}

#[test]
fn the_longest_path_above_takes_what_no_route_does() {
    let router = Router::new()
        .handle(Method::GET, "/api/ping", numbered(1))
        .handle(Method::GET, "/api/{name}/list", numbered(2))
        .below("/api/", numbered(3))
        .below("/api/v2/", numbered(4))
        .fallback(numbered(5));
    assert_eq!(router.check(), Ok(()));
    for (method, path, expected) in [
        (Method::GET, "/api/ping", "Some(1) "),
        (Method::GET, "/api/v2/list", "Some(2) name=v2"),
        (Method::PUT, "/api/v2/other", "Some(4) "),
        (Method::PUT, "/api/", "Some(3) "),
        (Method::GET, "/api/v2", "Some(3) "),
        (Method::GET, "/api", "Some(5) "),
    ] {
        assert_eq!(found(&router, method, path), expected, "{path}");
    }
    let error = |router: Router| router.check().unwrap_err().to_string();
    let twice = Router::new().below("/a/", numbered(1)).below("/a/", numbered(2));
    assert_eq!(error(twice), "route `/a/`: it is routed twice");
    for path in ["/a", "a/", "", "/{a}/", "/a?/"] {
        assert!(error(Router::new().below(path, numbered(1))).contains("has paths below"));
    }
}

#[test]
fn a_hosts_routes_come_first_and_leave_the_rest_to_the_others() {
    let own = Router::new().handle(Method::GET, "/", numbered(1)).handle(
        Method::GET,
        "/own",
        numbered(2),
    );
    let router = Router::new()
        .handle(Method::GET, "/", numbered(3))
        .handle(Method::GET, "/shared", numbered(4))
        .host("example.org", own)
        .host("*.example.org", Router::new().fallback(numbered(5)));
    assert_eq!(router.check(), Ok(()));
    for (host, path, expected) in [
        ("example.org:8080", "/", "Some(1) "),
        ("example.org", "/own", "Some(2) "),
        ("example.org", "/shared", "Some(4) "),
        ("example.org", "/none", "404"),
        ("other.org", "/", "Some(3) "),
        ("other.org", "/own", "404"),
        ("www.example.org", "/shared", "Some(5) "),
    ] {
        assert_eq!(found_at(&router, Method::GET, host, path), expected, "{host}{path}");
    }
    assert_eq!(
        found_at(&router, Method::PUT, "example.org", "/"),
        "405 GET, HEAD, OPTIONS",
        "the host's route is the one that was asked for"
    );
}

#[test]
fn hosts_that_cannot_be_are_named() {
    let error = |router: Router| router.check().unwrap_err().to_string();
    let wrong = Router::new().host("a:80", Router::new());
    assert_eq!(error(wrong), "route `a:80`: a host has no scheme and no port");
    let inner = Router::new().host("a", Router::new().get("b", |_| ""));
    assert_eq!(error(inner), "route `ab`: a path begins with a slash");
}

#[test]
fn what_is_found_has_a_name() {
    let mut router = Router::new()
        .get("/a", |_| "")
        .get("/users/{id}", |_| "")
        .below("/api/", numbered(1))
        .claim(|path| path == "/7", numbered(2))
        .host("example.org", Router::new().get("/own", |_| "").fallback(numbered(3)));
    assert_eq!(router.number(10), 10 + router.names().len() as u32);
    let name = |router: &Router, host: &str, method: Method, path: &str| {
        let (route, _) = router.find(None, &method, path.as_bytes(), || Some(host));
        router.name(route).unwrap_or_default()
    };
    for (host, method, path, expected) in [
        ("", Method::GET, "/users/7", "/users/{id}"),
        ("", Method::PUT, "/a", "/a"),
        ("", Method::PUT, "/api/7", "/api/*"),
        ("", Method::PUT, "/7", "(claimed)"),
        ("", Method::GET, "/b", ""),
        ("example.org", Method::GET, "/own", "example.org/own"),
        ("example.org", Method::GET, "/a", "example.org(fallback)"),
    ] {
        assert_eq!(name(&router, host, method, path), expected, "{host}{path}");
    }
    let mut router = router.fallback(numbered(1));
    router.number(RouteId::OTHERS.len() as u32);
    assert_eq!(name(&router, "", Method::GET, "/b"), "(fallback)");
}

#[test]
fn the_fallback_takes_what_is_left() {
    let router = Router::new().get("/a", |_| "").fallback(numbered(9));
    assert_eq!(found(&router, Method::PUT, "/b"), "Some(9) ");
}

#[test]
fn what_is_claimed_comes_after_routes_and_before_the_fallback() {
    let router = Router::new()
        .handle(Method::GET, "/1", numbered(1))
        .handle(Method::GET, "/{*path}", numbered(2))
        .claim(|path| path.starts_with("/1"), numbered(3))
        .fallback(numbered(4));
    for (method, path, expected) in [
        (Method::GET, "/1", "Some(1) "),
        (Method::PUT, "/1", "405 GET, HEAD, OPTIONS"),
        (Method::GET, "/12", "Some(2) path=12"),
        (Method::PUT, "/12", "Some(3) "),
        (Method::PUT, "/2", "405 GET, HEAD, OPTIONS"),
    ] {
        assert_eq!(found(&router, method, path), expected, "{path}");
    }
    let router = Router::new().claim(|path| path == "/1", numbered(3)).fallback(numbered(4));
    assert_eq!(found(&router, Method::GET, "/1"), "Some(3) ");
    assert_eq!(found(&router, Method::GET, "/2"), "Some(4) ");
}

#[test]
fn a_request_that_comes_again_finds_its_route_again() {
    let mut router = Router::new()
        .handle(Method::GET, "/a", numbered(1))
        .handle(Method::GET, "/users/{id}", numbered(2))
        .below("/api/", numbered(3))
        .claim(|path| path == "/7", numbered(4))
        .host("own.org", Router::new().handle(Method::GET, "/a", numbered(5)))
        .fallback(numbered(6));
    let mut marks = bolide_semantics::HeadMarks::default();
    let requests = [
        ("", Method::GET, "/a", "Some(1)"),
        ("", Method::GET, "/users/7", "Some(2)"),
        ("", Method::GET, "/users/8", "Some(2)"),
        ("", Method::PUT, "/api/7", "Some(3)"),
        ("", Method::PUT, "/7", "Some(4)"),
        ("own.org", Method::GET, "/a", "Some(5)"),
        ("own.org", Method::GET, "/b", "Some(6)"),
        ("", Method::PUT, "/a", "405"),
    ]
    .map(|request| (marks.make(), request));
    for first in [2, 100] {
        router.number(first);
        for _ in 0..2 {
            for (mark, (host, method, path, expected)) in &requests {
                let find = |mark| {
                    let (route, found) = match router.find_again(mark, method) {
                        Some((route, handler)) => (route, Found::Handler(handler, None)),
                        None => router.find(mark, method, path.as_bytes(), || Some(*host)),
                    };
                    let bytes = match &found {
                        Found::Handler(handler, _) => format!("{:?}", handler.body_bytes_max()),
                        _ => "405".to_owned(),
                    };
                    let count = match found {
                        Found::Handler(_, Some(parameters)) => parameters.len(),
                        _ => 0,
                    };
                    (route, bytes, count)
                };
                let fresh = find(None);
                assert_eq!(fresh.1, *expected, "{host}{path}");
                assert_eq!([find(Some(*mark)), find(Some(*mark))], [fresh.clone(), fresh]);
            }
        }
    }
}

/// A handler that knows the path and no more.
struct Plain;

impl Handler for Plain {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        request.path().to_owned().into()
    }

    fn uses_parameters(&self) -> bool {
        false
    }
}

#[test]
fn parameters_that_nobody_asks_for_are_not_looked_for_again() {
    let router = Router::new().handle(Method::GET, "/{*path}", Plain).handle(
        Method::GET,
        "/users/{id}",
        numbered(1),
    );
    let mut marks = bolide_semantics::HeadMarks::default();
    for (path, counts) in [("/a/b", [1, 0, 0]), ("/users/7", [1, 1, 1])] {
        let mark = marks.make();
        let mut routes = Vec::new();
        for count in counts {
            let (route, looked_for) = match router.find_again(Some(mark), &Method::GET) {
                Some((route, _)) => (route, 0),
                None => {
                    let path = path.as_bytes();
                    let (route, found) = router.find(Some(mark), &Method::GET, path, || None);
                    let Found::Handler(_, parameters) = found else { panic!("it is routed") };
                    (route, parameters.map_or(0, |parameters| parameters.len()))
                }
            };
            assert_eq!(looked_for, count, "{path}");
            routes.push(route);
        }
        assert!(routes.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

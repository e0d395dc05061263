use super::*;

fn found(router: &Router, method: Method, path: &str) -> String {
    found_at(router, method, "", path)
}

fn found_at(router: &Router, method: Method, host: &str, path: &str) -> String {
    let (head, mut parameters) = (head(method, host, path), None);
    match router.find(&head, &mut parameters).1 {
        Found::Handler(handler) => {
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
        Found::Disguised => "400".to_owned(),
    }
}

fn head(method: Method, host: &str, path: &str) -> Head {
    let mut head = Head::default();
    head.set_method(method);
    let path = head.push_text(path.as_bytes());
    head.set_path(path);
    let host = head.push_text(host.as_bytes());
    head.set_authority(host);
    head
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
        assert!(error(Router::new().below(path, numbered(1))).contains("a path prefix"));
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
    assert_eq!(error(wrong), "route `a:80`: a host must not have a scheme or a port");
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
        let head = head(method, host, path);
        let (route, _) = router.find(&head, &mut None);
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
fn a_path_that_means_another_route_when_it_is_decoded_is_disguised() {
    let router = || {
        Router::new()
            .fallback(numbered(1))
            .below("/admin/", numbered(2))
            .get("/users/{id}", |_| "")
            .host("b", Router::new().below("/own/", numbered(3)))
            .first(Router::new().get("/early", |_| ""))
            .refuse_disguised_paths()
    };
    for (host, path, is_disguised) in [
        ("a", "/%61dmin/x", true),
        ("a", "//admin/x", true),
        ("a", "/%2fadmin/x", true),
        ("a", "/admin%2Fx", true),
        ("a", "/\\admin/x", true),
        ("a", "/%65arly", true),
        ("a", "/admin/%61?%61", false),
        ("a", "/~%7euser//x", false),
        ("a", "/users/%61", false),
        ("a", "/?/%61dmin/", false),
        ("a", "/%6fwn/", false),
        ("b", "/%6fwn/", true),
    ] {
        let head = head(Method::GET, host, path);
        assert_eq!(router().is_disguised(&head), is_disguised, "{host}{path}");
    }
    assert!(!Router::new().below("/admin/", numbered(1)).is_disguised(&head(
        Method::GET,
        "",
        "/%61dmin/"
    )));
}

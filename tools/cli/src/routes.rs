//! Routes of `bolide serve`: built-in, directories, upstreams, redirects and fixed responses.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bolide::files::StaticFiles;
use bolide::http::{HeaderValue, Method, StatusCode};
use bolide::proxy::{ProxySettings, ReverseProxy};
use bolide::server::Alternatives;
use bolide::{Bytes, Handler, Reply, Request, Response, Router};

use bolide::websocket::Options;
use bolide_access::Access;
use bolide_acme::Responses;
use bolide_measurement::{Ndt7Settings, Settings};
use bolide_site::{Conditions, Redirect, Rules, Scheme, Tried};

use crate::{files, proxy};

/// Arguments about routes.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: files::Arguments,

    #[command(flatten)]
    proxy: proxy::Arguments,

    /// Add the built-in routes to --root or --proxy. They take precedence over files and upstreams.
    #[arg(long)]
    builtin: bool,

    /// Write a file ndt7-….json.gz for each ndt7 speed test into this directory, which must exist.
    #[arg(long, value_name = "DIR")]
    ndt7_archive: Option<PathBuf>,
}

/// One response, for some hosts and a path.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// In lower case; none: for any host.
    pub(crate) hosts: Vec<String>,
    /// With a slash at its end: for everything below it.
    pub(crate) path: String,
    pub(crate) action: RouteAction,
    pub(crate) site: SiteRules,
    /// Conditions for clients, and limits of their requests.
    pub(crate) access: Access,
}

/// Additions of a route: when it is there, and what it edits.
#[derive(Debug, Clone, Default)]
pub(crate) struct SiteRules {
    pub(crate) conditions: Conditions,
    pub(crate) rules: Arc<Rules>,
}

impl SiteRules {
    /// Leaves compression to the handler itself. Whether it was wanted.
    pub(crate) fn take_compression(&mut self) -> bool {
        let is_wanted = self.rules.compression.is_some();
        if is_wanted {
            Arc::make_mut(&mut self.rules).compression = None;
        }
        is_wanted
    }
}

impl Route {
    /// Returns whether it comes before the routes of every host.
    pub(crate) fn comes_first(&self) -> bool {
        self.site.conditions.come_first()
    }

    /// Returns whether its handler responds to every request of its host and path, and nothing is checked or edited.
    fn is_plain(&self) -> bool {
        self.site.conditions.is_empty() && self.site.rules.is_empty() && self.access.is_open()
    }
}

/// Response of a route.
#[derive(Debug, Clone)]
pub(crate) enum RouteAction {
    Builtin(Builtin),
    /// Files, and the number of the upstreams that are asked for what has no file.
    Files {
        files: StaticFiles,
        other: Option<usize>,
    },
    /// The number of the upstreams.
    Proxy(usize),
    Redirect(Redirect),
    Respond {
        text: Bytes,
        media_type: HeaderValue,
        status: StatusCode,
        retry_after: Option<HeaderValue>,
    },
}

/// Which of the built-in routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    All,
    /// `/ping` alone.
    Ping,
}

/// The routes of a server, made anew for each worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    routes: Arc<[Route]>,
    /// Proxies that routes name by number.
    proxies: Arc<[ProxySettings]>,
    builtin: Settings,
    /// Responses for a CA by HTTP that validates names.
    responses: Option<Responses>,
    /// Rules for what no route takes.
    defaults: Arc<Rules>,
}

impl Arguments {
    /// Returns whether they say what is answered.
    pub(crate) fn are_given(&self) -> bool {
        self.files.are_given() || self.proxy.are_given()
    }

    /// Opens the root, and looks up the upstreams. None when neither is given.
    pub(crate) fn routes(&self) -> Result<Option<Routes>, String> {
        let settings = self.proxy.settings()?;
        let other = settings.is_some().then_some(0);
        let below = |action| Route {
            hosts: Vec::new(),
            path: "/".to_owned(),
            action,
            site: SiteRules::default(),
            access: Access::default(),
        };
        let mut routes = Vec::new();
        match (self.files.files()?, other) {
            (None, None) => return Ok(None),
            (Some(files), other) => {
                if other.is_none() && !self.builtin {
                    routes.push(below(RouteAction::Builtin(Builtin::Ping)));
                }
                routes.push(below(RouteAction::Files { files, other }));
            }
            (None, Some(number)) => routes.push(below(RouteAction::Proxy(number))),
        }
        if self.builtin {
            routes.push(below(RouteAction::Builtin(Builtin::All)));
        }
        Ok(Some(Routes::new(routes, settings.into_iter().collect())))
    }

    /// Fails when nothing says what the route responds with.
    pub(crate) fn check_alone(&self) -> Result<(), String> {
        if self.builtin && !self.are_given() {
            let what =
                "--builtin needs --root or --proxy: without them, the built-in routes are on";
            return Err(what.to_owned());
        }
        Ok(())
    }

    /// Returns what ndt7's tests leave behind.
    pub(crate) fn ndt7(&self) -> Result<Ndt7Settings, String> {
        if let Some(directory) = &self.ndt7_archive
            && !directory.is_dir()
        {
            return Err(format!(
                "--ndt7-archive {}: directory doesn't exist (create it first)",
                directory.display()
            ));
        }
        Ok(Ndt7Settings { archive: self.ndt7_archive.clone() })
    }
}

impl Routes {
    /// A path to try first: that of the site, or the one of the built-in routes that is made for it.
    pub(crate) fn path_to_try(&self) -> &'static str {
        let is_builtin = |route: &Route| matches!(route.action, RouteAction::Builtin(_));
        if self.routes.iter().all(is_builtin) { "/ping" } else { "/" }
    }

    pub(crate) fn new(routes: Vec<Route>, proxies: Vec<ProxySettings>) -> Self {
        Self { routes: routes.into(), proxies: proxies.into(), ..Self::default() }
    }

    /// The same with rules for responses to requests that no route takes.
    pub(crate) fn with_defaults(self, defaults: &Rules) -> Self {
        Self { defaults: Arc::new(defaults.clone()), ..self }
    }

    /// The same with settings for ndt7.
    pub(crate) fn with_ndt7(self, ndt7: Ndt7Settings) -> Self {
        Self { builtin: Settings { ndt7, ..self.builtin }, ..self }
    }

    /// The same whose WebSocket connections are kept so.
    pub(crate) fn with_websocket(self, websocket: Options) -> Self {
        Self { builtin: Settings { websocket, ..self.builtin }, ..self }
    }

    /// The same with responses for a CA that validates names, before all other routes.
    pub(crate) fn with_responses(self, responses: Option<&Responses>) -> Self {
        Self { responses: responses.cloned(), ..self }
    }

    /// The built-in routes alone.
    pub(crate) fn builtin() -> Self {
        let action = RouteAction::Builtin(Builtin::All);
        let (hosts, path) = (Vec::new(), "/".to_owned());
        let (site, access) = (SiteRules::default(), Access::default());
        Self::new(vec![Route { hosts, path, action, site, access }], Vec::new())
    }

    /// Each of them.
    pub(crate) fn all(&self) -> &[Route] {
        &self.routes
    }

    /// How many routes there are, and how many upstreams they ask.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.routes.len(), self.proxies.len())
    }

    /// Returns what each route edits.
    #[cfg(test)]
    pub(crate) fn rules(&self) -> Vec<Arc<Rules>> {
        self.routes.iter().map(|route| Arc::clone(&route.site.rules)).collect()
    }

    /// The hosts of routes that TLS connections reach.
    pub(crate) fn secure_hosts(&self) -> Vec<&str> {
        let is_plain = |route: &&Route| route.site.conditions.scheme != Some(Scheme::Http);
        let routes = self.routes.iter().filter(is_plain);
        let mut hosts: Vec<&str> =
            routes.flat_map(|route| route.hosts.iter().map(String::as_str)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// The same, whose proxies begin with what those `before` have found out.
    pub(crate) fn after(&self, before: &[ProxySettings]) -> Self {
        let mut proxies = self.proxies.to_vec();
        ProxySettings::take_over(&mut proxies, before);
        Self { proxies: proxies.into(), ..self.clone() }
    }

    /// The proxies among what is answered, for those who count.
    pub(crate) fn proxies(&self) -> &[ProxySettings] {
        &self.proxies
    }

    /// One worker's router.
    pub(crate) fn router(&self) -> Router {
        let proxies: Vec<Proxy> = self.proxies.iter().map(Proxy::new).collect();
        let mut router = self.tier(false, &proxies);
        if self.routes.iter().any(|route| !route.access.is_open()) {
            router = router.refuse_disguised_paths();
        }
        if !self.defaults.is_empty() {
            let never = |_: &mut Request<'_>| Response::error(StatusCode::NOT_FOUND);
            router = router.refusals(self.defaults.apply(Rc::new(never)));
        }
        let comes_first = self.routes.iter().any(Route::comes_first);
        let tier = comes_first.then(|| self.tier(true, &proxies));
        let first = match &self.responses {
            Some(responses) => Some(tier.unwrap_or_default().first(validation(responses))),
            None => tier,
        };
        match first {
            Some(first) => router.first(first),
            None => router,
        }
    }

    /// The routes that come before all others, or those others.
    fn tier(&self, is_first: bool, proxies: &[Proxy]) -> Router {
        let of_tier = self.routes.iter().filter(|route| route.comes_first() == is_first);
        let of_tier: Vec<&Route> = of_tier.collect();
        let mut router = self.of_host(&of_tier, None, proxies);
        let mut hosts: Vec<&str> =
            of_tier.iter().flat_map(|route| route.hosts.iter().map(String::as_str)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            router = router.host(host, self.of_host(&of_tier, Some(host), proxies));
        }
        router
    }

    /// The routes of one host; none: of any.
    fn of_host(&self, of_tier: &[&Route], host: Option<&str>, proxies: &[Proxy]) -> Router {
        let is_of_host = |route: &&&Route| match host {
            None => route.hosts.is_empty(),
            Some(host) => route.hosts.iter().any(|own| own == host),
        };
        let own: Vec<&Route> = of_tier.iter().filter(is_of_host).copied().collect();
        let has_files = own
            .iter()
            .any(|route| route.path == "/" && matches!(route.action, RouteAction::Files { .. }));
        let mut router = Router::new();
        // Theirs are exact paths: they win over what stands above them.
        for route in &own {
            router = match route.action {
                RouteAction::Builtin(Builtin::Ping) => bolide_measurement::ping(router),
                RouteAction::Builtin(Builtin::All) if has_files => {
                    bolide_measurement::endpoints_with(router, &self.builtin)
                }
                RouteAction::Builtin(Builtin::All) => {
                    bolide_measurement::routes_with(router, &self.builtin)
                }
                _ => router,
            };
        }
        let has_builtin = own.iter().any(|route| matches!(route.action, RouteAction::Builtin(_)));
        let has_below = own.iter().any(|route| route.path != "/" && route.path.ends_with('/'));
        // As routes of their own, files can be next to the built-in ones; but they would win over
        // what else stands above a path.
        let files_are_routes = has_builtin && !has_below;
        // These are in the router already.
        let is_builtin = |route: &&Route| matches!(route.action, RouteAction::Builtin(_));
        let own: Vec<&Route> = own.into_iter().filter(|route| !is_builtin(route)).collect();
        for (at, route) in own.iter().enumerate() {
            let bare = route.path.trim_end_matches('/');
            let bare_is_free = !own.iter().any(|other| other.path == bare);
            let together: Vec<&Route> =
                own.iter().filter(|other| other.path == route.path).copied().collect();
            if together.len() == 1 && route.is_plain() {
                router = add(router, route, proxies, bare_is_free, files_are_routes);
            } else if !own[..at].iter().any(|before| before.path == route.path) {
                router = add_ruled(router, &together, proxies, bare_is_free);
            }
        }
        router
    }
}

/// The responses of `http-01` challenges (RFC 8555 §8.3).
fn validation(responses: &Responses) -> Router {
    let responses = responses.clone();
    let pattern = format!("{}{{token}}", Responses::PATH);
    Router::new().get(&pattern, move |request: &mut Request<'_>| {
        let content = request.param("token").and_then(|token| responses.get(&token));
        match content {
            Some(content) => {
                let media_type = HeaderValue::from_static("application/octet-stream");
                Response::with_type(media_type, content)
            }
            None => {
                Response::text("no challenge has this token\n").with_status(StatusCode::NOT_FOUND)
            }
        }
    })
}

/// Adds one route to a worker's router. `bare_is_free`: no other responds to its path without the slash;
/// `files_are_routes`: files at `/` are added as routes, not as what is left.
fn add(
    mut router: Router,
    route: &Route,
    proxies: &[Proxy],
    bare_is_free: bool,
    files_are_routes: bool,
) -> Router {
    let path = &route.path;
    let RouteAction::Files { files, other } = &route.action else {
        return match handler(route, proxies) {
            Some(handler) => put(router, path, Shared(handler)),
            None => router,
        };
    };
    let mut other: Option<Rc<dyn Handler>> =
        other.map(|number| Rc::new(proxies[number].clone()) as Rc<dyn Handler>);
    if path == "/" && other.is_none() {
        if files_are_routes {
            return files.routes(router);
        }
        // A file wins over what the built-in routes claim.
        other = router.take_rest().map(|rest| Rc::new(rest) as Rc<dyn Handler>);
    }
    let handler = files.handler(other);
    let bare = path.trim_end_matches('/');
    if bare.is_empty() || !bare_is_free {
        return put(router, path, handler);
    }
    router.handle(Method::GET, bare, handler.clone()).below(path, handler)
}

/// Adds routes with the same path, of which some have conditions, rules or limits of access.
fn add_ruled(
    mut router: Router,
    routes: &[&Route],
    proxies: &[Proxy],
    bare_is_free: bool,
) -> Router {
    let mut tried = Tried::default();
    for route in routes {
        let Some(mut handler) = handler(route, proxies) else { continue };
        if route.site.rules.edits_requests() {
            handler = Rc::new(route.site.rules.edit(handler));
        }
        // What it looks at is what the client has sent, not what rules make of it.
        if !route.access.is_open() {
            handler = Rc::new(route.access.guard(Shared(handler)));
        }
        // Around it, so that they hold for refusals, too.
        if !route.site.rules.is_empty() {
            handler = Rc::new(route.site.rules.apply(handler));
        }
        if let [only] = routes
            && only.site.conditions.is_empty()
        {
            return put_files(router, route, Shared(handler), bare_is_free);
        }
        tried.add(route.site.conditions.clone(), handler);
    }
    let handler = Shared(Rc::new(tried));
    match routes.iter().find(|route| matches!(route.action, RouteAction::Files { .. })) {
        Some(route) => router = put_files(router, route, handler, bare_is_free),
        None => router = put(router, &routes[0].path, handler),
    }
    router
}

/// Adds the handler of a route; that of files also responds to their path without the slash.
fn put_files(router: Router, route: &Route, handler: Shared, bare_is_free: bool) -> Router {
    let bare = route.path.trim_end_matches('/');
    if bare_is_free && !bare.is_empty() && matches!(route.action, RouteAction::Files { .. }) {
        return put(router.any(bare, handler.clone()), &route.path, handler);
    }
    put(router, &route.path, handler)
}

/// The handler of a route, without its rules; none for built-in routes, which are several.
fn handler(route: &Route, proxies: &[Proxy]) -> Option<Rc<dyn Handler>> {
    Some(match &route.action {
        RouteAction::Builtin(_) => return None,
        RouteAction::Files { files, other } => {
            let other = other.map(|number| Rc::new(proxies[number].clone()) as Rc<dyn Handler>);
            if route.site.rules.rewrite.is_empty() {
                Rc::new(files.handler(other))
            } else {
                // What is rewritten is a path below the root.
                Rc::new(files.clone().under("/").handler(other))
            }
        }
        RouteAction::Proxy(number) => Rc::new(proxies[*number].clone()),
        RouteAction::Redirect(redirect) => Rc::new(redirect.clone()),
        RouteAction::Respond { text, media_type, status, retry_after } => {
            let (text, media_type, status) = (text.clone(), media_type.clone(), *status);
            let retry_after = retry_after.clone();
            Rc::new(move |_: &mut Request<'_>| {
                let response =
                    Response::with_type(media_type.clone(), text.clone()).with_status(status);
                match &retry_after {
                    Some(time) => response.header("retry-after", time.clone()),
                    None => response,
                }
            })
        }
    })
}

/// Answers a path, or everything below it, by any method.
fn put(router: Router, path: &str, handler: impl Handler) -> Router {
    match path {
        // What the built-in routes claim comes before it.
        "/" => router.fallback(handler),
        path if path.ends_with('/') => router.below(path, handler),
        path => router.any(path, handler),
    }
}

/// One worker's part of a reverse proxy, in several routes.
#[derive(Debug, Clone)]
struct Proxy(Rc<ReverseProxy>);

impl Proxy {
    fn new(settings: &ProxySettings) -> Self {
        Self(Rc::new(ReverseProxy::new(settings)))
    }
}

impl Handler for Proxy {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        self.0.handle(request)
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.0.body_bytes_max()
    }
}

/// A handler of several routes.
#[derive(Clone)]
struct Shared(Rc<dyn Handler>);

impl Handler for Shared {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        self.0.handle(request)
    }

    fn takes(&self, path: &str) -> bool {
        self.0.takes(path)
    }

    fn takes_whole_bodies(&self) -> bool {
        self.0.takes_whole_bodies()
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.0.body_bytes_max()
    }

    fn on_refusal(&self, request: &mut Request<'_>) {
        self.0.on_refusal(request);
    }

    fn alternatives(&self) -> Option<&dyn Alternatives> {
        self.0.alternatives()
    }
}

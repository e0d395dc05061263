//! Routes of `bolide serve`: built-in, directories, upstreams, redirects and fixed responses.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use bolide::{
    Bytes, Handler, HeaderValue, Method, ProxySettings, Reply, Request, Response, ReverseProxy,
    Router, StaticFiles, StatusCode,
};

use bolide::websocket::Options;
use bolide_access::Access;
use bolide_measurement::{Ndt7Settings, Settings};

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

/// One answer, for some hosts and a path.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// In lower case; none: for any host.
    pub(crate) hosts: Vec<String>,
    /// With a slash at its end: for everything below it.
    pub(crate) path: String,
    pub(crate) answer: Answer,
    /// Who may send requests, and how many.
    pub(crate) access: Access,
}

/// What a route answers with.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Builtin(Builtin),
    /// Files, and the number of the upstreams that are asked for what has no file.
    Files {
        files: StaticFiles,
        other: Option<usize>,
    },
    /// The number of the upstreams.
    Proxy(usize),
    Redirect {
        to: String,
        status: StatusCode,
    },
    Respond {
        text: Bytes,
        media_type: HeaderValue,
        status: StatusCode,
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
    /// What routes name by number.
    proxies: Arc<[ProxySettings]>,
    builtin: Settings,
}

impl Arguments {
    /// Whether they say what is answered.
    pub(crate) fn are_given(&self) -> bool {
        self.files.are_given() || self.proxy.are_given()
    }

    /// Opens the root, and looks up the upstreams. None when neither is given.
    pub(crate) fn routes(&self) -> Result<Option<Routes>, String> {
        let settings = self.proxy.settings()?;
        let other = settings.is_some().then_some(0);
        let below = |answer| Route {
            hosts: Vec::new(),
            path: "/".to_owned(),
            answer,
            access: Access::default(),
        };
        let mut routes = Vec::new();
        match (self.files.files()?, other) {
            (None, None) => return Ok(None),
            (Some(files), other) => {
                if other.is_none() && !self.builtin {
                    routes.push(below(Answer::Builtin(Builtin::Ping)));
                }
                routes.push(below(Answer::Files { files, other }));
            }
            (None, Some(number)) => routes.push(below(Answer::Proxy(number))),
        }
        if self.builtin {
            routes.push(below(Answer::Builtin(Builtin::All)));
        }
        Ok(Some(Routes::new(routes, settings.into_iter().collect())))
    }

    /// What is wrong when nothing else says what is answered.
    pub(crate) fn check_alone(&self) -> Result<(), String> {
        if self.builtin && !self.are_given() {
            let what =
                "--builtin needs --root or --proxy: without them, the built-in routes are on";
            return Err(what.to_owned());
        }
        Ok(())
    }

    /// What ndt7's tests leave behind.
    pub(crate) fn ndt7(&self) -> Result<Ndt7Settings, String> {
        if let Some(folder) = &self.ndt7_archive
            && !folder.is_dir()
        {
            return Err(format!(
                "--ndt7-archive {}: directory doesn't exist (create it first)",
                folder.display()
            ));
        }
        Ok(Ndt7Settings { archive: self.ndt7_archive.clone() })
    }
}

impl Routes {
    pub(crate) fn new(routes: Vec<Route>, proxies: Vec<ProxySettings>) -> Self {
        Self { routes: routes.into(), proxies: proxies.into(), builtin: Settings::default() }
    }

    /// The same with settings for ndt7.
    pub(crate) fn with_ndt7(self, ndt7: Ndt7Settings) -> Self {
        Self { builtin: Settings { ndt7, ..self.builtin }, ..self }
    }

    /// The same whose WebSocket connections are kept so.
    pub(crate) fn with_websocket(self, websocket: Options) -> Self {
        Self { builtin: Settings { websocket, ..self.builtin }, ..self }
    }

    /// The built-in routes alone.
    pub(crate) fn builtin() -> Self {
        let answer = Answer::Builtin(Builtin::All);
        let (hosts, path, access) = (Vec::new(), "/".to_owned(), Access::default());
        Self::new(vec![Route { hosts, path, answer, access }], Vec::new())
    }

    /// How many routes there are, and how many upstreams they ask.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.routes.len(), self.proxies.len())
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
        let mut router = self.of_host(None, &proxies);
        let mut hosts: Vec<&str> =
            self.routes.iter().flat_map(|route| route.hosts.iter().map(String::as_str)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            router = router.host(host, self.of_host(Some(host), &proxies));
        }
        router
    }

    /// The routes of one host; none: of any.
    fn of_host(&self, host: Option<&str>, proxies: &[Proxy]) -> Router {
        let is_of_host = |route: &&Route| match host {
            None => route.hosts.is_empty(),
            Some(host) => route.hosts.iter().any(|own| own == host),
        };
        let own: Vec<&Route> = self.routes.iter().filter(is_of_host).collect();
        let has_files = own
            .iter()
            .any(|route| route.path == "/" && matches!(route.answer, Answer::Files { .. }));
        let mut router = Router::new();
        // Theirs are exact paths: they win over what stands above them.
        for route in &own {
            router = match route.answer {
                Answer::Builtin(Builtin::Ping) => bolide_measurement::ping(router),
                Answer::Builtin(Builtin::All) if has_files => {
                    bolide_measurement::endpoints_with(router, &self.builtin)
                }
                Answer::Builtin(Builtin::All) => {
                    bolide_measurement::routes_with(router, &self.builtin)
                }
                _ => router,
            };
        }
        let has_builtin = own.iter().any(|route| matches!(route.answer, Answer::Builtin(_)));
        let has_below = own.iter().any(|route| route.path != "/" && route.path.ends_with('/'));
        // As routes of their own, files know how to stand beside the built-in ones; but they would win over
        // what else stands above a path.
        let files_are_routes = has_builtin && !has_below;
        for route in &own {
            let bare = route.path.trim_end_matches('/');
            let bare_is_free = !own.iter().any(|other| other.path == bare);
            router = add(router, route, proxies, bare_is_free, files_are_routes);
        }
        router
    }
}

/// Adds one route to a worker's router. `bare_is_free`: no other answers its path without the slash;
/// `files_are_routes`: files at `/` are added as routes, not as what is left.
fn add(
    mut router: Router,
    Route { path, answer, access, .. }: &Route,
    proxies: &[Proxy],
    bare_is_free: bool,
    files_are_routes: bool,
) -> Router {
    match answer {
        Answer::Builtin(_) => router,
        Answer::Files { files, other } => {
            let mut other: Option<Rc<dyn Handler>> =
                other.map(|number| Rc::new(proxies[number].clone()) as Rc<dyn Handler>);
            if path == "/" && other.is_none() {
                if files_are_routes && access.is_open() {
                    return files.routes(router);
                }
                // A file wins over what the built-in routes claim.
                other = router.take_rest().map(|rest| Rc::new(rest) as Rc<dyn Handler>);
            }
            let handler = files.handler(other);
            let bare = path.trim_end_matches('/');
            if bare.is_empty() || !bare_is_free {
                return put(router, path, access, handler);
            }
            if access.is_open() {
                return router.handle(Method::GET, bare, handler.clone()).below(path, handler);
            }
            let handler = access.guard(handler);
            router.handle(Method::GET, bare, handler.clone()).below(path, handler)
        }
        Answer::Proxy(number) => put(router, path, access, proxies[*number].clone()),
        Answer::Redirect { to, status } => {
            let (to, status, path) = (to.clone(), *status, path.clone());
            put(router, &path.clone(), access, move |request: &mut Request<'_>| {
                Response::error(status).header("location", target(&to, &path, request))
            })
        }
        Answer::Respond { text, media_type, status } => {
            let (text, media_type, status) = (text.clone(), media_type.clone(), *status);
            put(router, path, access, move |_: &mut Request<'_>| {
                Response::with_type(media_type.clone(), text.clone()).with_status(status)
            })
        }
    }
}

/// Answers a path, or everything below it, by any method.
fn put(router: Router, path: &str, access: &Access, handler: impl Handler) -> Router {
    if access.is_open() {
        bare(router, path, handler)
    } else {
        bare(router, path, access.guard(handler))
    }
}

fn bare(router: Router, path: &str, handler: impl Handler) -> Router {
    match path {
        // What the built-in routes claim comes before it.
        "/" => router.fallback(handler),
        path if path.ends_with('/') => router.below(path, handler),
        path => router.any(path, handler),
    }
}

/// Where a request is sent instead: what stands below the one path is asked for below the other.
fn target(to: &str, path: &str, request: &Request<'_>) -> String {
    if !to.ends_with('/') || !path.ends_with('/') {
        return to.to_owned();
    }
    // Two slashes at the beginning would name another host.
    let rest = request.path().strip_prefix(path).unwrap_or_default().trim_start_matches('/');
    let query = request.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{to}{rest}{query}")
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

//! One worker's end: from memory at once, from the disk by way of the pool.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_semantics::{Conditions, decode_path};
use bolide_server::{Handler, Method, Reply, Request, Response, Router, StatusCode};
use hashbrown::HashMap;

use crate::body::Reader;
use crate::cache::{Cache, Kept};
use crate::entry::Entry;
use crate::flight::{Flight, Inbox, Landed, Total, Waiting, redirect};
use crate::load::Loaded;
use crate::response::{not_found, respond, unavailable, whole};
use crate::site::StaticFiles;

impl StaticFiles {
    /// Adds the files to a worker's router; an exact route wins over a file. Called once for each worker:
    /// each has a cache of its own. When the files stand at `/` and the router has a
    /// [fallback](Router::fallback) or [claims](Router::claim) already, these respond to what no file is for, and any
    /// method but GET and HEAD.
    #[must_use]
    pub fn routes(&self, mut router: Router) -> Router {
        let prefix = self.settings.prefix.as_str();
        if prefix.is_empty()
            && let Some(other) = router.take_rest()
        {
            return router.fallback(FileHandler::new(self, Some(Rc::new(other))));
        }
        let handler = FileHandler::new(self, None);
        let router = router.handle(Method::GET, &format!("{prefix}/"), handler.clone()).handle(
            Method::GET,
            &format!("{prefix}/{{*path}}"),
            handler.clone(),
        );
        if prefix.is_empty() { router } else { router.handle(Method::GET, prefix, handler) }
    }

    /// The files as one handler, for [`Router::below`] and [`Router::fallback`]: for each worker one. What no
    /// file answers goes to `other` if it [takes](Handler::takes) the path, and so does any method but GET and
    /// HEAD and any request with a body. Else it is answered here: 404 without a file, 405 for the method.
    #[must_use]
    pub fn handler(&self, other: Option<Rc<dyn Handler>>) -> impl Handler + Clone + use<> {
        FileHandler::new(self, other)
    }
}

/// The handler of all routes of one [`StaticFiles`] on one worker.
#[derive(Clone)]
pub(crate) struct FileHandler(Rc<Worker>);

struct Worker {
    site: Arc<StaticFiles>,
    inbox: Arc<Inbox>,
    waiting: Total,
    state: RefCell<State>,
    /// Handler of what no file is for.
    other: Option<Rc<dyn Handler>>,
}

struct State {
    ages: Ages,
    cache: Cache,
    flights: HashMap<Box<str>, Arc<Flight>, foldhash::fast::FixedState>,
}

/// Until when a file in memory must have been looked at to be served; worked out once for each turn of the
/// loop, because taking the difference of two instants costs as much as finding the file.
#[derive(Default)]
struct Ages {
    /// The turn.
    now: Option<Instant>,
    /// Looked at then or before, it is not served.
    stale: Option<Instant>,
    /// Looked at then or before, it is looked at again.
    old: Option<Instant>,
}

impl Ages {
    #[inline]
    fn at(&mut self, now: Instant, fresh: Duration) {
        if self.now != Some(now) {
            let stale = now.checked_sub(fresh);
            *self = Self { now: Some(now), stale, old: now.checked_sub(fresh / 2) };
        }
    }
}

impl fmt::Debug for FileHandler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FileHandler").field(&self.0.site).finish()
    }
}

impl FileHandler {
    pub(crate) fn new(site: &StaticFiles, other: Option<Rc<dyn Handler>>) -> Self {
        let settings = &site.settings;
        let cache = Cache::new(settings.limits.cache_bytes, settings.limits.cache_files_count);
        Self(Rc::new(Worker {
            site: Arc::new(site.clone()),
            inbox: Arc::default(),
            waiting: Arc::default(),
            state: RefCell::new(State {
                ages: Ages::default(),
                cache,
                flights: HashMap::default(),
            }),
            other,
        }))
    }
}

impl Handler for FileHandler {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let worker = &*self.0;
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if !is_read || request.has_body() {
            match worker.other(request) {
                Some(other) => return other.handle(request),
                None if !is_read => return Reply::Now(refuse(request.method())),
                None => {}
            }
        }
        worker.receive();
        let prefix = worker.site.settings.prefix.as_str();
        let path = request.path();
        let path = path.strip_prefix(prefix).unwrap_or(path);
        // A name in the cache has no escapes to decode: what is found is served, and the rest is looked
        // at more closely.
        if let Some(reply) = worker.respond_from_memory(path, request) {
            return reply;
        }
        if path.is_empty() {
            return Reply::Now(redirect(prefix, "", Some(request.head())));
        }
        worker.respond_from_disk(path, request)
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.0.other.as_ref().and_then(|other| other.body_bytes_max())
    }
}

/// Responds to what files don't do (RFC 9110 §9.3.7, §15.5.6).
#[cold]
fn refuse(method: &Method) -> Response {
    let response = if *method == Method::OPTIONS {
        Response::new(StatusCode::NO_CONTENT)
    } else {
        Response::error(StatusCode::METHOD_NOT_ALLOWED)
    };
    response.header("allow", "GET, HEAD, OPTIONS")
}

impl Worker {
    /// Takes what has landed.
    #[inline]
    fn receive(&self) {
        if let Some(landed) = self.inbox.take() {
            let mut state = self.state.borrow_mut();
            for Landed { name, loaded, asked } in landed {
                state.flights.remove(&name);
                match loaded {
                    Loaded::Entry(entry) => state.cache.insert(&name, entry, asked),
                    // What can't be read now may be again.
                    Loaded::Failed => {}
                    _ => state.cache.remove(&name),
                }
            }
        }
    }

    /// The response, if the file is in memory and was looked at lately.
    #[inline]
    fn respond_from_memory(&self, name: &str, request: &Request<'_>) -> Option<Reply> {
        if name.as_bytes().contains(&b'%') {
            return None;
        }
        self.of_name(name, request)
    }

    #[inline]
    fn of_name(&self, name: &str, request: &Request<'_>) -> Option<Reply> {
        let mut state = self.state.borrow_mut();
        let State { ages, cache, .. } = &mut *state;
        ages.at(request.now(), self.site.settings.limits.fresh);
        let Kept { entry, checked, .. } = cache.get(name)?;
        let checked = *checked;
        if ages.stale.is_some_and(|stale| checked <= stale) {
            return None;
        }
        let is_old = ages.old.is_some_and(|old| checked <= old);
        let reader = || self.reader(request);
        let response = if entry.offered.is_empty() && !Conditions::are_in(request.head()) {
            whole(&entry.variants[0], reader)
        } else {
            let conditions = Conditions::of(request.head());
            respond(entry, &conditions, request.method(), reader)
        };
        if is_old {
            let entry = Arc::clone(entry);
            self.refresh(&mut state, name, entry, request.now());
        }
        Some(Reply::Now(response))
    }

    fn reader(&self, request: &Request<'_>) -> Reader {
        Reader {
            offload: self.site.offload.clone(),
            pieces: Arc::clone(&self.site.pieces),
            waker: request.waker(),
        }
    }

    /// Has a file looked at before it gets too old, so that no request has to wait for that.
    #[cold]
    fn refresh(&self, state: &mut State, name: &str, known: Arc<Entry>, now: Instant) {
        if !state.flights.contains_key(name) {
            let flight = Arc::new(Flight::new(Vec::new()));
            // When the pool is full, it is looked at later.
            if self.send(name, &flight, Some(known), now) {
                state.flights.insert(name.into(), flight);
            }
        }
    }

    /// Asks the disk. All who ask for the same at the same time get one response.
    #[cold]
    fn respond_from_disk(&self, path: &str, request: &mut Request<'_>) -> Reply {
        let settings = &self.site.settings;
        let name = match decode_path(path) {
            Some(name) if !settings.hides(&name) => name,
            _ if self.other(request).is_some() => return self.pass_on(request),
            // An empty name is one that nothing has.
            _ if settings.missing.as_ref().is_some_and(|page| !page.is_fallback) => "".into(),
            _ => return Reply::Now(Response::error(StatusCode::NOT_FOUND)),
        };
        if name.len() != path.len()
            && let Some(reply) = self.of_name(&name, request)
        {
            return reply;
        }
        let mut state = self.state.borrow_mut();
        if let Some(page) = self.site.missing_now(&name, request.now()) {
            state.cache.remove(&name);
            drop(state);
            return self.missing(page.as_deref(), request);
        }
        let passes_on = self.other(request).is_some();
        let Some(mut waiting) =
            Waiting::of(request, &self.waiting, settings.limits.waiting_bytes, passes_on)
        else {
            return Reply::Now(unavailable());
        };
        if let Some(flight) = state.flights.get(&*name) {
            match flight.join(waiting) {
                Ok(()) => return self.later(request),
                // It has landed just now: the next look finds it, and this request takes another.
                Err(back) => waiting = back,
            }
        }
        let known = state.cache.get(&name).map(|kept| Arc::clone(&kept.entry));
        let flight = Arc::new(Flight::new(vec![waiting]));
        if self.send(&name, &flight, known, request.now()) {
            state.flights.insert(name.into(), flight);
            return self.later(request);
        }
        // The responder that waited says 500 when it is dropped, but this is said before.
        let waiting = flight.land();
        for one in waiting {
            one.land(&self.site, &name, &Loaded::Failed);
        }
        Reply::Later
    }

    /// The response where there is no file.
    fn missing(&self, page: Option<&Entry>, request: &mut Request<'_>) -> Reply {
        if self.other(request).is_some() {
            return self.pass_on(request);
        }
        let settings = &self.site.settings;
        let is_fallback = settings.missing.as_ref().is_some_and(|page| page.is_fallback);
        let Some(page) = page.filter(|_| is_fallback) else { return Reply::Now(not_found(page)) };
        let conditions = Conditions::of(request.head());
        Reply::Now(respond(page, &conditions, request.method(), || self.reader(request)))
    }

    /// Returns who answers this path if no file does.
    fn other(&self, request: &Request<'_>) -> Option<&Rc<dyn Handler>> {
        self.other.as_ref().filter(|other| other.takes(request.path()))
    }

    /// The pool will answer, or leave it to the other handler.
    fn later(&self, request: &Request<'_>) -> Reply {
        self.other(request).map_or(Reply::Later, |other| Reply::LaterOr(Rc::clone(other)))
    }

    /// The other handler answers at once.
    fn pass_on(&self, request: &mut Request<'_>) -> Reply {
        match self.other(request) {
            Some(other) => other.handle(request),
            None => Reply::Now(Response::error(StatusCode::NOT_FOUND)),
        }
    }

    /// Has the pool load a name and answer those who wait for it. Whether it takes that on.
    fn send(
        &self,
        name: &str,
        flight: &Arc<Flight>,
        known: Option<Arc<Entry>>,
        asked: Instant,
    ) -> bool {
        let (site, inbox) = (Arc::clone(&self.site), Arc::clone(&self.inbox));
        let flight = Arc::clone(flight);
        let name: Box<str> = name.into();
        let job = move || {
            let load = || site.load(&name, known.as_ref(), asked);
            // Those that wait have to be told, whatever went wrong.
            let loaded = catch_unwind(AssertUnwindSafe(load)).unwrap_or(Loaded::Failed);
            inbox.put(Landed { name: name.clone(), loaded: loaded.clone(), asked });
            for waiting in flight.land() {
                waiting.land(&site, &name, &loaded);
            }
        };
        self.site.offload.submit(job).is_ok()
    }
}

#[cfg(test)]
mod tests;

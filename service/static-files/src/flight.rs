//! A file on its way from the disk to a worker, and the requests that wait for it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bolide_semantics::{Conditions, Head};
use bolide_server::{Method, Request, Responder, Response, StatusCode, Waker};
use http::header::LOCATION;
use percent_encoding::utf8_percent_encode;

use crate::body::Reader;
use crate::entry::Entry;
use crate::listing::NOT_IN_PATH;
use crate::load::Loaded;
use crate::response::{not_found, respond, unavailable};
use crate::site::StaticFiles;

/// One request that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    responder: Responder,
    waker: Waker,
    is_head: bool,
    /// Another handler answers what no file does.
    passes_on: bool,
    /// The request's head, if it has conditions or a query: most have none, and wait by the thousand.
    head: Option<Box<Head>>,
    /// Counts what it holds, until it is dropped.
    _held: Held,
}

/// Memory of the requests that wait on one worker, in bytes.
pub(crate) type Total = Arc<AtomicUsize>;

#[derive(Debug)]
struct Held {
    bytes: usize,
    total: Total,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Memory of one waiting request in addition to its head, in bytes: itself and its handles.
const WAITING_ONE_BYTES: usize = 320;

impl Waiting {
    /// The request as one that waits, unless all that wait hold more than `bytes_max` then.
    pub(crate) fn of(
        request: &Request<'_>,
        total: &Total,
        bytes_max: usize,
        passes_on: bool,
    ) -> Option<Self> {
        let head = request.head();
        let says_more = !Conditions::of(head).is_empty() || request.query().is_some();
        let head = says_more.then(|| Box::new(head.clone()));
        let bytes = WAITING_ONE_BYTES + head.as_ref().map_or(0, |head| head.allocated_bytes());
        let before = total.fetch_add(bytes, Ordering::Relaxed);
        let held = Held { bytes, total: Arc::clone(total) };
        (before + bytes <= bytes_max).then(|| Self {
            responder: request.responder(),
            waker: request.waker(),
            is_head: *request.method() == Method::HEAD,
            passes_on,
            head,
            _held: held,
        })
    }

    /// Answers it.
    pub(crate) fn land(self, site: &StaticFiles, name: &str, loaded: &Loaded) {
        let Self { responder, waker, is_head, passes_on, head, _held } = self;
        let file = |entry: &Entry| {
            let method = if is_head { Method::HEAD } else { Method::GET };
            let conditions = head.as_deref().map(Conditions::of).unwrap_or_default();
            let (offload, pieces) = (site.offload.clone(), Arc::clone(&site.pieces));
            respond(entry, &conditions, &method, || Reader { offload, pieces, waker })
        };
        let is_fallback = site.settings.missing.as_ref().is_some_and(|page| page.is_fallback);
        let response = match loaded {
            Loaded::Entry(entry) => file(entry),
            Loaded::Directory => redirect(&site.settings.prefix, name, head.as_deref()),
            Loaded::Listing(html) => Response::html(html.clone()),
            Loaded::Missing(_) if passes_on => return responder.pass_on(),
            Loaded::Missing(Some(page)) if is_fallback => file(page),
            Loaded::Missing(page) => not_found(page.as_deref()),
            Loaded::Failed => unavailable(),
        };
        responder.respond(response);
    }
}

/// To the same path with a slash at its end. It is written anew from the decoded name, which begins
/// with one slash and no more: it can't lead to another host.
pub(crate) fn redirect(prefix: &str, name: &str, head: Option<&Head>) -> Response {
    let target = head.map(Head::path_and_query).unwrap_or_default();
    let query = target.find('?').map_or("", |at| &target[at..]);
    let path = utf8_percent_encode(name, NOT_IN_PATH);
    Response::error(StatusCode::MOVED_PERMANENTLY)
        .header(LOCATION, format!("{prefix}{path}/{query}"))
}

/// The requests that wait for one name. None when it has landed.
#[derive(Debug)]
pub(crate) struct Flight(Mutex<Option<Vec<Waiting>>>);

impl Flight {
    pub(crate) fn new(waiting: Vec<Waiting>) -> Self {
        Self(Mutex::new(Some(waiting)))
    }

    /// Waits too; gives the request back when the flight has landed.
    pub(crate) fn join(&self, waiting: Waiting) -> Result<(), Waiting> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(others) => {
                others.push(waiting);
                Ok(())
            }
            None => Err(waiting),
        }
    }

    /// Takes all that wait; none can join any more.
    pub(crate) fn land(&self) -> Vec<Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

/// Result of a load.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) name: Box<str>,
    pub(crate) loaded: Loaded,
    /// When the disk was asked, at the latest.
    pub(crate) asked: Instant,
}

/// Inbox in which one worker finds what has landed.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    has_mail: AtomicBool,
    landed: Mutex<Vec<Landed>>,
}

impl Inbox {
    pub(crate) fn put(&self, landed: Landed) {
        self.landed.lock().unwrap_or_else(PoisonError::into_inner).push(landed);
        self.has_mail.store(true, Ordering::Release);
    }

    /// Returns what has landed since; nearly always nothing, which costs one look.
    #[inline]
    pub(crate) fn take(&self) -> Option<Vec<Landed>> {
        if !self.has_mail.load(Ordering::Relaxed) {
            return None;
        }
        self.has_mail.store(false, Ordering::Relaxed);
        Some(std::mem::take(&mut *self.landed.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

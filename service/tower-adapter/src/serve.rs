//! From a listener and a service to a server that runs.

use std::future::{Future, IntoFuture, pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bolide_server::{Around, Error, Limits, Listener, Router, Server, Stopper, Tls};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tower_service::Service;

use crate::body::Body;
use crate::client::{Client, Extend};
use crate::handler::{Recipe, TowerHandler};
use crate::listener::IntoListener;
use crate::runtime::{Companion, start};
use crate::worker::Finish;

/// The limits with which services are served: those of the server, but that the size of request
/// bodies and the time until a response are left to the service and its layers.
#[must_use]
pub fn default_limits() -> Limits {
    Limits { body_bytes_max: u64::MAX, response_timeout: Duration::ZERO, ..Limits::default() }
}

/// Treatment of a handler's future when its client has gone before it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disconnect {
    /// It is dropped at once.
    Drop,
    /// It is completed as a task of the tokio runtime, and what it returns is dropped.
    Finish,
}

/// A server of a service, before it runs: await it, or [run](Self::run) it.
///
/// `S` is the service, `M` makes one for each worker.
#[must_use = "a server runs when it is awaited"]
pub struct Serve<S: Service<http::Request<Body>>, M> {
    listener: io::Result<Listener>,
    make: M,
    server: Server,
    limits: Limits,
    tls: Option<Tls>,
    extend: Vec<Extend>,
    informs: bool,
    disconnect: Disconnect,
    /// How a future is completed, for those that may leave their thread.
    finish: Option<Finish<S::Future>>,
    shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S: Service<http::Request<Body>>, M> std::fmt::Debug for Serve<S, M> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { listener, server, disconnect, .. } = self;
        let mut shown = formatter.debug_struct("Serve");
        shown.field("listener", listener).field("server", server).field("disconnect", disconnect);
        shown.finish_non_exhaustive()
    }
}

/// Clones a service for each worker. Made by [`serve`].
#[derive(Debug)]
pub struct Cloned<S>(Arc<Mutex<S>>);

impl<S> Clone for Cloned<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Makes the service of one worker, on its thread.
pub trait MakeWorkerService<S>: Clone + Send + Sync + 'static {
    /// The service.
    fn make(&self) -> S;
}

impl<S: Clone + Send + 'static> MakeWorkerService<S> for Cloned<S> {
    fn make(&self) -> S {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S, F: Fn() -> S + Clone + Send + Sync + 'static> MakeWorkerService<S> for F {
    fn make(&self) -> S {
        self()
    }
}

/// Serves `service` on what `listener` accepts: HTTP/1.1 and HTTP/2.
///
/// The service is cloned once for each worker and then for each request, as tower demands. Its
/// futures run on the worker that has the connection, inside the tokio runtime of the caller, or one
/// that is started.
///
/// ```no_run
/// # async fn example<S>(app: S) -> std::io::Result<()>
/// # where
/// #     S: tower_service::Service<
/// #             http::Request<bolide_tower_adapter::Body>,
/// #             Response = http::Response<bolide_tower_adapter::Body>,
/// #         > + Clone + Send + 'static,
/// #     S::Future: Send,
/// # {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// bolide_tower_adapter::serve(listener, app).await
/// # }
/// ```
pub fn serve<L, S, B>(listener: L, service: S) -> Serve<S, Cloned<S>>
where
    L: IntoListener,
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body,
{
    let finish: Finish<S::Future> = |runtime, mut future| {
        runtime.spawn(poll_fn(move |cx| match future.get() {
            Some(future) => future.poll(cx).map(drop),
            None => Poll::Ready(()),
        }));
    };
    Serve::new(listener, Cloned(Arc::new(Mutex::new(service))), Some(finish))
}

/// As [`serve`], with a service that need not be `Send`: `make` is called on each worker's thread, at
/// its first request.
pub fn serve_with<L, F, S, B>(listener: L, make: F) -> Serve<S, F>
where
    L: IntoListener,
    F: Fn() -> S + Clone + Send + Sync + 'static,
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    B: http_body::Body,
{
    Serve::new(listener, make, None)
}

/// As [`serve`] on a plain thread: starts a tokio runtime and returns after SIGTERM or SIGINT, when
/// open exchanges are complete.
///
/// # Errors
///
/// As [`Serve::run`].
pub fn run<L, S, B>(listener: L, service: S) -> io::Result<()>
where
    L: IntoListener,
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body + 'static,
{
    serve(listener, service).run()
}

impl<S: Service<http::Request<Body>>, M> Serve<S, M> {
    fn new(listener: impl IntoListener, make: M, finish: Option<Finish<S::Future>>) -> Self {
        Self {
            listener: listener.into_listener(),
            make,
            server: Server::new(),
            limits: default_limits(),
            tls: None,
            extend: Vec::new(),
            informs: false,
            disconnect: Disconnect::Drop,
            finish,
            shutdown: None,
        }
    }

    /// How many workers: threads, each with an event loop. Default: one per core.
    pub fn workers(mut self, workers: usize) -> Self {
        self.server = self.server.workers(workers);
        self
    }

    /// The limits. Default: [`default_limits`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Speaks TLS on the listener: HTTP/2 and HTTP/1.1 by ALPN.
    pub fn tls(mut self, tls: &Tls) -> Self {
        self.tls = Some(tls.clone());
        self
    }

    /// How long open exchanges may go on after a shutdown was asked for. Default: 30 s.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.server = self.server.drain(drain);
        self
    }

    /// Anything else that the builder of servers can do, such as further addresses.
    pub fn server(mut self, change: impl FnOnce(Server) -> Server) -> Self {
        self.server = change(self.server);
        self
    }

    /// Puts what `make` returns into the extensions of each request: the client's address, facts of
    /// its TLS handshake. With axum, `|client| client.address().map(ConnectInfo)` makes the extractor
    /// `ConnectInfo<SocketAddr>` work.
    pub fn extension<T, F>(mut self, make: F) -> Self
    where
        T: Clone + Send + Sync + 'static,
        F: Fn(&Client<'_>) -> Option<T> + Send + Sync + 'static,
    {
        self.extend.push(Arc::new(move |client, extensions| {
            if let Some(value) = make(client) {
                extensions.insert(value);
            }
        }));
        self
    }

    /// Puts a [`TlsInfo`](crate::TlsInfo) into the extensions of each request that has come over TLS: version,
    /// ALPN, the server's name as the client asked for it, the client's certificate. Default: not, for putting
    /// anything there costs a request two allocations.
    pub fn tls_info(self) -> Self {
        self.extension(|client| client.tls_info())
    }

    /// Offers informational responses such as `103 Early Hints`: puts an
    /// [`Informational`](crate::Informational) into the extensions of each request. Default: not
    /// offered, for it costs every request two allocations.
    pub fn informational(mut self) -> Self {
        self.informs = true;
        self
    }

    /// Sets what becomes of futures whose client has gone. Default: [`Disconnect::Drop`]. Futures of
    /// [`serve_with`] can't leave their thread and are dropped whatever is said here.
    pub fn on_disconnect(mut self, disconnect: Disconnect) -> Self {
        self.disconnect = disconnect;
        self
    }

    /// Shuts down when `signal` is complete: nothing more is accepted, open exchanges are completed
    /// within the [drain time](Self::drain).
    pub fn with_graceful_shutdown<F>(mut self, signal: F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.shutdown = Some(Box::pin(signal));
        self
    }
}

impl<S, M, B> Serve<S, M>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    B: http_body::Body + 'static,
    M: MakeWorkerService<S>,
{
    /// Runs until SIGTERM or SIGINT, or until a [graceful shutdown](Self::with_graceful_shutdown) is
    /// asked for, on a tokio runtime of its own; then drains.
    ///
    /// # Errors
    ///
    /// When the server can't start, a worker fails, or this thread belongs to a runtime already.
    pub fn run(mut self) -> io::Result<()> {
        if Handle::try_current().is_ok() {
            let what = "this thread runs a tokio runtime already: await `serve` instead of `run`";
            return Err(io::Error::other(what));
        }
        let runtime = start()?;
        let asked = self.shutdown.take();
        let result = runtime.block_on(async move {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut asked = Box::pin(completed(asked));
            self.with_graceful_shutdown(poll_fn(move |cx| {
                let signalled =
                    terminate.poll_recv(cx).is_ready() || interrupt.poll_recv(cx).is_ready();
                if signalled { Poll::Ready(()) } else { asked.as_mut().poll(cx) }
            }))
            .await
        });
        runtime.shutdown_background();
        result
    }

    /// Starts the workers.
    fn start(self, runtime: &Handle) -> io::Result<Running> {
        let Self { listener, make, server, limits, tls, disconnect, finish, shutdown, .. } = self;
        let (extend, informs) = (self.extend, self.informs);
        let body_bytes_max = limits.body_bytes_max;
        let finish = finish.filter(|_| disconnect == Disconnect::Finish);
        let server = server.limits(limits).listener(listener?, tls.as_ref());
        // Entered once, and not for each request: that costs, and is shared by all workers.
        let entered = runtime.clone();
        let server = server.around_workers(Around::new(move |work| {
            let _entered = entered.enter();
            work();
        }));
        let runtime = runtime.clone();
        let running = server.start(move || {
            let make = make.clone();
            let recipe = Recipe {
                make: move || make.make(),
                runtime: runtime.clone(),
                finish,
                extend: extend.clone(),
                informs,
                body_bytes_max,
            };
            Router::new().fallback(TowerHandler::new(recipe))
        });
        let running = running.map_err(into_io)?;
        let stopper = StopAtDrop(Some(running.stopper()));
        let (sender, ended) = oneshot::channel();
        std::thread::Builder::new().name("joiner".into()).spawn(move || {
            // The waiting thread may have gone.
            let _ = sender.send(running.join().map(drop));
        })?;
        Ok(Running { stopper, ended, shutdown })
    }
}

impl<S, M, B> IntoFuture for Serve<S, M>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    B: http_body::Body + 'static,
    M: MakeWorkerService<S>,
{
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let companion = Companion::find();
        let started = companion.and_then(|companion| {
            let Some(handle) = companion.handle() else {
                return Err(io::Error::other("there is no tokio runtime"));
            };
            Ok((self.start(handle)?, companion))
        });
        Box::pin(async move {
            let (running, _companion) = started?;
            running.wait().await
        })
    }
}

/// A server that runs.
struct Running {
    stopper: StopAtDrop,
    ended: oneshot::Receiver<io::Result<()>>,
    shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Running {
    async fn wait(self) -> io::Result<()> {
        let Self { mut stopper, mut ended, shutdown } = self;
        let mut shutdown = pin!(completed(shutdown));
        poll_fn(move |cx| {
            if stopper.is_armed() && shutdown.as_mut().poll(cx).is_ready() {
                stopper.stop();
            }
            Pin::new(&mut ended).poll(cx).map(|result| result.unwrap_or_else(gone))
        })
        .await
    }
}

fn gone(_: oneshot::error::RecvError) -> io::Result<()> {
    Err(io::Error::other("the workers ended without a word"))
}

/// Completes with the future; without one, never.
async fn completed(future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>) {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

/// Shuts the server down when nothing waits for it any more.
struct StopAtDrop(Option<Stopper>);

impl StopAtDrop {
    fn is_armed(&self) -> bool {
        self.0.is_some()
    }

    fn stop(&mut self) {
        if let Some(stopper) = self.0.take() {
            stopper.shut_down();
        }
    }
}

impl Drop for StopAtDrop {
    fn drop(&mut self) {
        self.stop();
    }
}

fn into_io(error: Error) -> io::Error {
    match error {
        Error::System(error) => error,
        error => io::Error::other(error.to_string()),
    }
}

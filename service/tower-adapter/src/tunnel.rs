//! Upgrades: what follows a 101, or a 2xx to CONNECT, is a tunnel that the service takes over.
//!
//! Services take it as [`hyper::upgrade::OnUpgrade`], which only hyper can make. So for requests that
//! may be upgraded, and for these alone, an HTTP/1.1 server of hyper is given such a request in
//! memory. Its handle goes to the service; the bytes are relayed.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bolide_server::{Bytes, End, FieldName, Io, PieceQueue, Request, Version};
use bytes::BytesMut;
use http::{Method, StatusCode};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::oneshot;

use crate::Body;

/// How many bytes wait between the service and the worker, each way.
const PIPE_BYTES: usize = 64 * 1024;

/// The most that is relayed in one piece, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

/// The memory of an [`Offer`], in bytes: hyper's connection with its buffers, and the pipe to it.
pub(crate) const OFFER_BYTES: usize = 18 * 1024;

/// Request for hyper, so that it makes the handle.
const QUESTION: &[u8] =
    b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: tunnel\r\n\r\n";

/// The end of hyper's response; what follows belongs to the tunnel.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Returns whether a request may become a tunnel.
#[inline]
pub(crate) fn may_switch(request: &Request<'_>) -> bool {
    if *request.method() == Method::CONNECT {
        return true;
    }
    request.version() == Version::HTTP_11
        && !request.has_body()
        && request.head().get(FieldName::Upgrade).is_some()
        && request.header("connection").is_some_and(|options| {
            options.split(',').any(|option| option.trim().eq_ignore_ascii_case("upgrade"))
        })
}

/// A tunnel that the service may take.
pub(crate) struct Offer {
    hyper: Pin<Box<dyn Future<Output = ()>>>,
    far: DuplexStream,
    decision: oneshot::Sender<()>,
}

impl Offer {
    /// An offer, and the handle that goes into the request. `None` if hyper does not answer as it
    /// should.
    pub(crate) fn make(cx: &mut Context<'_>) -> Option<(Self, OnUpgrade)> {
        let (near, mut far) = tokio::io::duplex(PIPE_BYTES);
        let (decision, decided) = oneshot::channel();
        let handle = Rc::new(Cell::new(None));
        let to = Rc::clone(&handle);
        let decided = Cell::new(Some(decided));
        let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            to.set(request.extensions_mut().remove::<OnUpgrade>());
            let decided = decided.take();
            async move {
                let Some(decided) = decided else { return Err("asked twice") };
                decided.await.map_err(|_| "refused")?;
                let mut response = http::Response::new(Body::empty());
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                let fields = response.headers_mut();
                fields.insert("connection", http::HeaderValue::from_static("upgrade"));
                fields.insert("upgrade", http::HeaderValue::from_static("tunnel"));
                Ok(response)
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(near), service)
            .with_upgrades();
        let mut hyper: Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
            // How it ends shows in what the handle resolves to.
            let _ = connection.await;
        });
        let written = pin!(&mut far).poll_write(cx, QUESTION);
        if !matches!(written, Poll::Ready(Ok(count)) if count == QUESTION.len()) {
            return None;
        }
        let _ = hyper.as_mut().poll(cx);
        Some((Self { hyper, far, decision }, handle.take()?))
    }

    /// The service has answered that it takes the tunnel.
    pub(crate) fn accept(self) -> Tunnel {
        // It waits for nothing else.
        let _ = self.decision.send(());
        Tunnel {
            hyper: Some(self.hyper),
            far: self.far,
            head: Some(BytesMut::new()),
            inbound: PieceQueue::new(),
            inbound_ended: false,
            piped: 0,
            outbound: None,
            buffer: BytesMut::new(),
        }
    }
}

/// A tunnel between a client and the service that has taken it.
pub(crate) struct Tunnel {
    /// Until it has handed its end over.
    hyper: Option<Pin<Box<dyn Future<Output = ()>>>>,
    far: DuplexStream,
    /// Part of hyper's own response that has come.
    head: Option<BytesMut>,
    inbound: PieceQueue,
    inbound_ended: bool,
    /// How full the pipe to the service may have been, in bytes: it does not tell what is read of it, and keeps its memory.
    piped: usize,
    /// Bytes that could not be sent yet.
    outbound: Option<Bytes>,
    buffer: BytesMut,
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tunnel")
    }
}

impl Tunnel {
    /// Bytes from the client.
    pub(crate) fn push(&mut self, data: Bytes, end: End) {
        self.inbound.push(data);
        self.inbound.keep();
        self.inbound_ended |= end == End::Yes;
    }

    /// The memory of the tunnel with its pipe, in bytes; what waits for the pipe is the connection's.
    pub(crate) fn held_bytes(&self) -> usize {
        OFFER_BYTES + self.piped
    }

    /// Relays what can be relayed.
    pub(crate) fn relay(&mut self, cx: &mut Context<'_>, io: &mut Io<'_>) {
        if let Some(hyper) = &mut self.hyper
            && hyper.as_mut().poll(cx).is_ready()
        {
            self.hyper = None;
        }
        self.relay_inbound(cx, io);
        while io.is_sendable() {
            match self.read(cx) {
                Poll::Pending => return,
                Poll::Ready(None) => {
                    let _ = io.send(Bytes::new(), End::Yes);
                    return;
                }
                Poll::Ready(Some(data)) if data.is_empty() => {}
                Poll::Ready(Some(data)) => {
                    if let Err(data) = io.send(data, End::No) {
                        self.outbound = Some(data);
                    }
                }
            }
        }
    }

    fn relay_inbound(&mut self, cx: &mut Context<'_>, io: &mut Io<'_>) {
        while let Some(front) = self.inbound.front_mut() {
            match Pin::new(&mut self.far).poll_write(cx, front) {
                Poll::Pending => return,
                Poll::Ready(Ok(count)) if count > 0 => {
                    io.consumed(count);
                    self.piped = PIPE_BYTES.min(self.piped + count);
                    bytes::Buf::advance(front, count);
                }
                // The service has dropped its end: the rest is not wanted.
                Poll::Ready(_) => {
                    io.consumed(front.len());
                    front.clear();
                }
            }
            if front.is_empty() {
                self.inbound.pop();
            }
        }
        if self.inbound_ended {
            let _ = Pin::new(&mut self.far).poll_shutdown(cx);
        }
    }

    /// Returns what the service has written; `None` at its end.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(data) = self.outbound.take() {
            return Poll::Ready(Some(data));
        }
        self.buffer.resize(PIECE_BYTES, 0);
        let mut buffer = ReadBuf::new(&mut self.buffer);
        let polled = Pin::new(&mut self.far).poll_read(cx, &mut buffer);
        let count = buffer.filled().len();
        match polled {
            // The block is not held while the tunnel is silent.
            Poll::Pending => {
                self.buffer = BytesMut::new();
                Poll::Pending
            }
            Poll::Ready(Ok(())) if count > 0 => {
                let data = self.buffer.split_to(count).freeze();
                Poll::Ready(Some(self.without_head(data)))
            }
            Poll::Ready(_) => Poll::Ready(None),
        }
    }

    /// Takes hyper's response away from the front of what it wrote.
    fn without_head(&mut self, data: Bytes) -> Bytes {
        let Some(mut head) = self.head.take() else { return data };
        head.extend_from_slice(&data);
        match head.windows(HEAD_END.len()).position(|window| window == HEAD_END) {
            Some(at) => head.split_off(at + HEAD_END.len()).freeze(),
            None => {
                self.head = Some(head);
                Bytes::new()
            }
        }
    }
}

//! The deadline that a gRPC client has set, kept by the server.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bolide_server::{HeaderMap, HeaderValue};
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

/// The field by which a client says how long it waits.
const TIMEOUT: &str = "grpc-timeout";

/// `DEADLINE_EXCEEDED`, as gRPC numbers it.
const EXCEEDED: HeaderValue = HeaderValue::from_static("4");

/// The most digits that a timeout may have.
const DIGITS_MAX: usize = 8;

/// Ends calls whose `grpc-timeout` has passed: the future or the body is dropped, and the client told
/// `DEADLINE_EXCEEDED`. A timeout that can't be read is taken for none.
///
/// tonic's own server does this in its transport; on Bolide it is a service around tonic's routes:
/// `serve(listener, GrpcDeadline::new(routes.prepare()))`.
#[derive(Debug, Clone)]
pub struct GrpcDeadline<S> {
    service: S,
    longest: Option<Duration>,
}

impl<S> GrpcDeadline<S> {
    /// Keeps the deadlines of clients.
    #[must_use]
    pub fn new(service: S) -> Self {
        Self { service, longest: None }
    }

    /// Gives every call at most so long, whatever its client has asked for. Default: no such end.
    #[must_use]
    pub fn at_most(mut self, longest: Duration) -> Self {
        self.longest = Some(longest);
        self
    }
}

impl<S, Q, B> Service<http::Request<Q>> for GrpcDeadline<S>
where
    S: Service<http::Request<Q>, Response = http::Response<B>>,
    B: Body,
{
    type Response = http::Response<DeadlineBody<B>>;
    type Error = S::Error;
    type Future = DeadlineFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Q>) -> Self::Future {
        let asked = request.headers().get(TIMEOUT).and_then(|value| parse(value.as_bytes()));
        let limit = asked.into_iter().chain(self.longest).min();
        let alarm = limit.map(|limit| Box::pin(sleep(limit)));
        DeadlineFuture { call: self.service.call(request), alarm }
    }
}

/// The time that a timeout says: up to eight digits and a unit.
fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(count * 3600),
        b'M' => Duration::from_secs(count * 60),
        b'S' => Duration::from_secs(count),
        b'm' => Duration::from_millis(count),
        b'u' => Duration::from_micros(count),
        b'n' => Duration::from_nanos(count),
        _ => return None,
    })
}

/// When the deadline passes.
type Alarm = Option<Pin<Box<Sleep>>>;

fn has_rung(alarm: &mut Alarm, cx: &mut Context<'_>) -> bool {
    alarm.as_mut().is_some_and(|alarm| alarm.as_mut().poll(cx).is_ready())
}

fn exceeded() -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(4);
    fields.insert("grpc-status", EXCEEDED);
    fields.insert("grpc-message", HeaderValue::from_static("the deadline of the call has passed"));
    fields
}

pin_project! {
    /// A call that ends at its deadline.
    pub struct DeadlineFuture<F> {
        #[pin]
        call: F,
        alarm: Alarm,
    }
}

impl<F> fmt::Debug for DeadlineFuture<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DeadlineFuture").field("alarm", &self.alarm).finish_non_exhaustive()
    }
}

impl<F, B, E> Future for DeadlineFuture<F>
where
    F: Future<Output = Result<http::Response<B>, E>>,
    B: Body,
{
    type Output = Result<http::Response<DeadlineBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.call.poll(cx) {
            let alarm = this.alarm.take();
            let with = |body| DeadlineBody { body: Some(body), alarm };
            return Poll::Ready(result.map(|response| response.map(with)));
        }
        if !has_rung(this.alarm, cx) {
            return Poll::Pending;
        }
        let mut response = http::Response::new(DeadlineBody { body: None, alarm: None });
        *response.headers_mut() = exceeded();
        let kind = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Poll::Ready(Ok(response))
    }
}

pin_project! {
    /// A body that ends at the deadline of its call, by trailers that say so.
    pub struct DeadlineBody<B> {
        #[pin]
        body: Option<B>,
        alarm: Alarm,
    }
}

impl<B> fmt::Debug for DeadlineBody<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DeadlineBody").field("alarm", &self.alarm).finish_non_exhaustive()
    }
}

impl<B: Body> Body for DeadlineBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        if !has_rung(this.alarm, cx) {
            let frame = ready!(body.poll_frame(cx));
            return Poll::Ready(frame);
        }
        this.body.set(None);
        *this.alarm = None;
        Poll::Ready(Some(Ok(Frame::trailers(exceeded()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            None => SizeHint::with_exact(0),
            // The deadline may cut it short.
            Some(body) if self.alarm.is_some() && !body.is_end_stream() => SizeHint::new(),
            Some(body) => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_digits_and_a_unit() {
        let second = Duration::from_secs(1);
        for (text, time) in [
            ("2H", 7200 * second),
            ("3M", 180 * second),
            ("99999999S", 99_999_999 * second),
            ("5m", Duration::from_millis(5)),
            ("70u", Duration::from_micros(70)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(time), "{text}");
        }
        for text in ["", "S", "1", "1s", "-1S", "+1S", "1.5S", "123456789S", "1 S", "1SS"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}

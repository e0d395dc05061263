//! A gRPC service with one method of each kind, and its client; messages by prost, without protoc.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic::client;
use tonic::server::{Grpc, NamedService};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;
use tower::util::service_fn;

/// A number, in a request or a response.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Number {
    /// The number.
    #[prost(int64, tag = "1")]
    pub value: i64,
}

/// A number as a message.
#[must_use]
pub fn number(value: i64) -> Number {
    Number { value }
}

type Codec = ProstCodec<Number, Number>;
type Numbers = Pin<Box<dyn Stream<Item = Result<Number, Status>> + Send>>;

/// The most that is counted to in one response.
const COUNT_MAX: i64 = 1_000_000;

/// The service `bolide.Arithmetic`: `Square`, `CountTo`, `Sum` and `RunningSum`.
#[derive(Debug, Clone, Copy)]
pub struct Arithmetic;

impl NamedService for Arithmetic {
    const NAME: &'static str = "bolide.Arithmetic";
}

async fn square(request: Request<Number>) -> Result<Response<Number>, Status> {
    let value = request.into_inner().value;
    let squared = value.checked_mul(value);
    squared
        .map(|value| Response::new(number(value)))
        .ok_or_else(|| Status::out_of_range(format!("the square of {value} has too many digits")))
}

async fn count_to(request: Request<Number>) -> Result<Response<Numbers>, Status> {
    let last = request.into_inner().value;
    if !(0..=COUNT_MAX).contains(&last) {
        return Err(Status::invalid_argument(format!("{last} is not within 0 and {COUNT_MAX}")));
    }
    Ok(Response::new(stream::iter((1..=last).map(|value| Ok(number(value)))).boxed()))
}

async fn sum(request: Request<Streaming<Number>>) -> Result<Response<Number>, Status> {
    let mut numbers = request.into_inner();
    let mut sum = 0_i64;
    while let Some(number) = numbers.message().await? {
        sum = sum.wrapping_add(number.value);
    }
    Ok(Response::new(number(sum)))
}

async fn running_sum(request: Request<Streaming<Number>>) -> Result<Response<Numbers>, Status> {
    let sums = request.into_inner().scan(0_i64, |sum, next| {
        let next = next.map(|next| {
            *sum = sum.wrapping_add(next.value);
            number(*sum)
        });
        std::future::ready(Some(next))
    });
    Ok(Response::new(sums.boxed()))
}

impl<B> Service<http::Request<B>> for Arithmetic
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = Grpc::new(Codec::default());
            let method = request.uri().path().rsplit('/').next().unwrap_or_default();
            let response = match method {
                "Square" => grpc.unary(service_fn(square), request).await,
                "CountTo" => grpc.server_streaming(service_fn(count_to), request).await,
                "Sum" => grpc.client_streaming(service_fn(sum), request).await,
                "RunningSum" => grpc.streaming(service_fn(running_sum), request).await,
                other => Status::unimplemented(format!("there is no `{other}`")).into_http(),
            };
            Ok(response)
        })
    }
}

/// A client of [`Arithmetic`].
#[derive(Debug, Clone)]
pub struct Client(client::Grpc<Channel>);

/// Returns where a method is.
fn path(method: &'static str) -> PathAndQuery {
    PathAndQuery::from_static(method)
}

impl Client {
    /// A client that uses this channel.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self(client::Grpc::new(channel))
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))
    }

    /// One number for one.
    ///
    /// # Errors
    ///
    /// When the square is out of range, or the server can't be reached.
    pub async fn square(&mut self, request: Request<Number>) -> Result<Number, Status> {
        self.ready().await?;
        let path = path("/bolide.Arithmetic/Square");
        Ok(self.0.unary(request, path, Codec::default()).await?.into_inner())
    }

    /// Many numbers for one.
    ///
    /// # Errors
    ///
    /// When there are too many, or the server can't be reached.
    pub async fn count_to(&mut self, last: i64) -> Result<Streaming<Number>, Status> {
        self.ready().await?;
        let path = path("/bolide.Arithmetic/CountTo");
        let request = Request::new(number(last));
        Ok(self.0.server_streaming(request, path, Codec::default()).await?.into_inner())
    }

    /// One number for many.
    ///
    /// # Errors
    ///
    /// When the server can't be reached.
    pub async fn sum<S>(&mut self, numbers: S) -> Result<Number, Status>
    where
        S: Stream<Item = Number> + Send + 'static,
    {
        self.ready().await?;
        let path = path("/bolide.Arithmetic/Sum");
        let request = Request::new(numbers);
        Ok(self.0.client_streaming(request, path, Codec::default()).await?.into_inner())
    }

    /// A number for each.
    ///
    /// # Errors
    ///
    /// When the server can't be reached.
    pub async fn running_sum<S>(&mut self, numbers: S) -> Result<Streaming<Number>, Status>
    where
        S: Stream<Item = Number> + Send + 'static,
    {
        self.ready().await?;
        let path = path("/bolide.Arithmetic/RunningSum");
        let request = Request::new(numbers);
        Ok(self.0.streaming(request, path, Codec::default()).await?.into_inner())
    }
}

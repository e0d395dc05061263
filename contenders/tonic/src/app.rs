//! The application: a service as tonic's generator writes it, without protoc.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::Service;

/// Message that is sent, and comes back.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Payload {
    /// The content.
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) data: Bytes,
}

/// The service `bolide.Echo` with one method, `Unary`.
#[derive(Debug, Clone, Copy)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "bolide.Echo";
}

/// The method.
struct Unary;

type Reply = Pin<Box<dyn Future<Output = Result<Response<Payload>, Status>> + Send>>;
type ResponseFuture =
    Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl UnaryService<Payload> for Unary {
    type Response = Payload;
    type Future = Reply;

    fn call(&mut self, request: Request<Payload>) -> Reply {
        Box::pin(async move { Ok(Response::new(request.into_inner())) })
    }
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> ResponseFuture {
        Box::pin(async move {
            if request.uri().path() != "/bolide.Echo/Unary" {
                return Ok(Status::unimplemented("there is only `Unary`").into_http());
            }
            let mut grpc = Grpc::new(ProstCodec::<Payload, Payload>::default());
            Ok(grpc.unary(Unary, request).await)
        })
    }
}

/// All services.
pub(crate) fn routes() -> Routes {
    Routes::new(Echo)
}

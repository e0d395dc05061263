//! The server of gRPC's interoperability tests, by tonic, on Bolide.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bolide::tower::GrpcDeadline;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderName, Request as HttpRequest, Response as HttpResponse};
use http_body_util::BodyExt;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::server::{Grpc, NamedService};
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;
use tower::util::{BoxCloneSyncService, service_fn};

use crate::messages::*;

/// Echoed in the head of the response.
pub(crate) const INITIAL: &str = "x-grpc-test-echo-initial";
/// Echoed in its trailers.
pub(crate) const TRAILING: &str = "x-grpc-test-echo-trailing-bin";

type Outputs =
    Pin<Box<dyn Stream<Item = Result<StreamingOutputCallResponse, Status>> + Send + 'static>>;

/// `grpc.testing.TestService`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestService;

impl NamedService for TestService {
    const NAME: &'static str = "grpc.testing.TestService";
}

fn refuse_if_asked(status: Option<EchoStatus>) -> Result<(), Status> {
    match status {
        Some(status) if status.code != 0 => {
            Err(Status::new(Code::from(status.code), status.message))
        }
        _ => Ok(()),
    }
}

fn size(wanted: i32) -> Result<usize, Status> {
    usize::try_from(wanted).map_err(|_| Status::invalid_argument("a size below zero"))
}

async fn unary(request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
    let request = request.into_inner();
    refuse_if_asked(request.response_status)?;
    Ok(Response::new(SimpleResponse { payload: zeros(size(request.response_size)?) }))
}

async fn output_of(wanted: ResponseParameters) -> Result<StreamingOutputCallResponse, Status> {
    if let Ok(pause @ 1..) = u64::try_from(wanted.interval_us) {
        tokio::time::sleep(Duration::from_micros(pause)).await;
    }
    Ok(StreamingOutputCallResponse { payload: zeros(size(wanted.size)?) })
}

async fn streaming_output(
    request: Request<StreamingOutputCallRequest>,
) -> Result<Response<Outputs>, Status> {
    let request = request.into_inner();
    refuse_if_asked(request.response_status)?;
    Ok(Response::new(stream::iter(request.response_parameters).then(output_of).boxed()))
}

async fn streaming_input(
    request: Request<Streaming<StreamingInputCallRequest>>,
) -> Result<Response<StreamingInputCallResponse>, Status> {
    let mut inputs = request.into_inner();
    let mut bytes = 0;
    while let Some(input) = inputs.message().await? {
        bytes += input.payload.map_or(0, |payload| payload.body.len());
    }
    let aggregated_payload_size =
        i32::try_from(bytes).map_err(|_| Status::out_of_range("a lot"))?;
    Ok(Response::new(StreamingInputCallResponse { aggregated_payload_size }))
}

async fn full_duplex(
    request: Request<Streaming<StreamingOutputCallRequest>>,
) -> Result<Response<Outputs>, Status> {
    let responses = |input: Result<StreamingOutputCallRequest, Status>| {
        let response = input.and_then(|input| {
            refuse_if_asked(input.response_status)?;
            Ok(input.response_parameters)
        });
        match response {
            Ok(wanted) => stream::iter(wanted).then(output_of).boxed(),
            Err(status) => stream::iter([Err(status)]).boxed(),
        }
    };
    Ok(Response::new(request.into_inner().flat_map(responses).boxed()))
}

/// Takes compressed messages, and sends them to who takes them.
fn grpc<Q, A>() -> Grpc<ProstCodec<A, Q>>
where
    Q: prost::Message + Default + 'static,
    A: prost::Message + Default + 'static,
{
    Grpc::new(ProstCodec::default())
        .accept_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Gzip)
}

impl<B> Service<HttpRequest<B>> for TestService
where
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<B>) -> Self::Future {
        Box::pin(async move {
            let method = request.uri().path().rsplit('/').next().unwrap_or_default();
            let response = match method {
                "EmptyCall" => {
                    let empty = async |_: Request<Empty>| Ok(Response::new(Empty {}));
                    grpc().unary(service_fn(empty), request).await
                }
                "UnaryCall" => grpc().unary(service_fn(unary), request).await,
                "StreamingOutputCall" => {
                    let mut grpc = grpc();
                    grpc.server_streaming(service_fn(streaming_output), request).await
                }
                "StreamingInputCall" => {
                    let mut grpc = grpc();
                    grpc.client_streaming(service_fn(streaming_input), request).await
                }
                "FullDuplexCall" => {
                    let mut grpc = grpc();
                    grpc.streaming(service_fn(full_duplex), request).await
                }
                other => Status::unimplemented(format!("there is no `{other}`")).into_http(),
            };
            Ok(response)
        })
    }
}

/// Application of a server of the tests.
pub(crate) type App =
    BoxCloneSyncService<HttpRequest<bolide::tower::Body>, HttpResponse<Body>, Infallible>;

/// The test service, the health and the reflection service, with deadlines, and with the metadata
/// that is to be echoed.
pub(crate) async fn app() -> App {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<TestService>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors are whole");
    let routes = Routes::new(TestService).add_service(health_service).add_service(reflection);
    let served = GrpcDeadline::new(routes.prepare());
    BoxCloneSyncService::new(service_fn(move |request: HttpRequest<bolide::tower::Body>| {
        let mut served = served.clone();
        async move {
            let echoed = |name: &'static str| Some((name, request.headers().get(name)?.clone()));
            let (initial, trailing) = (echoed(INITIAL), echoed(TRAILING));
            let mut response = served.call(request).await?.map(Body::new);
            if let Some((name, value)) = initial {
                response.headers_mut().insert(name, value);
            }
            Ok(match trailing {
                None => response,
                Some((name, value)) => response.map(|body| {
                    let more: HeaderMap =
                        [(HeaderName::from_static(name), value)].into_iter().collect();
                    Body::new(body.map_frame(move |mut frame| {
                        if let Some(trailers) = frame.trailers_mut() {
                            trailers.extend(more.clone());
                        }
                        frame
                    }))
                }),
            })
        }
    }))
}

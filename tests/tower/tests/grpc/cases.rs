//! The interoperability cases of gRPC, by tonic's client.

use futures_util::{StreamExt, stream};
use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::messages::*;
use crate::service::{INITIAL, TRAILING};
use crate::start::in_time;

const REQUEST_BYTES: usize = 271_828;
const RESPONSE_BYTES: i32 = 314_159;
const REQUEST_SIZES: [usize; 4] = [27_182, 8, 1828, 45_904];
const RESPONSE_SIZES: [i32; 4] = [31_415, 9, 2653, 58_979];

/// A client of methods by their paths.
struct Client(Grpc<Channel>);

impl Client {
    fn new(channel: Channel) -> Self {
        Self(Grpc::new(channel))
    }

    /// One that sends compressed messages, and takes them.
    fn compressed(channel: Channel) -> Self {
        let gzip = CompressionEncoding::Gzip;
        Self(Grpc::new(channel).send_compressed(gzip).accept_compressed(gzip))
    }

    async fn unary<Q, A>(
        &mut self,
        path: &'static str,
        request: Request<Q>,
    ) -> Result<Response<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.0.ready().await.expect("the server is there");
        let codec = ProstCodec::<Q, A>::default();
        in_time(self.0.unary(request, PathAndQuery::from_static(path), codec)).await
    }

    async fn call(
        &mut self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<SimpleResponse>, Status> {
        self.unary("/grpc.testing.TestService/UnaryCall", request).await
    }

    async fn duplex(
        &mut self,
        request: Request<ReceiverStream<StreamingOutputCallRequest>>,
    ) -> Result<Response<Streaming<StreamingOutputCallResponse>>, Status> {
        self.0.ready().await.expect("the server is there");
        let path = PathAndQuery::from_static("/grpc.testing.TestService/FullDuplexCall");
        in_time(self.0.streaming(request, path, ProstCodec::default())).await
    }
}

/// Makes a test of each case, against a server of its own, and [`pass`] of all; with compressed messages too.
macro_rules! cases {
    ($($name:ident)*) => {
        mod direct {
            $(
                #[tokio::test]
                async fn $name() {
                    let channel = crate::start::channel().await;
                    super::$name(&mut super::Client::new(channel.clone())).await;
                    super::$name(&mut super::Client::compressed(channel)).await;
                }
            )*
        }

        /// All cases, one after another, by this channel.
        pub(crate) async fn pass(channel: &Channel) {
            $(
                $name(&mut Client::new(channel.clone())).await;
                $name(&mut Client::compressed(channel.clone())).await;
            )*
        }
    };
}

cases! {
    empty_unary
    large_unary
    client_streaming
    server_streaming
    ping_pong
    empty_stream
    status_code_and_message
    special_status_message
    custom_metadata
    unimplemented_method_and_service
}

fn outputs(sizes: &[i32]) -> Vec<ResponseParameters> {
    sizes.iter().map(|size| ResponseParameters { size: *size, interval_us: 0 }).collect()
}

fn length(response: &StreamingOutputCallResponse) -> usize {
    response.payload.as_ref().map_or(0, |payload| payload.body.len())
}

async fn empty_unary(client: &mut Client) {
    let path = "/grpc.testing.TestService/EmptyCall";
    let response = client.unary::<_, Empty>(path, Request::new(Empty {})).await;
    assert_eq!(response.unwrap().into_inner(), Empty {});
}

async fn large_unary(client: &mut Client) {
    let request = SimpleRequest {
        response_size: RESPONSE_BYTES,
        payload: zeros(REQUEST_BYTES),
        response_status: None,
    };
    let response = client.call(Request::new(request)).await.unwrap().into_inner();
    assert_eq!(response.payload, zeros(RESPONSE_BYTES as usize));
}

async fn client_streaming(client: &mut Client) {
    client.0.ready().await.unwrap();
    let inputs = REQUEST_SIZES.map(|size| StreamingInputCallRequest { payload: zeros(size) });
    let path = PathAndQuery::from_static("/grpc.testing.TestService/StreamingInputCall");
    let codec = ProstCodec::<_, StreamingInputCallResponse>::default();
    let call = client.0.client_streaming(Request::new(stream::iter(inputs)), path, codec);
    assert_eq!(in_time(call).await.unwrap().into_inner().aggregated_payload_size, 74_922);
}

async fn server_streaming(client: &mut Client) {
    client.0.ready().await.unwrap();
    let response_parameters = outputs(&RESPONSE_SIZES);
    let request = StreamingOutputCallRequest { response_parameters, ..Default::default() };
    let path = PathAndQuery::from_static("/grpc.testing.TestService/StreamingOutputCall");
    let codec = ProstCodec::<_, StreamingOutputCallResponse>::default();
    let call = client.0.server_streaming(Request::new(request), path, codec);
    let responses = in_time(call).await.unwrap().into_inner();
    let lengths =
        in_time(responses.map(|response| length(&response.unwrap()) as i32).collect::<Vec<_>>());
    assert_eq!(lengths.await, RESPONSE_SIZES);
}

async fn ping_pong(client: &mut Client) {
    let (sender, receiver) = mpsc::channel(1);
    let mut receiver = Some(ReceiverStream::new(receiver));
    let mut responses = None;
    for (asked, wanted) in REQUEST_SIZES.into_iter().zip(RESPONSE_SIZES) {
        let request = StreamingOutputCallRequest {
            response_parameters: outputs(&[wanted]),
            payload: zeros(asked),
            response_status: None,
        };
        sender.send(request).await.unwrap();
        // grpc-go begins its response with the first message of it.
        if let Some(receiver) = receiver.take() {
            responses = Some(client.duplex(Request::new(receiver)).await.unwrap().into_inner());
        }
        let responses = responses.as_mut().expect("it has begun");
        let response = in_time(responses.message()).await.unwrap().expect("a response for each");
        assert_eq!(length(&response) as i32, wanted);
    }
    drop(sender);
    let mut responses = responses.expect("it has begun");
    assert_eq!(in_time(responses.message()).await.unwrap(), None);
}

async fn empty_stream(client: &mut Client) {
    let (sender, receiver) = mpsc::channel(1);
    drop(sender);
    let request = Request::new(ReceiverStream::new(receiver));
    let mut responses = client.duplex(request).await.unwrap().into_inner();
    assert_eq!(in_time(responses.message()).await.unwrap(), None);
}

async fn status_code_and_message(client: &mut Client) {
    let status = EchoStatus { code: 2, message: "test status message".to_owned() };
    let request =
        SimpleRequest { response_status: Some(status.clone()), ..SimpleRequest::default() };
    let refused = client.call(Request::new(request)).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unknown, status.message.as_str()));

    let (sender, receiver) = mpsc::channel(1);
    let request =
        StreamingOutputCallRequest { response_status: Some(status.clone()), ..Default::default() };
    sender.send(request).await.unwrap();
    drop(sender);
    let request = Request::new(ReceiverStream::new(receiver));
    let refused = match client.duplex(request).await {
        Ok(responses) => in_time(responses.into_inner().message()).await.unwrap_err(),
        // The trailers came in place of a head.
        Err(refused) => refused,
    };
    assert_eq!((refused.code(), refused.message()), (Code::Unknown, status.message.as_str()));
}

async fn special_status_message(client: &mut Client) {
    let message = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n".to_owned();
    let status = EchoStatus { code: 2, message: message.clone() };
    let request = SimpleRequest { response_status: Some(status), ..SimpleRequest::default() };
    let refused = client.call(Request::new(request)).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unknown, message.as_str()));
}

fn with_metadata<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(INITIAL, "test_initial_metadata_value".parse().unwrap());
    let value = MetadataValue::from_bytes(&[0x0a, 0x0b, 0x0a, 0x0b, 0x0a, 0x0b]);
    request.metadata_mut().insert_bin(TRAILING, value);
    request
}

/// Checks what came back at the beginning and at the end.
fn assert_echoed(head: &MetadataMap, trailers: &MetadataMap) {
    assert_eq!(head.get(INITIAL).unwrap(), "test_initial_metadata_value");
    let value = trailers.get_bin(TRAILING).unwrap().to_bytes().unwrap();
    assert_eq!(&value[..], [0x0a, 0x0b, 0x0a, 0x0b, 0x0a, 0x0b]);
}

async fn custom_metadata(client: &mut Client) {
    let request = SimpleRequest { response_size: 1, payload: zeros(1), response_status: None };
    let response = client.call(with_metadata(request)).await.unwrap();
    // tonic's client puts the trailers of a unary call next to its head.
    assert_echoed(response.metadata(), response.metadata());

    let (sender, receiver) = mpsc::channel(1);
    let request = StreamingOutputCallRequest {
        response_parameters: outputs(&[1]),
        payload: zeros(1),
        response_status: None,
    };
    sender.send(request).await.unwrap();
    drop(sender);
    let response = client.duplex(with_metadata(ReceiverStream::new(receiver))).await.unwrap();
    let head = response.metadata().clone();
    let mut responses = response.into_inner();
    assert_eq!(length(&in_time(responses.message()).await.unwrap().unwrap()), 1);
    let trailers = in_time(responses.trailers()).await.unwrap().expect("trailers");
    assert_echoed(&head, &trailers);
}

async fn unimplemented_method_and_service(client: &mut Client) {
    for path in [
        "/grpc.testing.TestService/UnimplementedCall",
        "/grpc.testing.UnimplementedService/UnimplementedCall",
    ] {
        let refused = client.unary::<_, Empty>(path, Request::new(Empty {})).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented, "{path}");
    }
}

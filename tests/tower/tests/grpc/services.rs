//! The health and the reflection service, by the clients of their crates.

use tokio_stream::StreamExt;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::start::{channel, in_time};

#[tokio::test]
async fn the_health_service_answers_and_watches() {
    let mut health = HealthClient::new(channel().await);
    let service = || HealthCheckRequest { service: "grpc.testing.TestService".to_owned() };
    let response = in_time(health.check(service())).await.unwrap();
    assert_eq!(response.into_inner().status, 1);
    let mut watched = in_time(health.watch(service())).await.unwrap().into_inner();
    assert_eq!(in_time(watched.message()).await.unwrap().expect("the state of now").status, 1);
}

#[tokio::test]
async fn the_reflection_service_names_and_describes_what_is_served() {
    let mut reflection = ServerReflectionClient::new(channel().await);
    let ask =
        |message| ServerReflectionRequest { host: String::new(), message_request: Some(message) };
    let asked = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("grpc.health.v1.Health".to_owned())),
        ask(MessageRequest::FileContainingSymbol("no.such.Thing".to_owned())),
    ];
    let call = reflection.server_reflection_info(tokio_stream::iter(asked));
    let mut responses = in_time(call).await.unwrap().into_inner();
    let mut next = async || {
        in_time(responses.next())
            .await
            .map(|response| response.map(|response| response.message_response))
    };
    let Some(Ok(Some(MessageResponse::ListServicesResponse(list)))) = next().await else {
        panic!("no list of services")
    };
    let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    assert!(names.contains(&"grpc.health.v1.Health".to_owned()), "{names:?}");
    let Some(Ok(Some(MessageResponse::FileDescriptorResponse(files)))) = next().await else {
        panic!("no description")
    };
    assert!(!files.file_descriptor_proto.is_empty());
    let refused = next().await.expect("a response").unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
}

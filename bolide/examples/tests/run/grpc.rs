//! gRPC by tonic's own client.

use std::time::Duration;

use bolide_examples::grpc::{Client, number};
use futures_util::stream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::program::Program;

async fn channel(program: &Program) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", program.address)).unwrap();
    endpoint.connect().await.unwrap()
}

#[tokio::test]
async fn every_kind_of_method_answers() {
    let program = Program::start(env!("CARGO_BIN_EXE_grpc"));
    let mut client = Client::new(channel(&program).await);
    assert_eq!(client.square(Request::new(number(7))).await.unwrap(), number(49));
    let mut counted = client.count_to(1000).await.unwrap();
    for value in 1..=1000 {
        assert_eq!(counted.message().await.unwrap(), Some(number(value)));
    }
    assert_eq!(counted.message().await.unwrap(), None);
    assert_eq!(client.sum(stream::iter((1..=1000).map(number))).await.unwrap(), number(500_500));
}

#[tokio::test]
async fn both_sides_of_a_stream_take_turns() {
    let program = Program::start(env!("CARGO_BIN_EXE_grpc"));
    let mut client = Client::new(channel(&program).await);
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let numbers = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut sums = client.running_sum(numbers).await.unwrap();
    for value in 1..=100 {
        sender.send(number(value)).await.unwrap();
        assert_eq!(sums.message().await.unwrap(), Some(number(value * (value + 1) / 2)));
    }
    drop(sender);
    assert_eq!(sums.message().await.unwrap(), None);
}

#[tokio::test]
async fn errors_deadlines_and_metadata_arrive() {
    let program = Program::start(env!("CARGO_BIN_EXE_grpc"));
    let mut client = Client::new(channel(&program).await);
    let error = client.square(Request::new(number(i64::MAX))).await.unwrap_err();
    assert_eq!(error.code(), Code::OutOfRange);
    assert!(error.message().ends_with("has too many digits"), "{}", error.message());
    let error = client.count_to(-1).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let mut request = Request::new(number(3));
    request.set_timeout(Duration::from_secs(30));
    assert_eq!(client.square(request).await.unwrap(), number(9));
}

#[tokio::test]
async fn the_health_service_says_that_it_serves() {
    let program = Program::start(env!("CARGO_BIN_EXE_grpc"));
    let mut health = HealthClient::new(channel(&program).await);
    let service = "bolide.Arithmetic".to_owned();
    let response = health.check(HealthCheckRequest { service }).await.unwrap();
    assert_eq!(response.into_inner().status, 1);
    let service = "bolide.Nothing".to_owned();
    let error = health.check(HealthCheckRequest { service }).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

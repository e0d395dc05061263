//! A gRPC server by tonic: `bolide.Arithmetic` with a method of each kind, and the health service.

use bolide::tower::GrpcDeadline;
use bolide_examples::grpc::Arithmetic;
use tonic::service::Routes;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<Arithmetic>().await;
    let app = GrpcDeadline::new(Routes::new(Arithmetic).add_service(health_service).prepare());
    let listener = bolide_examples::listen().await?;
    bolide::tower::serve(listener, app).await
}

//! Services that are not ready at once.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bolide::tower::Body;
use http::{Request, Response};
use http_body_util::Full;
use tokio::sync::Semaphore;
use tower_service::Service;

use crate::start::{get, http2, in_time, read, start};

/// Is called only after it has said that it is ready; each clone waits for a permit of its own.
struct Gate {
    permits: Arc<Semaphore>,
    waits: Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>,
    ready: bool,
}

impl Clone for Gate {
    fn clone(&self) -> Self {
        Self { permits: Arc::clone(&self.permits), waits: None, ready: false }
    }
}

impl Service<Request<Body>> for Gate {
    type Response = Response<Full<bytes::Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        let permits = Arc::clone(&self.permits);
        let waits = self.waits.get_or_insert_with(|| {
            Box::pin(async move { permits.acquire().await.expect("open").forget() })
        });
        waits.as_mut().poll(cx).map(|()| {
            self.ready = true;
            Ok(())
        })
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(self.ready, "called before it was ready");
        ready(Ok(Response::new(Full::from("let through"))))
    }
}

#[tokio::test]
async fn a_service_is_called_when_it_has_become_ready() {
    let permits = Arc::new(Semaphore::new(1));
    let gate = Gate { permits: Arc::clone(&permits), waits: None, ready: false };
    let address = start(gate, |serve| serve.workers(1)).await;
    let mut client = http2(address).await;
    let first = in_time(client.send_request(get("/"))).await.unwrap();
    assert_eq!(read(first).await, (200, "let through".to_owned()));
    let second = tokio::spawn(client.send_request(get("/")));
    let third = tokio::spawn(client.send_request(get("/")));
    permits.add_permits(2);
    for one in [second, third] {
        let response = in_time(one).await.unwrap().unwrap();
        assert_eq!(read(response).await, (200, "let through".to_owned()));
    }
}

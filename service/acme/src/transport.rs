//! RFC 8555 §6.1: requests to a CA, by the client that waits.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use bolide_client::{Client, ClientLimits, Trust};
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

use crate::failure::Failure;
use crate::limits::{REQUEST_TIMEOUT, RESPONSE_BYTES, RETRY_AFTER_MAX};

/// The transport of one attempt. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    client: Client,
    /// How long the last response asks to wait.
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl Transport {
    pub(crate) fn new(trust: Option<&Trust>) -> Result<Self, Failure> {
        let limits = ClientLimits { collected_bytes: RESPONSE_BYTES, ..ClientLimits::default() };
        let mut builder = Client::builder().limits(limits);
        if let Some(trust) = trust {
            builder = builder.trust(trust.clone());
        }
        let client = builder.build().map_err(|error| Failure::new(error.to_string()))?;
        Ok(Self { client, retry_after: Arc::default() })
    }

    /// How long the last response asks to wait, if it does.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        *self.retry_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exchange(&self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let (parts, body) = request.into_parts();
        let mut body = BytesResponse::from(Response::new(body)).body;
        let body = at_once(body.into_bytes()).ok_or(Error::Str("the body of a request"))?;
        let body = body.map_err(Error::Other)?;
        let url = parts.uri.to_string();
        let mut response = self
            .client
            .request(parts.method, &url)
            .headers(&parts.headers)
            .body(body)
            .timeout(REQUEST_TIMEOUT)
            .send()
            .map_err(|error| Error::Other(error.into()))?;
        let content = response.collect().map_err(|error| Error::Other(error.into()))?;
        let wait =
            response.header(RETRY_AFTER.as_str()).and_then(|value| wait(value, SystemTime::now()));
        *self.retry_after.lock().unwrap_or_else(PoisonError::into_inner) = wait;
        let status = response.status();
        // Errors are problem documents; a proxy in front may send a page instead.
        if !status.is_success() && serde_json::from_slice::<serde_json::Value>(&content).is_err() {
            return Err(Error::Other(format!("{url}: the response is {status}").into()));
        }
        let mut whole = Response::new(());
        *whole.status_mut() = status;
        whole.headers_mut().clone_from(response.headers());
        Ok(BytesResponse { parts: whole.into_parts().0, body: Box::new(content) })
    }
}

impl HttpClient for Transport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        Box::pin(std::future::ready(self.exchange(request)))
    }
}

/// The result of a future that waits for nothing: [`Transport`] has done so before it is polled. `None`: it does wait.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// RFC 9110 §10.2.3: seconds, or a date; at most [`RETRY_AFTER_MAX`].
fn wait(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let time = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(time.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_seconds_or_a_date_and_a_day_at_most() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_456_800);
        for (value, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Mon, 23 Nov 2026 18:01:00 GMT", Some(60)),
            ("Mon, 23 Nov 2026 17:00:00 GMT", Some(0)),
            ("99999999", Some(24 * 3600)),
            ("soon", None),
            ("", None),
            ("-1", None),
        ] {
            assert_eq!(wait(value, now), seconds.map(Duration::from_secs), "{value:?}");
        }
    }

    #[test]
    fn a_future_that_waits_has_no_result() {
        assert_eq!(at_once(std::future::ready(7)), Some(7));
        assert_eq!(at_once(std::future::pending::<u8>()), None);
    }
}

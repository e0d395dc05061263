//! RFC 9110 §15.4: responses that lead elsewhere.

use bolide_semantics::{Scheme, Url};
use http::header::{AUTHORIZATION, COOKIE, HOST, LOCATION, PROXY_AUTHORIZATION};
use http::{Method, StatusCode};

use super::error::{ClientError, ErrorKind};
use super::request::{Content, Request, SCHEMES};
use super::response::Response;

/// Returns where a response leads, if it does; the request is changed to what is to be sent there.
pub(crate) fn next(
    request: &mut Request,
    from: &Url,
    response: &Response,
) -> Result<Option<Url>, ClientError> {
    let status = response.status();
    let becomes_get = match status {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => request.method == Method::POST,
        StatusCode::SEE_OTHER => request.method != Method::HEAD,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => false,
        _ => return Ok(None),
    };
    let failed = |what: String| {
        let error = ClientError::new(ErrorKind::Redirect, what).touched();
        error.about(&from.to_string())
    };
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let location = location.to_str().map_err(|_| failed("`Location` is not a URL".to_owned()))?;
    let to =
        from.join(location, &SCHEMES).map_err(|error| failed(format!("`Location`: {error}")))?;
    if from.scheme == Scheme::Https && to.scheme != Scheme::Https {
        return Err(failed(format!("the way to `{}` leaves TLS, and is not followed", to)));
    }
    if becomes_get {
        request.become_get();
    } else if matches!(request.content, Content::Reader(_)) {
        let what = format!("the body would have to be sent again to `{}`, and is not kept", to);
        return Err(failed(what));
    }
    if !to.is_same_origin(from) {
        if !request.via.is_empty() {
            let what = format!("`{}` is not at the place that was named", to);
            return Err(failed(what));
        }
        for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, HOST] {
            request.fields.remove(name);
        }
    }
    Ok(Some(to))
}

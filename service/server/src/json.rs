//! JSON (RFC 8259) as the content of requests and responses.

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::Response;

/// A value that is sent as JSON: a handler returns it. One that JSON can't express is a 500.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for Response {
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_vec(&value) {
            Ok(text) => Self::with_type(HeaderValue::from_static("application/json"), text),
            Err(error) => {
                tracing::error!(target: "bolide::handler", %error, "a value can't be sent as JSON");
                Self::error(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

/// The content of a request is not the JSON that is expected. As a response it is a 400 that says where, and what is wrong.
#[derive(Debug, Error)]
#[error("the content is not the JSON that is expected here: {0}")]
pub struct JsonError(#[from] serde_json::Error);

impl From<JsonError> for Response {
    fn from(error: JsonError) -> Self {
        Self::text(format!("{error}\n")).with_status(StatusCode::BAD_REQUEST)
    }
}

/// Reads a body as JSON. The type that the request names is not looked at.
///
/// ```
/// use bolide_server::{Json, JsonError, Router, collect, read_json};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct User {
///     name: String,
/// }
///
/// let router = Router::new().handle_post(
///     "/users",
///     collect(|_, body| -> Result<_, JsonError> {
///         let user: User = read_json(&body)?;
///         Ok(Json(user))
///     }),
/// );
/// assert!(router.check().is_ok());
/// ```
///
/// # Errors
///
/// [`JsonError`] says where the text is no JSON, or not of this type.
pub fn read_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, JsonError> {
    Ok(serde_json::from_slice(body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let error = read_json::<Vec<u8>>(&Bytes::from_static(b"[1,\n x]")).unwrap_err();
        let said = error.to_string();
        assert!(said.ends_with("expected value at line 2 column 2"), "{said}");
        assert_eq!(Response::from(error).status(), StatusCode::BAD_REQUEST);
        assert_eq!(read_json::<Vec<u8>>(&Bytes::from_static(b"[1]")).unwrap(), [1]);
    }

    #[test]
    fn what_json_cannot_express_is_an_error_of_the_server() {
        let odd = std::collections::BTreeMap::from([(vec![1], 2)]);
        assert_eq!(Response::from(Json(odd)).status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(Response::from(Json([1])).status(), StatusCode::OK);
    }
}

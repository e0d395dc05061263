//! Fetch standard §3.3: which other origins' scripts may use a route.

use std::time::Duration;

use bolide_semantics::is_token;
use bolide_server::{
    HeaderName, HeaderValue, Method, Request, Response, ResponseFields, StatusCode,
};

use crate::error::SiteError;

/// Rules for requests of scripts from other origins.
#[derive(Debug, Clone)]
pub struct Cors {
    /// None: any.
    origins: Option<Vec<String>>,
    methods: HeaderValue,
    headers: Option<HeaderValue>,
    exposed: Option<HeaderValue>,
    credentials: bool,
    max_age: Option<HeaderValue>,
}

static ALLOW_ORIGIN: HeaderName = HeaderName::from_static("access-control-allow-origin");
static ALLOW_CREDENTIALS: HeaderName = HeaderName::from_static("access-control-allow-credentials");
static EXPOSE: HeaderName = HeaderName::from_static("access-control-expose-headers");
static VARY: HeaderName = HeaderName::from_static("vary");
static ANY: HeaderValue = HeaderValue::from_static("*");
static TRUE: HeaderValue = HeaderValue::from_static("true");
static ORIGIN: HeaderValue = HeaderValue::from_static("origin");

impl Cors {
    /// Rules for scripts of these origins (`https://example.org`, or `*` for any), which may send GET, HEAD and POST.
    ///
    /// # Errors
    ///
    /// There is none, or one is no origin.
    pub fn new(origins: &[String]) -> Result<Self, SiteError> {
        if origins.is_empty() {
            return Err(SiteError::new("`origins` is empty: name one, or \"*\" for any"));
        }
        let is_any = origins.iter().any(|origin| origin == "*");
        for origin in origins.iter().filter(|origin| *origin != "*") {
            let is_origin = origin.split_once("://").is_some_and(|(scheme, rest)| {
                is_token(scheme.as_bytes())
                    && !rest.is_empty()
                    && rest
                        .bytes()
                        .all(|byte| byte.is_ascii_graphic() && !b"/?#*@,".contains(&byte))
            });
            let is_lower = *origin == origin.to_ascii_lowercase();
            if !is_origin || !is_lower {
                let what = format!(
                    "`{origin}` is not an origin: write a scheme and a host in lower case, such as https://example.org"
                );
                return Err(SiteError::new(what));
            }
        }
        Ok(Self {
            origins: (!is_any).then(|| origins.to_vec()),
            methods: HeaderValue::from_static("GET, HEAD, POST"),
            headers: None,
            exposed: None,
            credentials: false,
            max_age: None,
        })
    }

    /// The same with these methods.
    ///
    /// # Errors
    ///
    /// One is not a method.
    pub fn methods(mut self, methods: &[String]) -> Result<Self, SiteError> {
        self.methods = list(methods, "a method")?;
        Ok(self)
    }

    /// The same with these request fields.
    ///
    /// # Errors
    ///
    /// One is not a field name.
    pub fn headers(mut self, names: &[String]) -> Result<Self, SiteError> {
        self.headers = Some(list(names, "a field name")?);
        Ok(self)
    }

    /// The same whose scripts may read these response fields.
    ///
    /// # Errors
    ///
    /// One is not a field name.
    pub fn exposed(mut self, names: &[String]) -> Result<Self, SiteError> {
        self.exposed = Some(list(names, "a field name")?);
        Ok(self)
    }

    /// The same with cookies and other credentials.
    ///
    /// # Errors
    ///
    /// Any origin is allowed: browsers refuse that, and each of them could act for the user.
    pub fn credentials(mut self, allowed: bool) -> Result<Self, SiteError> {
        if allowed && self.origins.is_none() {
            let what =
                "`credentials` needs named origins: \"*\" would let any page act for the user";
            return Err(SiteError::new(what));
        }
        self.credentials = allowed;
        Ok(self)
    }

    /// The same whose preflights hold for this time.
    #[must_use]
    pub fn max_age(mut self, time: Duration) -> Self {
        self.max_age = Some(time.as_secs().into());
        self
    }

    /// The value of `Access-Control-Allow-Origin` for a request: none for origins that are not allowed.
    pub(crate) fn allowed(&self, request: &Request<'_>) -> Option<HeaderValue> {
        let origin = request.header("origin")?;
        match &self.origins {
            None => Some(ANY.clone()),
            Some(own) if own.iter().any(|one| one == origin) => HeaderValue::try_from(origin).ok(),
            Some(_) => None,
        }
    }

    /// Returns whether it is a preflight, which the route's handler does not see.
    pub(crate) fn is_preflight(request: &Request<'_>) -> bool {
        *request.method() == Method::OPTIONS
            && request.header("origin").is_some()
            && request.header("access-control-request-method").is_some()
    }

    /// The response to a preflight, without what every response gets.
    pub(crate) fn preflight(&self, is_allowed: bool) -> Response {
        let mut response = Response::new(StatusCode::NO_CONTENT);
        if is_allowed {
            response = response.header("access-control-allow-methods", self.methods.clone());
            if let Some(headers) = &self.headers {
                response = response.header("access-control-allow-headers", headers.clone());
            }
            if let Some(max_age) = &self.max_age {
                response = response.header("access-control-max-age", max_age.clone());
            }
        }
        response
    }

    /// Adds what scripts of the origin need to every response.
    pub(crate) fn edit<'p>(
        &'p self,
        allowed: Option<&'p HeaderValue>,
        fields: &mut ResponseFields<'p>,
    ) {
        // What a handler or an upstream says of origins would contradict it.
        for name in [&ALLOW_ORIGIN, &ALLOW_CREDENTIALS, &EXPOSE] {
            fields.remove(name);
        }
        if self.origins.is_some() {
            fields.add(&VARY, &ORIGIN);
        }
        let Some(allowed) = allowed else { return };
        fields.add(&ALLOW_ORIGIN, allowed);
        if self.credentials {
            fields.add(&ALLOW_CREDENTIALS, &TRUE);
        }
        if let Some(exposed) = &self.exposed {
            fields.add(&EXPOSE, exposed);
        }
    }
}

/// A list of tokens, or `*`.
fn list(names: &[String], what: &str) -> Result<HeaderValue, SiteError> {
    match names.iter().find(|name| !is_token(name.as_bytes())) {
        Some(bad) => Err(SiteError::new(format!("`{bad}` is not {what}"))),
        None => HeaderValue::try_from(names.join(", "))
            .map_err(|_| SiteError::new(format!("it is not a list of {what}s"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_would_refuse_is_refused() {
        let origins =
            |list: &[&str]| Cors::new(&list.iter().map(ToString::to_string).collect::<Vec<_>>());
        for bad in ["example.org", "https://", "https://a/", "https://A", "https://a,b", "null"] {
            assert!(origins(&[bad]).is_err(), "{bad}");
        }
        assert!(origins(&[]).is_err());
        assert!(origins(&["*"]).unwrap().credentials(false).is_ok());
        let told = origins(&["https://a", "*"]).unwrap().credentials(true).unwrap_err().to_string();
        assert!(told.contains("needs named origins"), "{told}");
        let one = origins(&["https://a:8443"]).unwrap().credentials(true).unwrap();
        assert!(one.methods(&["P UT".to_owned()]).is_err());
    }
}

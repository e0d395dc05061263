//! The requests of a run, prepared once so that sending one costs little.

use std::sync::Arc;

use bolide_semantics::{FieldName, FieldRef, RequestHead};
use bytes::Bytes;
use fastrand::Rng;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, PROXY_AUTHORIZATION};
use http::{HeaderName, HeaderValue, Method};
use smallvec::SmallVec;

use super::checks::ExpectedResponse;
use super::servers::Server;
use super::template::{Content, Rendered, Template, Values};
use super::users::Hop;
use crate::plan::{Plan, RequestPlan};
use crate::scenario::StepPlan;

/// The fields of most requests fit into so many places on the stack.
const FIELDS_COUNT: usize = 16;

/// All requests of a plan.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) requests: Vec<Request>,
    /// The weights summed up, request by request; empty when they are taken in turn.
    weights: Vec<u64>,
}

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    /// The number of the server that it goes to.
    pub(super) server: usize,
    pub(super) method: Method,
    pub(super) target: String,
    /// Of the target, if it has placeholders.
    target_template: Option<Template>,
    fields: Vec<Line>,
    body: Bytes,
    /// The content, where it is made for each request.
    content: Vec<Content>,
    /// Plan that makes it a step of a scenario.
    pub(super) step: Option<Arc<StepPlan>>,
    /// Expected response.
    pub(super) response: ExpectedResponse,
}

/// A field line whose name has been looked up.
#[derive(Debug)]
struct Line {
    known: Option<FieldName>,
    name: HeaderName,
    value: HeaderValue,
    /// Of the value, if it has placeholders.
    template: Option<Template>,
}

impl Line {
    fn new(name: HeaderName, value: HeaderValue, template: Option<Template>) -> Self {
        Self { known: FieldName::lookup(name.as_str().as_bytes()), name, value, template }
    }
}

/// Parts of one request's head besides those that its templates make.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extra<'a> {
    /// The length of its content, in bytes.
    pub(super) content_bytes: u64,
    /// The user's cookies; empty: none.
    pub(super) cookies: &'a str,
    /// Place to which a redirect has led the user.
    pub(super) hop: Option<&'a Hop>,
}

impl Extra<'_> {
    /// Of a request that belongs to no user.
    pub(super) fn of(content_bytes: u64) -> Self {
        Self { content_bytes, cookies: "", hop: None }
    }
}

impl Request {
    pub(super) fn new(plan: &RequestPlan, server: usize) -> Self {
        let template = |text: &str| plan.has_placeholders.then(|| Template::parse(text)).flatten();
        let line = |(name, value): &(HeaderName, HeaderValue)| {
            let template = value.to_str().ok().and_then(template);
            Line::new(name.clone(), value.clone(), template)
        };
        let mut fields: Vec<_> = plan.fields.iter().map(line).collect();
        let own = plan.step.iter().flat_map(|step| &step.fields).map(|(name, template)| {
            let mut value = HeaderValue::from_static("");
            value.set_sensitive(*name == AUTHORIZATION);
            Line::new(name.clone(), value, Some(template.clone()))
        });
        fields.extend(own);
        let content = plan.step.as_ref().map(|step| step.content.clone()).unwrap_or_default();
        let has_content = matches!(plan.method, Method::POST | Method::PUT | Method::PATCH);
        if !plan.body.is_empty() || !content.is_empty() || has_content {
            fields.push(Line::new(CONTENT_LENGTH, HeaderValue::from(plan.body.len()), None));
        }
        let target_template = match &plan.step {
            Some(step) => Some(step.target.clone()),
            None => template(&plan.target),
        };
        Self {
            server,
            method: plan.method.clone(),
            target: plan.target.clone(),
            target_template,
            fields,
            body: plan.body.clone(),
            content,
            step: plan.step.clone(),
            response: ExpectedResponse::new(plan),
        }
    }

    /// Replaces the placeholders.
    #[inline]
    pub(super) fn render(&self, values: &mut Values<'_>, rendered: &mut Rendered) {
        let fields = self.fields.iter().filter_map(|line| line.template.as_ref());
        rendered.render(self.target_template.iter().chain(fields), values);
    }

    /// The content of one request.
    #[inline]
    pub(super) fn content(&self, values: &mut Values<'_>) -> Bytes {
        if self.content.is_empty() {
            return self.body.clone();
        }
        Content::write(&self.content, values)
    }

    /// Calls `send` with the head of one request to `server`, whose placeholders were [replaced](Self::render).
    #[inline]
    pub(super) fn with_head<R>(
        &self,
        server: &Server,
        (rendered, extra): (&Rendered, Extra<'_>),
        send: impl FnOnce(&RequestHead<'_>) -> R,
    ) -> R {
        let mut texts = rendered.texts();
        let path = match &self.target_template {
            Some(_) => texts.next().unwrap_or_default(),
            None => &self.target,
        };
        let mut digits = itoa::Buffer::new();
        let length = digits.format(extra.content_bytes).as_bytes();
        // Filled where it is: `collect` would copy all of it once more.
        let mut fields = SmallVec::<[FieldRef<'_>; FIELDS_COUNT]>::new();
        fields.extend(self.fields.iter().map(|line| FieldRef {
            known: line.known,
            name: line.name.as_str(),
            value: match &line.template {
                // What is put in may begin or end with spaces (RFC 9110 §5.5).
                Some(_) => texts.next().unwrap_or_default().trim_ascii().as_bytes(),
                None if line.known == Some(FieldName::ContentLength) => length,
                None => line.value.as_bytes(),
            },
            sensitive: line.value.is_sensitive(),
        }));
        if extra.hop.is_some_and(|hop| hop.method.is_some()) {
            let of_content = [CONTENT_LENGTH, CONTENT_TYPE];
            fields.retain(|field| !of_content.iter().any(|name| field.name == name.as_str()));
        }
        if extra.hop.is_some_and(|hop| hop.server != self.server) {
            // Credentials are for the server that the step names.
            let credentials = [AUTHORIZATION, PROXY_AUTHORIZATION];
            fields.retain(|field| !credentials.iter().any(|name| field.name == name.as_str()));
        }
        if !extra.cookies.is_empty() {
            fields.push(FieldRef::known(FieldName::Cookie, extra.cookies.as_bytes()));
        }
        let path = extra.hop.map_or(path, |hop| &hop.target);
        let method = extra.hop.and_then(|hop| hop.method.as_ref()).unwrap_or(&self.method);
        send(&RequestHead {
            method,
            scheme: server.scheme(),
            authority: &server.authority,
            path,
            protocol: None,
            fields: &fields,
        })
    }
}

impl Script {
    /// Prepares the requests of a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut sum = 0;
        let mut weights: Vec<u64> = plan
            .requests
            .iter()
            .map(|request| {
                sum += u64::from(request.weight);
                sum
            })
            .collect();
        if plan.requests.iter().all(|request| request.weight == plan.requests[0].weight) {
            weights.clear();
        }
        let scenario = plan.scenario.as_deref();
        let request = |(index, request): (usize, &RequestPlan)| {
            Request::new(request, scenario.map_or(0, |scenario| scenario.server(index)))
        };
        Self { requests: plan.requests.iter().enumerate().map(request).collect(), weights }
    }

    /// Which request is the next: in turn, or by weight.
    #[inline]
    pub(super) fn choose(&self, turn: &mut usize, random: &mut Rng) -> usize {
        if let Some(sum) = self.weights.last() {
            let drawn = random.u64(..*sum);
            return self.weights.partition_point(|weight| *weight <= drawn);
        }
        let chosen = *turn;
        *turn = if chosen + 1 == self.requests.len() { 0 } else { chosen + 1 };
        chosen
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bolide_connection::Limits;

    use super::*;
    use crate::engine::template::Numbers;
    use crate::engine::testing::{plan_for, request};

    #[test]
    fn requests_come_in_turn_or_by_weight() {
        let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
        plan.requests = vec![request("/a"), request("/b"), request("/c")];
        let script = Script::new(&plan);
        let (mut turn, mut random) = (0, Rng::with_seed(1));
        let taken: Vec<_> = (0..6).map(|_| script.choose(&mut turn, &mut random)).collect();
        assert_eq!(taken, [0, 1, 2, 0, 1, 2]);
        plan.requests[1].weight = 8;
        let script = Script::new(&plan);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[script.choose(&mut turn, &mut random)] += 1;
        }
        assert!((7800..8200).contains(&counts[1]), "{counts:?}");
        assert!((800..1200).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn a_body_brings_its_length() {
        let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
        plan.requests[0].method = Method::POST;
        plan.requests[0].body = Bytes::from_static(b"four");
        assert_eq!(sent(&plan, 0), "/ content-length: 4");
    }

    fn server() -> Server {
        let plan = plan_for("127.0.0.1:1".parse().unwrap());
        Server::all(&plan, &Limits::default(), Instant::now()).unwrap().remove(0)
    }

    /// Path and fields of the `request`th request of connection 3.
    fn sent(plan: &Plan, request: u64) -> String {
        let script = Script::new(plan);
        let (mut rendered, mut random) = (Rendered::default(), Rng::with_seed(1));
        let mut values = Values::of(Numbers { connection: 3, request }, &mut random);
        let request = &script.requests[0];
        request.render(&mut values, &mut rendered);
        let extra = Extra::of(request.content(&mut values).len() as u64);
        let server = server();
        request.with_head(&server, (&rendered, extra), |head| {
            let fields = head
                .fields
                .iter()
                .map(|field| format!(" {}: {}", field.name, String::from_utf8_lossy(field.value)));
            format!("{}{}", head.path, fields.collect::<String>())
        })
    }

    #[test]
    fn placeholders_make_each_request_another() {
        let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
        let field = |name: &'static str, value: &'static str| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        plan.requests[0] = RequestPlan {
            target: "/a?n={connection}-{request}".to_owned(),
            fields: vec![field("x", "{}"), field("cookie", "id={connection}"), field("y", "z")],
            has_placeholders: true,
            ..request("/")
        };
        assert_eq!(sent(&plan, 0), "/a?n=3-0 x: {} cookie: id=3 y: z");
        assert_eq!(sent(&plan, 12), "/a?n=3-12 x: {} cookie: id=3 y: z");
        plan.requests[0].has_placeholders = false;
        assert_eq!(
            sent(&plan, 12),
            "/a?n={connection}-{request} x: {} cookie: id={connection} y: z"
        );
    }
}

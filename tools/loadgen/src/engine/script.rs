//! What is asked, prepared once so that asking again costs little.

use bolide_semantics::{FieldName, FieldRef, RequestHead};
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderName, HeaderValue, Method};
use smallvec::SmallVec;

use super::checks::Answer;
use super::random::Random;
use crate::plan::{Plan, RequestPlan};

/// The fields of most requests fit into so many places on the stack.
const FIELDS_COUNT: usize = 16;

/// All requests of a plan.
#[derive(Debug)]
pub(super) struct Script {
    scheme: &'static str,
    authority: String,
    pub(super) requests: Vec<Request>,
    /// The weights summed up, request by request; empty when they are taken in turn.
    weights: Vec<u64>,
}

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    method: Method,
    target: String,
    fields: Vec<Line>,
    pub(super) body: Bytes,
    /// What its answer must be.
    pub(super) answer: Answer,
}

/// A field line whose name has been looked up.
#[derive(Debug)]
struct Line {
    known: Option<FieldName>,
    name: HeaderName,
    value: HeaderValue,
}

impl Line {
    fn new(name: HeaderName, value: HeaderValue) -> Self {
        Self { known: FieldName::lookup(name.as_str().as_bytes()), name, value }
    }

    #[inline]
    fn refer(&self) -> FieldRef<'_> {
        FieldRef {
            known: self.known,
            name: self.name.as_str(),
            value: self.value.as_bytes(),
            sensitive: self.value.is_sensitive(),
        }
    }
}

impl Request {
    fn new(plan: &RequestPlan) -> Self {
        let mut fields: Vec<_> = plan
            .fields
            .iter()
            .map(|(name, value)| Line::new(name.clone(), value.clone()))
            .collect();
        let has_content = matches!(plan.method, Method::POST | Method::PUT | Method::PATCH);
        if !plan.body.is_empty() || has_content {
            fields.push(Line::new(CONTENT_LENGTH, HeaderValue::from(plan.body.len())));
        }
        Self {
            method: plan.method.clone(),
            target: plan.target.clone(),
            fields,
            body: plan.body.clone(),
            answer: Answer::new(plan),
        }
    }

    /// Its fields, as they are sent.
    #[inline]
    pub(super) fn refs(&self) -> SmallVec<[FieldRef<'_>; FIELDS_COUNT]> {
        self.fields.iter().map(Line::refer).collect()
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
        Self {
            scheme: if plan.origin.is_https { "https" } else { "http" },
            authority: plan.origin.authority.clone(),
            requests: plan.requests.iter().map(Request::new).collect(),
            weights,
        }
    }

    /// The head of a request with its [fields](Request::refs).
    #[inline]
    pub(super) fn head<'a>(
        &'a self,
        request: &'a Request,
        fields: &'a [FieldRef<'a>],
    ) -> RequestHead<'a> {
        RequestHead {
            method: &request.method,
            scheme: self.scheme,
            authority: &self.authority,
            path: &request.target,
            protocol: None,
            fields,
        }
    }

    /// Which request is the next: in turn, or by weight.
    #[inline]
    pub(super) fn choose(&self, turn: &mut usize, random: &mut Random) -> usize {
        if let Some(sum) = self.weights.last() {
            let drawn = random.below(*sum);
            return self.weights.partition_point(|weight| *weight <= drawn);
        }
        let chosen = *turn;
        *turn = if chosen + 1 == self.requests.len() { 0 } else { chosen + 1 };
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{plan_for, request};

    #[test]
    fn requests_come_in_turn_or_by_weight() {
        let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
        plan.requests = vec![request("/a"), request("/b"), request("/c")];
        let script = Script::new(&plan);
        let (mut turn, mut random) = (0, Random::new(1, 0));
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
        let script = Script::new(&plan);
        let lines = script.requests[0].refs();
        let last = lines.last().unwrap();
        assert_eq!((last.name, last.value), ("content-length", &b"4"[..]));
    }
}

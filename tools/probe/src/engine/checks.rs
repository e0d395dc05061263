//! Checks of responses: status, header fields, length, and bytes of those that are sampled.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;

use aws_lc_rs::digest::{Context, SHA256};
use bolide_semantics::Head;
use bytes::Bytes;
use fastrand::Rng;
use flate2::write::GzDecoder;
use http::{HeaderName, HeaderValue, Method, StatusCode};

use crate::plan::{Expectations, ExpectedBody, Plan, RequestPlan};
use crate::report::Failure;

/// Expected body of a response.
#[derive(Debug)]
enum Body {
    Unknown,
    Exact(Bytes),
    /// Expected body when it is decoded.
    Gzip(Bytes),
    Sha256([u8; 32]),
    /// The first response, once it has come: its length and SHA-256.
    SameAsFirst(OnceLock<(u64, [u8; 32])>),
}

/// Expected response to one request.
#[derive(Debug)]
pub(super) struct ExpectedResponse {
    body: Body,
    /// RFC 9110 §9.3.2: the response to HEAD has no body, whatever its length is said to be.
    bodiless: bool,
    /// Header fields that it must have.
    fields: Vec<(HeaderName, HeaderValue)>,
    /// Statuses that are right; empty: those of the run.
    statuses: Vec<StatusCode>,
}

impl ExpectedResponse {
    pub(super) fn new(plan: &RequestPlan) -> Self {
        let bodiless = plan.method == Method::HEAD;
        let body = match &plan.response {
            _ if bodiless => Body::Unknown,
            None => Body::Unknown,
            Some(ExpectedBody::Exact(bytes)) => Body::Exact(bytes.clone()),
            Some(ExpectedBody::Gzip(bytes)) => Body::Gzip(bytes.clone()),
            Some(ExpectedBody::Sha256(digest)) => Body::Sha256(*digest),
            Some(ExpectedBody::SameAsFirst) => Body::SameAsFirst(OnceLock::new()),
        };
        let statuses = plan.step.as_ref().map(|step| step.statuses.clone()).unwrap_or_default();
        Self { body, bodiless, fields: plan.response_fields.clone(), statuses }
    }

    /// Returns whether the head has the fields that are expected.
    #[inline]
    pub(super) fn has_fields(&self, head: &Head) -> bool {
        self.fields.is_empty() || has_all(head, &self.fields)
    }
}

/// How responses are judged.
#[derive(Debug)]
pub(super) struct Judge {
    /// Empty: 200 to 399.
    statuses: Vec<StatusCode>,
    length: Option<u64>,
    /// Of 2^32 responses, so many are sampled.
    sampled: u64,
    trailers: Vec<(HeaderName, HeaderValue)>,
}

/// Returns whether `head` has each of `fields`, with these values.
fn has_all(head: &Head, fields: &[(HeaderName, HeaderValue)]) -> bool {
    fields.iter().all(|(name, value)| {
        head.fields().any(|field| field.name == name.as_str() && field.value == value)
    })
}

/// How many of 2^32 a share is: what the upper half of a random number is compared with.
pub(super) fn per_2_32(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * (1_u64 << 32) as f64) as u64
}

/// A SHA-256 that grows.
struct Digest(Box<Context>);

impl Digest {
    fn new() -> Self {
        Self(Box::new(Context::new(&SHA256)))
    }

    fn finish(self) -> [u8; 32] {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.0.finish().as_ref());
        digest
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Digest")
    }
}

/// Decodes a body and compares what comes out; no more of it is kept than the decoder's window.
struct Gunzip(Box<GzDecoder<Comparison>>);

/// Bytes that must still come. Takes nothing else.
struct Comparison(Bytes);

impl Write for Comparison {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if !self.0.starts_with(data) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let _ = self.0.split_to(data.len());
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Gunzip {
    fn new(expected: &Bytes) -> Self {
        Self(Box::new(GzDecoder::new(Comparison(expected.clone()))))
    }

    /// Returns whether all came, and the checksum is right.
    fn is_whole(&mut self) -> bool {
        self.0.try_finish().is_ok() && self.0.get_ref().0.is_empty()
    }
}

impl fmt::Debug for Gunzip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Gunzip")
    }
}

/// State of one body that is checked.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) bytes: u64,
    differs: bool,
    pub(super) sampled: bool,
    /// The trailers came and are right.
    pub(super) has_trailers: bool,
    digest: Option<Digest>,
    gunzip: Option<Gunzip>,
}

impl Judge {
    pub(super) fn new(plan: &Plan) -> Self {
        let Expectations { statuses, length, sampled_share, trailers } = &plan.expect;
        let sampled = per_2_32(*sampled_share);
        let (statuses, trailers) = (statuses.clone(), trailers.clone());
        Self { statuses, length: *length, sampled, trailers }
    }

    /// Returns whether the status is right.
    #[inline]
    pub(super) fn takes(&self, response: &ExpectedResponse, status: StatusCode) -> bool {
        let own = if response.statuses.is_empty() { &self.statuses } else { &response.statuses };
        if own.is_empty() {
            status.is_success() || status.is_redirection()
        } else {
            own.contains(&status)
        }
    }

    /// A response begins: decides whether it is looked at closely. One with a wrong status is not, and
    /// it sets no example.
    #[inline]
    pub(super) fn begin(
        &self,
        response: &ExpectedResponse,
        seen: &mut Seen,
        wrong_status: bool,
        random: &mut Rng,
    ) {
        if wrong_status {
            return;
        }
        let (looks, hashes) = match &response.body {
            Body::Unknown => (false, false),
            Body::Exact(_) | Body::Gzip(_) => (true, false),
            Body::Sha256(_) => (true, true),
            Body::SameAsFirst(first) if first.get().is_none() => {
                seen.digest = Some(Digest::new());
                return;
            }
            Body::SameAsFirst(_) => (true, true),
        };
        if looks && random.u64(..) >> 32 < self.sampled {
            seen.sampled = true;
            seen.digest = hashes.then(Digest::new);
            if let Body::Gzip(expected) = &response.body {
                seen.gunzip = Some(Gunzip::new(expected));
            }
        }
    }

    /// Returns whether these trailers are right.
    pub(super) fn takes_trailers(&self, trailers: &Head) -> bool {
        has_all(trailers, &self.trailers)
    }

    /// The response is complete: whether its body is right, and its trailers came.
    #[inline]
    pub(super) fn finish(
        &self,
        response: &ExpectedResponse,
        seen: &mut Seen,
    ) -> Result<(), Failure> {
        self.finish_body(response, seen)?;
        if self.trailers.is_empty() || seen.has_trailers { Ok(()) } else { Err(Failure::Trailers) }
    }

    #[inline]
    fn finish_body(&self, response: &ExpectedResponse, seen: &mut Seen) -> Result<(), Failure> {
        if seen.gunzip.take().is_some_and(|mut gunzip| !gunzip.is_whole()) {
            return Err(Failure::Body);
        }
        if let Body::Gzip(plain) = &response.body
            && seen.bytes >= plain.len() as u64
        {
            return Err(Failure::Body);
        }
        let digest = seen.digest.take().map(Digest::finish);
        let length = match &response.body {
            Body::Exact(bytes) => Some(bytes.len() as u64),
            Body::SameAsFirst(first) => first.get().map(|(length, _)| *length),
            Body::Unknown | Body::Gzip(_) | Body::Sha256(_) => None,
        };
        let asked_for = self.length.filter(|_| !response.bodiless);
        let is_right = |expected: Option<u64>| expected.is_none_or(|bytes| bytes == seen.bytes);
        if seen.differs || !is_right(length) || !is_right(asked_for) {
            return Err(Failure::Body);
        }
        let expected = match (&response.body, digest) {
            (Body::Sha256(expected), Some(_)) => expected,
            // The first to come decides, also when two threads finish at once.
            (Body::SameAsFirst(first), Some(digest)) => {
                let (bytes, expected) = first.get_or_init(|| (seen.bytes, digest));
                if *bytes != seen.bytes {
                    return Err(Failure::Body);
                }
                expected
            }
            _ => return Ok(()),
        };
        if digest == Some(*expected) { Ok(()) } else { Err(Failure::Body) }
    }
}

impl Seen {
    /// A piece of the body.
    #[inline]
    pub(super) fn data(&mut self, response: &ExpectedResponse, data: &[u8]) {
        if let Some(digest) = &mut self.digest {
            digest.0.update(data);
        } else if let Some(gunzip) = &mut self.gunzip {
            self.differs = self.differs || gunzip.0.write_all(data).is_err();
        } else if self.sampled
            && let Body::Exact(expected) = &response.body
        {
            let rest = expected.get(self.bytes as usize..).unwrap_or_default();
            self.differs |= !rest.starts_with(data);
        }
        self.bytes += data.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{plan_for, request};

    fn judged(response: &ExpectedResponse, judge: &Judge, pieces: &[&[u8]]) -> Result<(), Failure> {
        let mut seen = Seen::default();
        judge.begin(response, &mut seen, false, &mut Rng::with_seed(1));
        for piece in pieces {
            seen.data(response, piece);
        }
        judge.finish(response, &mut seen)
    }

    fn answer(body: ExpectedBody) -> ExpectedResponse {
        ExpectedResponse::new(&RequestPlan { response: Some(body), ..request("/") })
    }

    fn judge(share: f64) -> Judge {
        let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
        plan.expect.sampled_share = share;
        Judge::new(&plan)
    }

    #[test]
    fn exact_bytes_may_come_in_any_pieces() {
        let response = answer(ExpectedBody::Exact(Bytes::from_static(b"pong")));
        let all = judge(1.0);
        assert!(judged(&response, &all, &[b"p", b"on", b"g"]).is_ok());
        assert!(judged(&response, &all, &[b"pong", b""]).is_ok());
        for wrong in [&[&b"pang"[..]][..], &[b"pon"], &[b"pong", b"x"], &[]] {
            assert_eq!(judged(&response, &all, wrong), Err(Failure::Body), "{wrong:?}");
        }
        // The length is looked at even where the bytes are not.
        assert!(judged(&response, &judge(0.0), &[b"pang"]).is_ok());
        assert_eq!(judged(&response, &judge(0.0), &[b"pan"]), Err(Failure::Body));
    }

    #[test]
    fn a_coded_body_is_decoded_and_compared() {
        let line = |number: u32| format!("{}\n", number.wrapping_mul(2_654_435_761));
        let text: Vec<u8> = (0..20_000).flat_map(|number| line(number).into_bytes()).collect();
        let zip_at = |level, text: &[u8]| {
            let mut zip = flate2::write::GzEncoder::new(Vec::new(), level);
            zip.write_all(text).unwrap();
            zip.finish().unwrap()
        };
        let zip = |text: &[u8]| zip_at(flate2::Compression::fast(), text);
        let (response, all) = (answer(ExpectedBody::Gzip(text.clone().into())), judge(1.0));
        let right = zip(&text);
        assert!(judged(&response, &all, &[&right]).is_ok());
        let (begin, end) = right.split_at(11_111);
        assert!(judged(&response, &all, &[begin, b"", end]).is_ok());
        let mut other = text.clone();
        other[79_000] ^= 1;
        let mut broken = right.clone();
        broken[12_000] ^= 1;
        for (what, wrong) in [
            ("not coded", text.clone()),
            ("coded without being smaller", zip_at(flate2::Compression::none(), &text)),
            ("one other byte", zip(&other)),
            ("too short", zip(&text[..text.len() - 1])),
            ("too long", zip(&[&text[..], b"x"].concat())),
            ("cut off", right[..right.len() - 1].to_vec()),
            ("bytes behind the end", [&right[..], b"x"].concat()),
            ("a broken byte", broken),
            ("empty", Vec::new()),
        ] {
            assert_eq!(judged(&response, &all, &[&wrong]), Err(Failure::Body), "{what}");
        }
        // Without a look at the bytes no length is known.
        assert!(judged(&response, &judge(0.0), &[b"x"]).is_ok());
    }

    #[test]
    fn a_digest_stands_for_the_bytes() {
        let digest = aws_lc_rs::digest::digest(&SHA256, b"pong");
        let response = answer(ExpectedBody::Sha256(digest.as_ref().try_into().unwrap()));
        assert!(judged(&response, &judge(1.0), &[b"po", b"ng"]).is_ok());
        assert_eq!(judged(&response, &judge(1.0), &[b"pang"]), Err(Failure::Body));
    }

    #[test]
    fn the_first_response_decides_what_is_right() {
        let response = answer(ExpectedBody::SameAsFirst);
        assert!(judged(&response, &judge(1.0), &[b"one"]).is_ok());
        assert!(judged(&response, &judge(1.0), &[b"o", b"ne"]).is_ok());
        assert_eq!(judged(&response, &judge(1.0), &[b"two"]), Err(Failure::Body));
        assert_eq!(judged(&response, &judge(0.0), &[b"three"]), Err(Failure::Body));
    }

    #[test]
    fn a_head_request_is_not_asked_for_bytes() {
        let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
        plan.expect.length = Some(4);
        let judge = Judge::new(&plan);
        let body = Some(ExpectedBody::Exact(Bytes::from_static(b"pong")));
        let get = RequestPlan { response: body, ..request("/") };
        let head = ExpectedResponse::new(&RequestPlan { method: Method::HEAD, ..get.clone() });
        assert!(judged(&head, &judge, &[]).is_ok());
        assert_eq!(judged(&ExpectedResponse::new(&get), &judge, &[]), Err(Failure::Body));
    }

    #[test]
    fn a_share_of_the_responses_is_sampled() {
        let response = answer(ExpectedBody::Exact(Bytes::from_static(b"x")));
        let judge = judge(0.01);
        let mut random = Rng::with_seed(5);
        let sampled = (0..100_000).filter(|_| {
            let mut seen = Seen::default();
            judge.begin(&response, &mut seen, false, &mut random);
            seen.sampled
        });
        assert!((900..1100).contains(&sampled.count()));
    }

    #[test]
    fn statuses_are_right_from_200_to_399_or_as_said() {
        let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
        let response = ExpectedResponse::new(&request("/"));
        let default = Judge::new(&plan);
        let takes = |judge: &Judge, status| judge.takes(&response, status);
        assert!(takes(&default, StatusCode::OK) && takes(&default, StatusCode::NOT_MODIFIED));
        assert!(!takes(&default, StatusCode::NOT_FOUND));
        plan.expect.statuses = vec![StatusCode::NOT_FOUND];
        let missing = Judge::new(&plan);
        assert!(takes(&missing, StatusCode::NOT_FOUND) && !takes(&missing, StatusCode::OK));
    }
}

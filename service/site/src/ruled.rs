//! A handler under the rules of its route.

use std::rc::Rc;
use std::sync::Arc;

use bolide_compression::Compression;
use bolide_server::{Codec, Handler, Policy, Reply, Request, Response, StatusCode};

use crate::cors::Cors;
use crate::facts::Facts;
use crate::policy::RulePolicy;
use crate::rewrite::NoTarget;
use crate::rules::Rules;

impl Rules {
    /// The handler with requests as these rules edit them: what stands before it sees what the client has sent.
    #[must_use]
    pub fn edit(self: &Arc<Self>, handler: Rc<dyn Handler>) -> Edited {
        Edited { rules: Arc::clone(self), handler }
    }

    /// The handler, already [edited](Self::edit), with responses under these rules: one for each worker.
    #[must_use]
    pub fn apply(self: &Arc<Self>, handler: Rc<dyn Handler>) -> Ruled {
        let is_fixed = self.cors.is_none() && self.response.is_fixed();
        let policy = |is_secure, codec| -> Rc<dyn Policy> {
            let head = bolide_server::Head::default();
            let facts = Facts { head: &head, client: None, accepted: None, is_secure, user: None };
            Rc::new(RulePolicy { is_own: false, codec, ..self.policy(&facts, None) })
        };
        let both = |codec| Fixed { codec, policies: [policy(false, codec), policy(true, codec)] };
        let mut fixed = Vec::new();
        if is_fixed && self.has_policy() {
            fixed.push(both(None));
            if self.compression.is_some() {
                fixed.extend(Compression::codecs().into_iter().map(|codec| both(Some(codec))));
            }
        }
        Ruled { rules: Arc::clone(self), fixed: fixed.into(), handler }
    }

    fn policy(
        self: &Arc<Self>,
        facts: &Facts<'_>,
        allowed: Option<bolide_server::HeaderValue>,
    ) -> RulePolicy {
        let values = self.response.values(facts);
        RulePolicy {
            rules: Arc::clone(self),
            is_secure: facts.is_secure,
            values,
            allowed,
            codec: self.compression.as_ref().and_then(|_| Compression::choose(facts.head)),
            is_own: true,
        }
    }
}

/// A handler under rules.
pub struct Ruled {
    rules: Arc<Rules>,
    /// The policies of all requests, where these are alike but for the coding; the first has none.
    fixed: Rc<[Fixed]>,
    handler: Rc<dyn Handler>,
}

/// The policies of requests over cleartext and over TLS.
struct Fixed {
    codec: Option<&'static dyn Codec>,
    policies: [Rc<dyn Policy>; 2],
}

impl Ruled {
    /// Makes the rules hold for the response, wherever it comes from. Returns whether scripts of the request's origin may read it.
    fn set_policy(&self, request: &Request<'_>, facts: &Facts<'_>) -> bool {
        if let Some(plain) = self.fixed.first() {
            let fixed = if self.rules.compression.is_some() {
                let name = Compression::choose(facts.head).map(Codec::name);
                let of_name = |fixed: &&Fixed| fixed.codec.map(Codec::name) == name;
                self.fixed.iter().find(of_name).unwrap_or(plain)
            } else {
                plain
            };
            request.set_policy(Rc::clone(&fixed.policies[usize::from(facts.is_secure)]));
        } else if self.rules.has_policy() {
            let allowed = self.rules.cors.as_ref().and_then(|cors| cors.allowed(request));
            let is_allowed = allowed.is_some();
            request.set_policy(Rc::new(self.rules.policy(facts, allowed)));
            return is_allowed;
        }
        false
    }
}

impl Handler for Ruled {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let facts = Facts::of(request);
        let is_allowed = self.set_policy(request, &facts);
        if let Some(cors) = self.rules.cors.as_ref().filter(|_| Cors::is_preflight(request)) {
            return cors.preflight(is_allowed).into();
        }
        self.handler.handle(request)
    }

    fn takes(&self, path: &str) -> bool {
        self.handler.takes(path)
    }

    fn takes_whole_bodies(&self) -> bool {
        self.handler.takes_whole_bodies()
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.rules.body_bytes_max.or_else(|| self.handler.body_bytes_max())
    }

    fn on_refusal(&self, request: &mut Request<'_>) {
        self.set_policy(request, &Facts::of(request));
        self.handler.on_refusal(request);
    }
}

/// A handler that sees the request as rules edit it.
pub struct Edited {
    rules: Arc<Rules>,
    handler: Rc<dyn Handler>,
}

impl Handler for Edited {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let facts = Facts::of(request);
        let target = match self.rules.rewrite.target(&facts) {
            Ok(target) => target,
            Err(NoTarget) => return Response::error(StatusCode::BAD_REQUEST).into(),
        };
        if target.is_none() && self.rules.request.is_empty() {
            return self.handler.handle(request);
        }
        let head = self.rules.request.derive(&facts, target.as_deref());
        request.with_head(&head, |request| self.handler.handle(request))
    }

    fn takes(&self, path: &str) -> bool {
        self.handler.takes(path)
    }

    fn takes_whole_bodies(&self) -> bool {
        self.handler.takes_whole_bodies()
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.handler.body_bytes_max()
    }

    fn on_refusal(&self, request: &mut Request<'_>) {
        self.handler.on_refusal(request);
    }
}

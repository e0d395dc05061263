//! Options on which all parts must agree: hashes, so that a part with other options is found before the run.

use std::fmt::{self, Debug, Write};

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::options::Job;

/// A hash for each group of options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreement {
    requests: String,
    connections: String,
    load: String,
    responses: String,
}

impl Agreement {
    /// Of a command line. Threads, cores, addresses, certificates and outputs may differ from part to part.
    pub(super) fn of(job: &Job) -> Self {
        let plan = &job.plan;
        let connections =
            (plan.connections, plan.depth, plan.version, plan.timeouts.connect_timeout);
        Self {
            requests: hash(&(
                (&job.url, &plan.origin.authority),
                (&plan.requests, &plan.kind, &plan.scenario),
            )),
            connections: hash(&(connections, plan.http2, plan.tls.resume)),
            load: hash(&(&job.schedule, plan.seed)),
            responses: hash(&(&plan.expect, plan.timeouts.request_timeout)),
        }
    }

    /// Returns what differs, in words. `None`: nothing.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let groups = [
            ("requests (URL, -X, -H, bodies, steps)", self.requests != other.requests),
            ("connections (-c, -m, version)", self.connections != other.connections),
            ("load (-n, -D, --rate, --seed …)", self.load != other.load),
            ("expected responses", self.responses != other.responses),
        ];
        let differing: Vec<_> =
            groups.iter().filter(|(_, differ)| *differ).map(|(name, _)| *name).collect();
        (!differing.is_empty()).then(|| differing.join(", "))
    }
}

/// A hash of what a value shows of itself: the parts have the same program.
fn hash(value: &impl Debug) -> String {
    let mut context = Hashed(digest::Context::new(&digest::SHA256));
    write!(context, "{value:?}").expect("a hash takes all text");
    STANDARD.encode(&context.0.finish().as_ref()[..12])
}

struct Hashed(digest::Context);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

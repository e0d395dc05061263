//! How long one page took, as `bolide load` says it.

use serde::{Deserialize, Serialize};

/// One page, in milliseconds from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    /// `None` where the requests wait for each other: they don't begin with the page.
    pub(super) parts: Option<Parts>,
    /// All objects were complete.
    pub(super) all_ms: f64,
}

/// When some of the objects were complete.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Parts {
    pub(super) first_ms: f64,
    pub(super) half_ms: f64,
    pub(super) three_quarters_ms: f64,
}

/// Report of `bolide load` about a page.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Loaded {
    phases: Vec<Phase>,
}

#[derive(Debug, Clone, Deserialize)]
struct Phase {
    /// Since the connections are there.
    elapsed_ns: u64,
    counts: Counts,
    /// Over TCP until its handshake was complete, over QUIC until there was TLS.
    connect: Opening,
    handshake: Opening,
    latency: Latency,
}

#[derive(Debug, Clone, Deserialize)]
struct Opening {
    count: u64,
    max_ns: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct Counts {
    succeeded: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct Latency {
    min_ns: u64,
    max_ns: u64,
    percentiles_ns: Percentiles,
}

#[derive(Debug, Clone, Deserialize)]
struct Percentiles {
    p50: u64,
    p75: u64,
}

impl Loaded {
    /// Reads its JSON.
    pub(super) fn read(text: &str, objects: u32) -> Result<Self, String> {
        let loaded: Self = serde_json::from_str(text)
            .map_err(|error| format!("no JSON of `bolide load`: {error}"))?;
        match &loaded.phases[..] {
            [phase] if phase.counts.succeeded == u64::from(objects) => Ok(loaded),
            [phase] => Err(format!("{} of {objects} objects came", phase.counts.succeeded)),
            _ => Err("`bolide load` had other phases".to_owned()),
        }
    }

    /// When the objects were there.
    pub(super) fn sample(&self, is_concurrent: bool) -> Sample {
        let Phase { elapsed_ns, connect, handshake, latency, .. } = &self.phases[0];
        let ms = |ns: u64| ns as f64 / 1e6;
        let opening = if connect.count > 0 { connect } else { handshake };
        let all_ms = ms(opening.max_ns + elapsed_ns);
        // Connecting comes before all of them.
        let before = all_ms - ms(latency.max_ns);
        let parts = is_concurrent.then(|| Parts {
            first_ms: before + ms(latency.min_ns),
            half_ms: before + ms(latency.percentiles_ns.p50),
            three_quarters_ms: before + ms(latency.percentiles_ns.p75),
        });
        Sample { parts, all_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"phases":[{"elapsed_ns":400000000,"counts":{"succeeded":32},"connect":{"count":0,"max_ns":0},
        "handshake":{"count":1,"max_ns":50000000},"latency":{"min_ns":100000000,
        "max_ns":300000000,"percentiles_ns":{"p50":150000000,"p75":200000000,"p99":300000000}}}]}"#;

    #[test]
    fn a_page_is_there_when_its_last_object_is() {
        let loaded = Loaded::read(JSON, 32).unwrap();
        let sample = loaded.sample(true);
        let parts = sample.parts.unwrap();
        let found = [parts.first_ms, parts.half_ms, parts.three_quarters_ms, sample.all_ms];
        assert_eq!(found.map(|ms| ms.round() as u32), [250, 300, 350, 450]);
        assert_eq!(loaded.sample(false), Sample { parts: None, all_ms: 450.0 });
        assert_eq!(Loaded::read(JSON, 33).unwrap_err(), "32 of 33 objects came");
        assert!(Loaded::read("{}", 1).unwrap_err().contains("no JSON of `bolide load`"));
    }
}

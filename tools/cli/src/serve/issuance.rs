//! Certificates by ACME while the server runs: what is ordered, what it says, and what is shown of it.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bolide::metrics::{Exposition, Metric, MetricSource};
use bolide_acme::{Acme, Challenge, Event, NameState, Responses, Results, Settings};
use rustix::fs::{Access, access};

/// The orders of this process, if there are any, and their results.
#[derive(Debug)]
pub(super) struct Issuance {
    results: Results,
    acme: Option<Acme>,
}

impl Issuance {
    /// Opens the storage, and puts what is stored there in force.
    pub(super) fn open(results: &Results, settings: Option<&Settings>) -> Result<Self, String> {
        let acme = settings.map(|settings| open(results, settings)).transpose()?;
        Ok(Self { results: results.clone(), acme })
    }

    /// Starts to order: listeners are open, and no predecessor takes their connections.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        let Some(acme) = &mut self.acme else { return Ok(()) };
        acme.begin().map_err(|error| format!("[acme]: can't start a thread: {error}"))
    }

    /// Takes over the settings of a reload.
    pub(super) fn change(&mut self, settings: Option<&Settings>) -> Result<(), String> {
        match (&self.acme, settings) {
            (Some(acme), Some(settings)) => {
                acme.change(settings.clone()).map_err(|what| unusable(&what))
            }
            (None, Some(settings)) => {
                self.acme = Some(open(&self.results, settings)?);
                self.begin()
            }
            (_, None) => {
                self.acme = None;
                self.results.forget();
                Ok(())
            }
        }
    }

    /// A successor orders from now on.
    pub(super) fn hand_over(&self) {
        if let Some(acme) = &self.acme {
            acme.hand_over();
        }
    }

    /// Returns what listeners and metrics take from it.
    pub(super) fn results(&self) -> &Results {
        &self.results
    }

    /// The responses for a CA that validates by HTTP.
    pub(super) fn responses(&self, settings: Option<&Settings>) -> Option<&Responses> {
        let by_http = settings.is_some_and(|settings| settings.challenge == Challenge::Http01);
        by_http.then_some(&self.results.responses)
    }
}

fn open(results: &Results, settings: &Settings) -> Result<Acme, String> {
    let report = |event: &Event| eprintln!("bolide: {event}");
    Acme::open(settings.clone(), results, report).map_err(|what| unusable(&what))
}

fn unusable(what: &str) -> String {
    format!("[acme] storage {what}")
}

/// Checks whether the storage could be used, without making it.
pub(super) fn check(settings: Option<&Settings>) -> Result<(), String> {
    let Some(Settings { storage, .. }) = settings else { return Ok(()) };
    let failed = |error: io::Error| unusable(&format!("{}: {error}", storage.display()));
    let existing = storage.ancestors().find(|path| path.exists());
    let existing = existing.filter(|path| !path.as_os_str().is_empty());
    let existing = existing.unwrap_or_else(|| Path::new("."));
    if !existing.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    access(existing, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| failed(error.into()))
}

/// A line for the start about the certificate of a name.
pub(super) fn line(state: &NameState) -> String {
    let NameState { name, expiry, .. } = state;
    match expiry.map(|expiry| expiry.duration_since(SystemTime::now()).unwrap_or_default()) {
        Some(valid) => {
            let hours = valid.as_secs() / 3600;
            format!(
                "Certificate: {name} by ACME, valid for {} days and {} h",
                hours / 24,
                hours % 24
            )
        }
        None => format!(
            "Certificate: {name} by ACME, none yet: TLS handshakes for it fail until the CA has issued it"
        ),
    }
}

const EXPIRY: Metric = gauge(
    "bolide_acme_certificate_expiry_timestamp_seconds",
    "End of the validity of the certificate in force; none: there is no certificate",
);

const LAST_FAILURE: Metric =
    gauge("bolide_acme_last_failure_timestamp_seconds", "When an order failed last, if one has");

const NEXT_ORDER: Metric =
    gauge("bolide_acme_next_order_timestamp_seconds", "When a certificate is ordered next");

const ORDERS: Metric = Metric {
    name: "bolide_acme_orders_total",
    kind: "counter",
    labels: "name, result",
    help: "Orders of certificates",
};

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: "gauge", labels: "name", help }
}

/// Returns what is shown of all names.
pub(super) fn source(results: &Results) -> MetricSource {
    let results = results.clone();
    MetricSource::new(move |text| write(text, &results.states()))
}

fn write(text: &mut Exposition, states: &[NameState]) {
    let seconds = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
    };
    for state in states {
        if let Some(expiry) = state.expiry {
            text.sample(&EXPIRY, &[("name", &state.name)], seconds(expiry));
        }
    }
    for state in states {
        if let Some(failure) = state.last_failure {
            text.sample(&LAST_FAILURE, &[("name", &state.name)], seconds(failure));
        }
    }
    for state in states {
        // One that is due is ordered now.
        let next = state.next_order.max(SystemTime::now());
        text.sample(&NEXT_ORDER, &[("name", &state.name)], seconds(next));
    }
    for state in states {
        for (result, count) in [("issued", state.issued_count), ("failed", state.failed_count)] {
            text.sample(&ORDERS, &[("name", &state.name), ("result", result)], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_metric_of_acme() {
        let page = include_str!("../../../../docs/operate.md");
        for Metric { name, kind, labels, help } in [&EXPIRY, &LAST_FAILURE, &NEXT_ORDER, &ORDERS] {
            let row = format!("| `{name}` | {kind} | {labels} | {help} |");
            assert!(page.contains(&row), "docs/operate.md has no row\n{row}");
        }
        assert_eq!(page.lines().filter(|line| line.starts_with("| `bolide_acme_")).count(), 4);
    }

    #[test]
    fn samples_say_what_is_known_of_a_name() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let with = NameState {
            name: "a.org".to_owned(),
            expiry: Some(at(5_000_000_000)),
            last_failure: None,
            next_order: at(4_900_000_000),
            issued_count: 2,
            failed_count: 0,
        };
        let without = NameState {
            name: "b.org".to_owned(),
            expiry: None,
            last_failure: Some(at(4_000_000_000)),
            next_order: at(0),
            issued_count: 0,
            failed_count: 3,
        };
        let mut text = Exposition::new();
        write(&mut text, &[with.clone(), without.clone()]);
        let text = text.into_text();
        for sample in [
            "bolide_acme_certificate_expiry_timestamp_seconds{name=\"a.org\"} 5000000000",
            "bolide_acme_last_failure_timestamp_seconds{name=\"b.org\"} 4000000000",
            "bolide_acme_next_order_timestamp_seconds{name=\"a.org\"} 4900000000",
            "bolide_acme_orders_total{name=\"b.org\",result=\"failed\"} 3",
        ] {
            assert!(text.contains(sample), "{sample}\n{text}");
        }
        assert!(!text.contains("expiry_timestamp_seconds{name=\"b.org\"}"), "{text}");
        assert!(
            line(&without).contains("handshakes for it fail") && line(&with).contains("valid for")
        );
    }

    #[test]
    fn a_storage_that_can_not_be_made_is_found_by_a_check() {
        let settings = |storage: &str| Settings {
            directory: "https://ca.test/".to_owned(),
            contact: Vec::new(),
            storage: storage.into(),
            challenge: Challenge::default(),
            trust: None,
            names: Vec::new(),
            limits: bolide_acme::AcmeLimits::default(),
        };
        check(None).unwrap();
        check(Some(&settings("bolide-no-such/below"))).unwrap();
        assert!(!Path::new("bolide-no-such").exists());
        let file = std::env::current_exe().unwrap().join("below");
        let said = check(Some(&settings(&file.display().to_string()))).unwrap_err();
        assert!(said.starts_with("[acme] storage /") && said.contains("not a directory"), "{said}");
    }
}

//! The `Server-Timing` field (W3C Server Timing).

use std::fmt::Write;
use std::time::Instant;

use http::header::{HeaderName, HeaderValue};

use crate::Response;

static SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Adds the field to a response that came later: the time since the head arrived.
pub(crate) fn add_total(response: &mut Response, began: Instant) {
    add(response, &[("total", began.elapsed().as_secs_f64())]);
}

/// The field's value for an exchange that is answered now.
pub(crate) fn total(began: Instant) -> String {
    value(&[("total", began.elapsed().as_secs_f64())])
}

/// Adds the field with these times, in seconds.
pub(crate) fn add(response: &mut Response, seconds: &[(&str, f64)]) {
    if let Ok(value) = HeaderValue::try_from(value(seconds)) {
        response.fields.push(SERVER_TIMING.clone(), value);
    }
}

/// Durations are in milliseconds.
fn value(seconds: &[(&str, f64)]) -> String {
    let mut text = String::new();
    for (name, seconds) in seconds {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a string never fails.
        let _ = write!(text, "{comma}{name};dur={:.4}", seconds * 1000.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_milliseconds() {
        let text = value(&[("route", 0.000_001_2), ("handler", 1.5)]);
        assert_eq!(text, "route;dur=0.0012, handler;dur=1500.0000");
    }
}

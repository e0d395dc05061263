//! Runs cases against a server and says which of them it answers otherwise.

use crate::case::{After, Case, Outcome};
use crate::target::Target;
use crate::wire::{Next, Response, Wire};

/// Requests up to this length are also sent byte by byte.
const ONE_BY_ONE_BYTES_MAX: usize = 400;

const PROBE: &[u8] = b"GET /ping HTTP/1.1\r\nHost: probe\r\n\r\n";

/// Events that were observed.
#[derive(Debug)]
struct Observed {
    responses: Vec<Response>,
    interim: Vec<u16>,
    end: End,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Open,
    Closed,
    Silence,
    Garbage(String),
}

/// Runs every case, whole and byte by byte.
#[track_caller]
pub fn check(target: &Target, cases: &[Case]) {
    let mut failures = Vec::new();
    for case in cases {
        let found = deviation(target, case);
        match (found, target.expected.reason(case.name)) {
            (None, None) | (Some(_), Some(_)) => {}
            (Some(found), None) => failures.push(format!("{}: {found}", case.name)),
            (None, Some(_)) => {
                failures.push(format!("{}: the expected deviation is gone", case.name));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} cases against {}:\n{}",
        failures.len(),
        cases.len(),
        target.address,
        failures.join("\n")
    );
}

/// Returns what the server does otherwise, if anything.
fn deviation(target: &Target, case: &Case) -> Option<String> {
    let short = case.request.len() <= ONE_BY_ONE_BYTES_MAX;
    for one_by_one in [false, true].into_iter().take(if short { 2 } else { 1 }) {
        let observed = match observe(target, case, one_by_one) {
            Ok(observed) => observed,
            Err(error) => return Some(format!("no connection: {error}")),
        };
        if let Err(why) = judge(target, case, &observed) {
            let how = if one_by_one { "byte by byte" } else { "whole" };
            return Some(format!("sent {how}: {why}"));
        }
    }
    None
}

fn observe(target: &Target, case: &Case, one_by_one: bool) -> std::io::Result<Observed> {
    let mut wire = Wire::connect(&target.address)?;
    wire.send(&case.request, one_by_one);
    if case.half_close {
        wire.half_close();
    }
    let mut observed = Observed { responses: Vec::new(), interim: Vec::new(), end: End::Open };
    while observed.responses.len() < case.responses_max() {
        match wire.next(case.heads.contains(&observed.responses.len())) {
            Next::Response(response) if response.status < 200 => {
                observed.interim.push(response.status);
                if let (100, Some(rest)) = (response.status, &case.rest) {
                    wire.send(rest, one_by_one);
                }
            }
            Next::Response(response) => {
                let broken = !response.complete;
                observed.responses.push(response);
                if broken {
                    observed.end = End::Closed;
                    return Ok(observed);
                }
            }
            next => {
                observed.end = end(next);
                return Ok(observed);
            }
        }
    }
    wire.send(PROBE, false);
    observed.end = end(wire.next(false));
    Ok(observed)
}

fn end(next: Next) -> End {
    match next {
        Next::Response(response) if response.status == 200 && response.complete => End::Open,
        Next::Response(response) => {
            End::Garbage(format!("the next request is answered with {}", response.status))
        }
        Next::Closed => End::Closed,
        Next::Silence => End::Silence,
        Next::Garbage(why) => End::Garbage(why),
    }
}

fn judge(target: &Target, case: &Case, observed: &Observed) -> Result<(), String> {
    if let Some(broken) = observed.responses.iter().find(|response| !response.complete) {
        if case.may_break_off {
            return Ok(());
        }
        return Err(format!("the response {} breaks off: {broken:?}", broken.status));
    }
    if !case.outcomes(target.strict).any(|outcome| fits(outcome, observed)) {
        let statuses: Vec<u16> =
            observed.responses.iter().map(|response| response.status).collect();
        let allowed: Vec<&Outcome> = case.outcomes(target.strict).collect();
        return Err(format!(
            "answered {statuses:?}, then {:?}; allowed: {allowed:?}",
            observed.end
        ));
    }
    if case.rest.is_some() && observed.interim != [100] {
        return Err(format!("interim responses {:?}, not one 100", observed.interim));
    }
    if case.rest.is_none() && !observed.interim.is_empty() {
        return Err(format!("interim responses {:?} that nobody asked for", observed.interim));
    }
    let Some(last) = observed.responses.last() else { return Ok(()) };
    for (name, value) in &case.fields {
        let field = last.field(name);
        let fits = field.is_some_and(|field| value.is_empty() || field == *value);
        if !fits {
            return Err(format!("field {name} is {field:?}, not {value:?}"));
        }
    }
    let answers_head = case.heads.contains(&(observed.responses.len() - 1));
    match &case.content {
        _ if answers_head => Ok(()),
        Some(content) if matches!(last.status, 200 | 206) && last.content != *content => {
            Err(format!("content {:?}", String::from_utf8_lossy(&last.content)))
        }
        _ => Ok(()),
    }
}

fn fits(outcome: &Outcome, observed: &Observed) -> bool {
    let responses = outcome.responses.len() == observed.responses.len()
        && outcome
            .responses
            .iter()
            .zip(&observed.responses)
            .all(|(statuses, response)| statuses.contains(&response.status));
    responses
        && match outcome.after {
            After::Open => observed.end == End::Open,
            After::Closed => observed.end == End::Closed,
            After::Any => matches!(observed.end, End::Open | End::Closed),
        }
}

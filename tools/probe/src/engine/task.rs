//! From a plan to what the threads work with; finds what is wrong before anything is sent.

use std::sync::Arc;
use std::time::Instant;

use bolide_buffers::{ReceiveBuffer, SendQueue};
use bolide_connection::{Connection, Limits};
use bolide_semantics::{Context, End, Head};
use fastrand::Rng;

use super::checks::{Judge, per_2_32};
use super::mistake::Mistake;
use super::script::{Extra, Script};
use super::servers::Server;
use super::template::{Numbers, Rendered, Values};
use super::thread_state::Task;
use super::websocket::WebSocketTask;
use crate::patient::patient_limits;
use crate::plan::{Http2Plan, Load, Origin, Phase, Plan, RequestKind, ServerAddress, Version};

/// The largest window of HTTP/2, in bytes (RFC 9113 §6.9.1).
const WINDOW_BYTES_MAX: u32 = 0x7fff_ffff;

/// The limits of the connections.
pub(super) fn limits(plan: &Plan) -> Limits {
    let Http2Plan {
        stream_window_bytes,
        connection_window_bytes,
        max_frame_bytes,
        header_table_bytes,
    } = plan.http2;
    let mut limits = patient_limits(plan.timeouts.connect_timeout);
    let h2 = Arc::make_mut(&mut limits.h2);
    if let Some(bytes) = stream_window_bytes {
        h2.windows.stream_window_bytes = bytes;
        h2.windows.stream_window_bytes_max = bytes;
    }
    if let Some(bytes) = connection_window_bytes {
        h2.windows.connection_window_bytes = bytes;
        h2.windows.connection_window_bytes_max = bytes;
    }
    h2.frames.frame_bytes = max_frame_bytes.unwrap_or(h2.frames.frame_bytes);
    h2.heads.header_table_bytes = header_table_bytes.unwrap_or(h2.heads.header_table_bytes);
    limits
}

/// Everything that the threads share.
pub(super) fn task(plan: &Plan, limits: &Limits, epoch: Instant) -> Result<Task, Mistake> {
    check_numbers(plan)?;
    let servers = Server::all(plan, limits, epoch)?;
    let script = Script::new(plan);
    check_requests(plan, (&script, &servers), limits, epoch)?;
    let (events, websocket) = match plan.kind {
        RequestKind::Requests => (None, None),
        RequestKind::Events(of) => (Some(of), None),
        RequestKind::WebSocket(of) => (None, Some(WebSocketTask::new(plan, of))),
    };
    Ok(Task {
        judge: Judge::new(plan),
        script,
        servers,
        depth: plan.depth,
        timeout_ns: u64::try_from(plan.timeouts.request_timeout.as_nanos())
            .unwrap_or(u64::MAX / 2)
            .min(u64::MAX / 2),
        events,
        scenario: plan.scenario.clone(),
        recorded: plan.recorded_share.map(per_2_32),
        websocket,
        epoch,
    })
}

fn check_numbers(plan: &Plan) -> Result<(), Mistake> {
    let servers_count = plan.servers_count();
    let origins = || {
        let others = plan.scenario.iter().flat_map(|scenario| &scenario.others);
        std::iter::once(&plan.origin).chain(others)
    };
    let has_unix = |origin: &Origin| {
        origin.addresses.iter().any(|address| matches!(address, ServerAddress::Unix(_)))
    };
    let wrong = [
        (plan.requests.is_empty(), "there is nothing to ask: a plan needs at least one request"),
        (
            plan.requests.iter().all(|request| request.weight == 0),
            "every request has weight 0: at least one must be taken",
        ),
        (origins().any(|origin| origin.addresses.is_empty()), "a server has no address"),
        (
            plan.scenario.is_some() && plan.requests.iter().any(|request| request.step.is_none()),
            "a request of a scenario is not a step",
        ),
        (
            plan.scenario.is_some() && plan.kind != RequestKind::Requests,
            "a scenario has no streams of events, calls or messages",
        ),
        (
            plan.scenario.as_ref().is_some_and(|of| of.users * servers_count < plan.connections),
            "some connections would have no user: there must be at least as many users as connections to a server",
        ),
        (
            plan.connections > 0 && plan.connections < servers_count,
            "a server would have no connection: there must be at least as many connections",
        ),
        (plan.connections == 0, "0 connections carry no request: at least 1 is needed"),
        (plan.depth == 0, "0 requests in flight are none: at least 1 is needed"),
        (plan.threads == 0, "0 threads do no work: at least 1 is needed"),
        (
            plan.version == Version::Http3 && !origins().all(|origin| origin.is_https),
            "HTTP/3 needs TLS: every URL must begin with https://",
        ),
        (
            plan.version == Version::Http3 && origins().any(has_unix),
            "HTTP/3 needs UDP, which a Unix socket of a stream is not",
        ),
        (
            plan.http2.stream_window_bytes.is_some_and(|bytes| bytes > WINDOW_BYTES_MAX),
            "a stream's window has at most 2147483647 bytes",
        ),
        (
            plan.http2
                .connection_window_bytes
                .is_some_and(|bytes| !(65_535..=WINDOW_BYTES_MAX).contains(&bytes)),
            "a connection's window has between 65535 and 2147483647 bytes",
        ),
        (
            plan.http2.max_frame_bytes.is_some_and(|bytes| !(16_384..=16_777_215).contains(&bytes)),
            "a frame has at most between 16384 and 16777215 bytes",
        ),
        (
            plan.http2.header_table_bytes.is_some_and(|bytes| bytes > 65_535),
            "the table of header compression has at most 65535 bytes",
        ),
    ];
    match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, sentence)) => Err(Mistake::new(*sentence)),
        None => Ok(()),
    }
}

/// Checks a phase.
pub(super) fn check_phase(phase: &Phase) -> Result<(), Mistake> {
    if let Load::Open { rate, .. } = phase.load
        && !(rate.is_finite() && rate > 0.0)
    {
        return Err(Mistake::new(format!(
            "{rate} is not a rate: it must be above 0 requests per second"
        )));
    }
    if phase.until.requests.is_none() && phase.until.time.is_none() {
        return Err(Mistake::new("a phase must end: after a number of requests, or after a time"));
    }
    Ok(())
}

/// Sends each request on a connection that leads nowhere.
fn check_requests(
    plan: &Plan,
    (script, servers): (&Script, &[Server]),
    limits: &Limits,
    now: Instant,
) -> Result<(), Mistake> {
    let (mut input, mut output, mut head) =
        (ReceiveBuffer::new(0), SendQueue::new(), Head::default());
    let mut rendered = Rendered::default();
    let scenario = plan.scenario.as_deref();
    for (request, planned) in script.requests.iter().zip(&plan.requests) {
        for mut connection in
            [Connection::http1(limits, now), Connection::with_prior_knowledge(limits, now)]
        {
            let mut cx = Context {
                input: &mut input,
                output: &mut output,
                output_limit: usize::MAX,
                head: &mut head,
                now,
            };
            let mut random = Rng::with_seed(plan.seed);
            let numbers = Numbers { connection: u64::MAX, request: u64::MAX };
            let captured = vec![Some("x".into()); scenario.map_or(0, |of| of.captures_count)];
            let mut values = Values {
                row: scenario.map_or(&[], |of| of.row(0)),
                captured: &captured,
                ..Values::of(numbers, &mut random)
            };
            request.render(&mut values, &mut rendered);
            let content = request.content(&mut values);
            let end = if content.is_empty() { End::Yes } else { End::No };
            let extra = Extra::of(content.len() as u64);
            let server = &servers[request.server];
            let sent = request.with_head(server, (&rendered, extra), |head| {
                connection.send_request(&mut cx, head, end)
            });
            if sent.is_err() {
                let (method, target) = (&planned.method, &planned.target);
                return Err(Mistake::new(format!(
                    "`{method} {target}` can't be sent to `{}`: the target must begin with `/`, and no name or value of its fields may hold control characters",
                    server.authority
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::plan_for;
    use crate::plan::TlsTrust;

    #[test]
    fn each_mistake_is_one_sentence() {
        type Spoil = fn(&mut Plan);
        let spoils: [(Spoil, &str); 8] = [
            (|plan| plan.requests.clear(), "nothing to ask"),
            (|plan| plan.connections = 0, "0 connections"),
            (|plan| plan.depth = 0, "in flight"),
            (|plan| plan.http2.max_frame_bytes = Some(1), "16384"),
            (|plan| plan.http2.connection_window_bytes = Some(1), "65535"),
            (|plan| plan.requests[0].target = "no path".to_owned(), "`GET no path` can't be sent"),
            (|plan| plan.version = Version::Http3, "must begin with https://"),
            (
                |plan| {
                    plan.origin.is_https = true;
                    plan.tls.trust = TlsTrust::Roots(bytes::Bytes::from_static(b"nothing"));
                },
                "trusted certificates",
            ),
        ];
        for (spoil, expected) in spoils {
            let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
            spoil(&mut plan);
            let mistake = task(&plan, &limits(&plan), Instant::now()).unwrap_err().to_string();
            assert!(mistake.contains(expected), "{mistake}");
            assert!(!mistake.contains('\n'), "{mistake}");
        }
    }
}

//! `--print-config`: all defaults as a file, with what each limit is for.

use std::fmt::Write as _;

use bolide::{ConnectionLimits, Http1Limits, Http2Limits, Limits, LogLimits, ProxyLimits};

use super::limit_tables::{
    CONNECTION, FILES, FilesLimits, HEALTH, HTTP1, HTTP2, HealthLimits, LOG, LOOP, OFFLOAD,
    OffloadRows, PROXY, SERVER, Table, WEBSOCKET, WEBSOCKET_KEPT, WebSocketLimits,
};

/// What each limit is for, written from the constants.
const LIMITS: &str = include_str!("../../../../docs/LIMITS.md");

/// The widest line, in letters.
const WIDTH: usize = 100;

const HEAD: &str = "\
# The configuration of `bolide serve --config FILE`: all defaults. docs/configuration.md has an example.
# Flags win over this file. Paths start at its folder. Times have a unit (\"250ms\", \"30s\", \"5min\",
# \"1h\"); bytes may have one (65536 or \"64KiB\"). SIGHUP reads the file again, and connections go on:
# what needs a restart instead says so here.

# How many threads, each with an event loop of its own. Default: one per core. Needs a restart.
# workers = 2

# How long open exchanges may go on after SIGTERM or SIGINT.
drain = \"30s\"

# Tell clients in a Server-Timing field what their answers took.
server-timing = false

# Whom to become once all listen, NAME or NAME:GROUP: for a start as root. Default: nobody else.
# user = \"bolide\"

# Where connections are accepted: an address and a port (0: any that is free), or unix:/path. A restart is
# needed for other addresses, but not for other certificates.
[[listen]]
http = \"127.0.0.1:8080\"

# HTTPS: HTTP/2 and HTTP/1.1 by ALPN. Without `cert` and `key`, a certificate is made at each start.
[[listen]]
https = \"127.0.0.1:8443\"
# The chain and its key, in PEM; of several, each client gets the one for the name that it asks for.
# cert = [\"example.org.pem\", \"example.com.pem\"]
# key = [\"example.org.key\", \"example.com.key\"]
# Whose certificates clients may show, and whether they have to: \"required\" (default) or \"optional\".
# client-ca = \"clients.pem\"
# client-certificate = \"required\"

# What is answered, by host (\"example.org\", \"*.example.org\"; default: any) and path: one with a slash at
# its end stands for all that is below it (default: \"/\"), others for themselves; {name} stands for one
# segment, {*rest} for the rest. The longest path counts, and a route with the host before one without.
[[route]]
builtin = true
# Where the results of speed tests by ndt7 are kept: a folder that is there.
# ndt7-archive = \"speed-tests\"

# [[route]]
# host = [\"example.org\", \"*.example.org\"]
# path = \"/assets/\"
# root = \"site/assets\"
# index = [\"index.html\"]
# listing = false
# not-found = \"404.html\"
# cache-control = [\"*.css=max-age=60\"]
# compress = false
# precompressed = true
# hidden = false
# sendfile = true
";

const ROUTES: &str = "
# With `root` and `proxy`: what has no file is asked upstream.
# [[route]]
# path = \"/api/\"
# proxy = \"backend\"

# [[route]]
# path = \"/old/\"
# redirect = \"https://example.org/new/\"
# status = 308

# [[route]]
# path = \"/health\"
# respond = \"fine\"
# status = 200
# content-type = \"text/plain; charset=utf-8\"

# http:// is HTTP/1.1, h2c:// HTTP/2 without TLS, https:// whichever of both TLS agrees on. A server with
# `http1-tunnels` is asked for WebSockets over HTTP/1.1 where it speaks HTTP/2 without them; default: with
# https:// alone.
# [[upstream]]
# name = \"backend\"
# servers = [\"http://127.0.0.1:9000\", { url = \"h2c://127.0.0.1:9001\", weight = 2, http1-tunnels = false }]
# balance = \"round-robin\" # or \"least-requests\", \"power-of-two\"
# origin = \"replace\" # what Forwarded and X-Forwarded-* say: or \"append\", \"hide\"
# dot-segments = \"refuse\" # paths with . or .. for a segment: or \"pass\"
# rewrite-host = false
# ca = \"upstreams.pem\"
# insecure = false
# The path that each server is asked for from time to time; none: no checks. The statuses of one that is
# well.
# health = \"/health\"
# health-statuses = \"200-299\"
";

const OBSERVED: &str = "
# Events on the standard error: off, error, warn, info, debug. `format`, which needs a restart, is \"text\" or
# \"json\".
[log]
level = \"warn\"
format = \"text\"

# Other levels for some targets, in quotes; docs/operate.md lists them.
# [log.targets]
# \"bolide::tls\" = \"debug\"

# Metrics, health and readiness, on a listener of their own. Needs a restart.
# [admin]
# listen = \"127.0.0.1:9090\"
# Let other machines reach it. It asks nobody who they are.
# public = false

# Where the CPU time of requests goes: measured in one turn of the loops of so many, and printed at the end;
# with [admin], it stands on /metrics, too.
# [profile]
# one-in = 64

# A line for each request, in this file (\"-\": the standard output): \"common\", \"combined\" or \"json\". Another
# file is taken over while the server runs; the rest needs a restart.
# [access-log]
# file = \"access.log\"
# format = \"combined\"
";

/// The whole file.
pub(crate) fn print() -> String {
    let mut out = HEAD.to_owned();
    rows(&mut out, &FILES, &mut FilesLimits::default(), true);
    rows(&mut out, &OFFLOAD, &mut OffloadRows::default(), true);
    out.push_str(ROUTES);
    rows(&mut out, &HEALTH, &mut HealthLimits::default(), true);
    rows(&mut out, &PROXY, &mut ProxyLimits::default(), true);
    out.push_str(OBSERVED);
    rows(&mut out, &LOG, &mut LogLimits::default(), true);
    out.push_str("\n# Those of connections count for new ones after SIGHUP.\n[limits]\n");
    rows(&mut out, &SERVER, &mut Limits::default(), false);
    rows(&mut out, &CONNECTION, &mut ConnectionLimits::default(), false);
    out.push_str("\n# Those of the event loops, which like `long-turn` need a restart.\n");
    rows(&mut out, &LOOP, &mut Limits::default().event_loop, false);
    out.push_str("\n[limits.http1]\n");
    rows(&mut out, &HTTP1, &mut Http1Limits::default(), false);
    out.push_str("\n[limits.http2]\n");
    rows(&mut out, &HTTP2, &mut Http2Limits::default(), false);
    out.push_str("\n# Those of /ws and of ndt7, whose clients send messages of up to 16 MiB.\n[limits.websocket]\n");
    let mut websocket = WebSocketLimits::default();
    rows(&mut out, &WEBSOCKET, &mut websocket.messages, false);
    rows(&mut out, &WEBSOCKET_KEPT, &mut websocket.kept, false);
    out
}

/// A line for each limit, below what it is for.
fn rows<L>(out: &mut String, table: &Table<L>, limits: &mut L, as_comment: bool) {
    for row in table.rows {
        if let Some(about) = about(table, row.field) {
            comment(out, &about);
        }
        let mark = if as_comment { "# " } else { "" };
        let value = (row.of)(limits).written();
        // Writing to a string never fails.
        let _ = writeln!(out, "{mark}{} = {value}", row.key());
    }
}

/// What a limit is for, in which unit, and why this much.
fn about<L>(table: &Table<L>, field: &str) -> Option<String> {
    let heading = format!("## `{}`", table.folder);
    let rows = LIMITS.lines().skip_while(|line| *line != heading).skip(1);
    let name = format!("| `{}{}` |", table.prefix, field.to_ascii_uppercase());
    let row =
        rows.take_while(|line| !line.starts_with("## ")).find(|line| line.starts_with(&name))?;
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    let [_, purpose, _, unit, reason, answers] = cells[..] else { return None };
    let answers = match answers {
        "none" => String::new(),
        attacks => format!(" Answers: {attacks}."),
    };
    Some(format!("{purpose}. Unit: {unit}. Reason: {reason}.{answers}"))
}

/// Comment lines of at most [`WIDTH`] letters.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_says_what_it_is_for() {
        fn check<L>(table: &Table<L>) {
            for row in table.rows {
                let about = about(table, row.field);
                assert!(about.is_some(), "{} of {} has no row", row.field, table.folder);
            }
        }
        check(&SERVER);
        check(&CONNECTION);
        check(&HTTP1);
        check(&HTTP2);
        check(&PROXY);
        check(&HEALTH);
        check(&FILES);
        check(&LOG);
        check(&LOOP);
        check(&OFFLOAD);
        check(&WEBSOCKET);
        check(&WEBSOCKET_KEPT);
    }

    #[test]
    fn lines_are_not_too_wide() {
        for line in print().lines() {
            assert!(line.chars().count() <= WIDTH + 8, "{line}");
        }
    }
}

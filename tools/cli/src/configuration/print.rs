//! `--print-config`: all defaults as a file, with what each limit is for.

use std::fmt::Write as _;

use bolide::files::OffloadLimits;
use bolide::proxy::ProxyLimits;
use bolide::server::{Limits as ServerLimits, LogLimits};
use bolide_acme::AcmeLimits;
use bolide_limits::{Limit, Limits};
use bolide_reverse_proxy::limits::HealthLimits;
use bolide_static_files::limits::FilesLimits;

use super::limit_tables::{self, Visit, WebSocketLimits, key, setting};

/// Purpose of each limit, written from the declarations.
const LIMITS: &str = include_str!("../../../../docs/LIMITS.md");

/// The widest line, in letters.
const WIDTH: usize = 100;

const HEAD: &str = "\
# The configuration of `bolide serve --config FILE`: all defaults. docs/configuration.md has an example.
# Flags take precedence. Paths start at the file's directory. Times have a unit (\"250ms\", \"30s\", \"5min\",
# \"1h\"); bytes may have one (65536 or \"64KiB\"). SIGHUP reloads the file, and connections stay open;
# settings that need a restart are marked.

# Worker threads, each with its own event loop. Default: one per core. Needs a restart.
# workers = 2

# Time that open exchanges have to finish after SIGTERM or SIGINT.
drain = \"30s\"

# Serve HTTP/3 at the UDP ports of the HTTPS listeners. Needs a restart.
http3 = true
# How it finds out how much may be on its way: \"cubic\", or \"bbr\" (version 1, experimental), which
# losses without congestion don't slow down. That of TCP is the kernel's. Needs a restart.
http3-congestion = \"cubic\"
# Packets of 1,200 bytes that may be on their way at first. Needs a restart.
http3-initial-packets = 10

# Send the time that a response took in a Server-Timing field.
server-timing = false

# Networks of the proxies in front (or \"unix\", the peers of Unix sockets), whose PROXY headers,
# forwarding fields and X-Request-Id are trusted. The client's address is then the last one that is not
# in them, for the access log, limits and upstreams. Default: none.
# trusted = [\"10.0.0.0/8\", \"2001:db8::/32\"]
# Which fields they write: \"x-forwarded\" (X-Forwarded-For, -Proto, -Host) or \"forwarded\" (RFC 7239).
# forwarded = \"x-forwarded\"
# Give each request an X-Request-Id, for upstreams and the access log (\"request\"), and for the
# response (\"response\").
# request-id = \"off\"

# User (and group) to switch to once all listeners are open: NAME or NAME:GROUP. Default: no change.
# user = \"bolide\"

# Further files with listeners, upstreams and routes. ${NAME} and ${NAME:-default} in strings are
# environment variables.
# include = [\"sites/*.toml\"]

# Listeners: an address and a port (0: any free port), or unix:/path. Other addresses need a restart;
# other certificates don't.
[[listen]]
http = \"127.0.0.1:8080\"

# HTTPS: HTTP/2 and HTTP/1.1 by ALPN, and HTTP/3. Without `cert`, `key` and `acme`, a certificate for
# development is issued by a CA of this machine.
[[listen]]
https = \"127.0.0.1:8443\"
# Certificate chain and key (PEM); of several, each client gets the one for the name it requests.
# cert = [\"example.org.pem\", \"example.com.pem\"]
# key = [\"example.org.key\", \"example.com.key\"]
# Names of hosts whose certificates come from the CA in [acme].
# acme = [\"example.net\", \"www.example.net\"]
# CAs of client certificates (PEM); clients without one are rejected (\"required\", the default) or
# accepted (\"optional\").
# client-ca = \"clients.pem\"
# client-certificate = \"required\"
# The oldest and the newest version of TLS, cipher suites by their registered names (default: all), and
# application protocols over TCP, the preferred first.
# min-version = \"1.2\"
# max-version = \"1.3\"
# cipher-suites = [\"TLS_AES_128_GCM_SHA256\", \"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\"]
# alpn = [\"h2\", \"http/1.1\"]
# Whether clients over HTTP/3 that come back may send requests with their first packet (0-RTT). These
# could be replayed: only GET, HEAD, OPTIONS and TRACE are accepted so, and are marked `Early-Data: 1`.
# early-data = false
# Whether connections begin with a PROXY header, of version 1 or 2: \"required\", \"optional\" for
# `trusted` peers, or \"off\". Needs a restart.
# proxy-protocol = \"off\"

# Certificates by ACME (RFC 8555), for the names in `acme` of listeners: ordered, renewed and stored by
# the server. With this section you agree to the CA's terms of service.
# [acme]
# \"letsencrypt\", \"letsencrypt-staging\" for trials, or the URL of another CA's directory.
# directory = \"letsencrypt\"
# Directory for the account, keys and certificates; created if it does not exist.
# storage = \"/var/lib/bolide/acme\"
# Mail addresses that the CA may write to.
# contact = [\"admin@example.org\"]
# How the CA validates a name: \"tls-alpn-01\" at port 443, or \"http-01\" at port 80.
# challenge = \"tls-alpn-01\"
# CAs of the CA's own servers (PEM). Default: those of the operating system.
# ca = \"ca.pem\"
";

const DEFAULTS: &str = "
# Rules of all routes that don't say otherwise, but of the built-in ones.
# [defaults]
# hsts = true
# security-headers = true
# response-headers = { remove = [\"server\"] }

# Routes, by host (\"example.org\", \"*.example.org\"; default: any) and path: a path that ends with a slash
# matches everything below it (default: \"/\"), others match exactly; {name} matches one segment, {*rest}
# the rest. The longest path wins, and a route with the host wins over one without.
[[route]]
builtin = true
# Existing directory for the results of ndt7 speed tests.
# ndt7-archive = \"speed-tests\"

# [[route]]
# host = [\"example.org\", \"*.example.org\"]
# path = \"/assets/\"
# root = \"site/assets\"
# index = [\"index.html\"]
# listing = false
# not-found = \"404.html\" # with 404; or fallback = \"index.html\", with 200
# cache-control = [\"*.css=max-age=60\"]
# compress = false
# precompressed = true
# hidden = false
# sendfile = true
";

const ROUTES: &str = "
# With `root` and `proxy`, requests without a file go to the upstream.
# [[route]]
# path = \"/api/\"
# proxy = \"backend\"
# The following keys go with every action but `builtin`. Conditions; routes with the first three come
# before all others:
# scheme = \"https\"
# listen = \"127.0.0.1:8443\"
# while-file = \"maintenance\"
# method = [\"GET\", \"POST\"]
# header = { x-beta = true, accept = \"text/*\" }
# query = { version = \"2\" }
# address = [\"192.0.2.0/24\", \"::1\"]
# The target that the handler or upstream sees:
# strip-prefix = \"/api\"
# rewrite = { from = \"^/old/(.*)$\", to = \"/new/{1}\" }
# add-prefix = \"/v2\"
# Fields, with {scheme}, {host}, {path}, {query}, {method}, {client} and {user}:
# request-headers = { set = { x-client = \"{client}\" }, add = {}, remove = [\"x-internal\"] }
# response-headers = { set = { x-robots-tag = \"noindex\" } }
# hsts = { max-age = \"8760h\", include-subdomains = false, preload = false } # or true
# security-headers = false
# cors = { origins = [\"https://app.example.org\"], methods = [\"GET\", \"POST\"], credentials = false }
# Compress responses for clients that accept it: not those with secrets. Or true; with `root`, the files.
# compress = { types = [\"text/*\", \"application/json\"], min-bytes = \"1KiB\" }
# Pages in place of the server's own errors, and limits in place of those of [limits]:
# error-pages = { 404 = \"404.html\", 502 = \"down.html\" }
# body-bytes-max = \"1MiB\"
# response-timeout = \"60s\"
# exchange-timeout = \"0s\"
# Networks whose clients may send requests, and those whose clients may not (403); `deny` wins.
# allow = [\"192.0.2.0/24\", \"2001:db8::/32\"]
# deny = [\"192.0.2.66\"]
# A client certificate is required (403): any that the listener accepts, or one of these fingerprints
# (SHA-256) or subjects.
# client-certificate = [\"CN=alice,O=Example\"]
# Requests of each client (429), per s, min or h, by \"address\" or by a field, \"header:x-api-key\".
# rate-limit = { requests = \"10/s\", burst = 20, by = \"address\", ipv6-prefix = 64 }
# Bytes of content that a client is sent, by the same; up to the burst at once.
# bandwidth = { bytes-per-second = \"1MiB\", burst = \"4MiB\" }
# The same of what a client sends.
# upload-bandwidth = { bytes-per-second = \"1MiB\", burst = \"4MiB\" }
# Requests that a client may have open at a time (429).
# concurrent-requests = { count = 20, by = \"address\", ipv6-prefix = 64 }
# A user name and a password are required (401); `bolide hash-password` prints hashes. The lines of the
# file are NAME:HASH; or users = { alice = \"HASH\" }.
# basic-auth = { realm = \"Restricted\", users-file = \"users\" }
# A server that says by 2xx that a request may pass, and whose other responses go to the client.
# Requests get the fields in `copy-headers` from it alone.
# forward-auth = { url = \"http://127.0.0.1:9091/verify\", copy-headers = [\"x-user\"], user = \"x-user\" }

# [[route]]
# path = \"/old/\"
# redirect = \"https://example.org/new/\"
# status = 308

# [[route]]
# path = \"/health\"
# respond = \"fine\"
# status = 200
# retry-after = \"10min\"
# content-type = \"text/plain; charset=utf-8\"

# http:// is HTTP/1.1, h2c:// is HTTP/2 without TLS, https:// negotiates either by ALPN. `http1-tunnels`:
# WebSockets use HTTP/1.1 to a server whose HTTP/2 does not support them; default: only with https://.
# [[upstream]]
# name = \"backend\"
# servers = [\"http://127.0.0.1:9000\", { url = \"h2c://127.0.0.1:9001\", weight = 2, http1-tunnels = false }]
# \"round-robin\", \"least-requests\", \"power-of-two\", or the same server for the same client
# (\"hash:client\"), target (\"hash:uri\"), field (\"hash:header:x-user\") or cookie (\"hash:cookie:id\").
# balance = \"round-robin\"
# A cookie that keeps a client at one server. Default: none; and a secret that lasts until a restart.
# sticky = { cookie = \"at\", path = \"/\", same-site = \"lax\", max-age = \"24h\", secret = \"0123456789abcdef\" }
# origin = \"replace\" # Forwarded and X-Forwarded-*: or \"append\", \"hide\"
# Connections begin with a PROXY header and belong to one client: \"v1\" or \"v2\".
# proxy-protocol = \"off\"
# dot-segments = \"refuse\" # paths with . or .. as a segment: or \"pass\"
# rewrite-host = false
# ca = \"upstreams.pem\"
# insecure = false
# A certificate with its key (PEM) for servers that request one, and the name in SNI and in their
# certificates; default: the host of each.
# cert = \"client.pem\"
# key = \"client.key\"
# server-name = \"backend.internal\"
# Path that is checked on each server (or \"grpc:SERVICE\", \"websocket:/path\"), and the statuses of a
# healthy server. Default: no checks.
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

# Metrics, health and readiness, on a separate listener. Needs a restart.
# [admin]
# listen = \"127.0.0.1:9090\"
# Allow addresses that other machines reach; it has no authentication.
# public = false

# Measure where the CPU time of requests goes, in one of `one-in` turns of the event loops, and print it at
# the end; with [admin], it is also on /metrics.
# [profile]
# one-in = 64

# A line for each request, in this file (\"-\": the standard output): \"common\", \"combined\", \"json\", or
# text with placeholders. A reload can change the file; the rest needs a restart.
# [access-log]
# file = \"access.log\"
# format = \"combined\"
# The share of the lines that is written, by chance; of errors (500 and more), too, if sample-errors.
# sample = 1.0
# sample-errors = false
";

/// The whole file.
pub(crate) fn print() -> String {
    let mut out = HEAD.to_owned();
    rows(&mut out, &mut AcmeLimits::default(), true);
    out.push_str(DEFAULTS);
    rows(&mut out, &mut FilesLimits::default(), true);
    rows(&mut out, &mut OffloadLimits::default(), true);
    out.push_str(ROUTES);
    rows(&mut out, &mut HealthLimits::default(), true);
    let mut proxy = ProxyLimits::default();
    rows(&mut out, &mut proxy, true);
    rows(&mut out, &mut proxy.times, true);
    rows(&mut out, &mut proxy.choice, true);
    out.push_str(OBSERVED);
    rows(&mut out, &mut LogLimits::default(), true);
    limits(&mut out, &mut ServerLimits::default(), &mut WebSocketLimits::default());
    out
}

/// `[limits]` and its tables.
pub(super) fn limits(out: &mut String, limits: &mut ServerLimits, websocket: &mut WebSocketLimits) {
    out.push_str(
        "\n# Those of connections count for new ones after SIGHUP. `long-turn`, and those of the event loops, from\n\
         # `connections-max-count` on, need a restart.\n[limits]\n",
    );
    limit_tables::visit(limits, websocket, &mut Tables(out)).expect("a string takes all");
}

/// Writes each table of limits.
struct Tables<'a>(&'a mut String);

impl Visit for Tables<'_> {
    fn table(&mut self, name: &'static str) -> Result<(), String> {
        if name == "websocket" {
            self.0.push_str(
                "\n# Those of /ws and of ndt7, whose clients send messages of up to 16 MiB.",
            );
        }
        if !name.is_empty() {
            let _ = write!(self.0, "\n[limits.{name}]\n");
        }
        Ok(())
    }

    fn limits<L: Limits>(&mut self, limits: &mut L) -> Result<(), String> {
        rows(self.0, limits, false);
        Ok(())
    }
}

/// A line for each limit, below what it is for.
fn rows<L: Limits>(out: &mut String, limits: &mut L, as_comment: bool) {
    for limit in L::ALL {
        if let Some(about) = about(limit) {
            comment(out, &about);
        }
        let mark = if as_comment { "# " } else { "" };
        let value = setting((limit.of)(limits)).written();
        // Writing to a string never fails.
        let _ = writeln!(out, "{mark}{} = {value}", key(limit));
    }
}

/// Returns what a limit is for, in which unit, and why this much.
fn about<L: Limits>(limit: &Limit<L>) -> Option<String> {
    let heading = format!("## `{}`", L::FILE.strip_suffix("/src/limits.rs")?);
    let rows = LIMITS.lines().skip_while(|line| *line != heading).skip(1);
    let name = format!("| `{}{}` |", L::PREFIX, limit.name.to_ascii_uppercase());
    let row =
        rows.take_while(|line| !line.starts_with("## ")).find(|line| line.starts_with(&name))?;
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
    let [_, purpose, _, unit, reason, attacks] = cells[..] else { return None };
    let attacks = match attacks {
        "none" => String::new(),
        attacks => format!(" Attacks: {attacks}."),
    };
    Some(format!("{purpose}. Unit: {unit}. Reason: {reason}.{attacks}"))
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
        let mut limits = String::new();
        super::limits(&mut limits, &mut ServerLimits::default(), &mut WebSocketLimits::default());
        let lines: Vec<&str> = limits.lines().collect();
        for (above, line) in lines.iter().zip(&lines[1..]) {
            let is_key = line.contains(" = ") && !line.starts_with('#');
            assert!(!is_key || above.starts_with("# "), "{line}");
        }
    }

    #[test]
    fn lines_are_not_too_wide() {
        for line in print().lines() {
            assert!(line.chars().count() <= WIDTH + 8, "{line}");
        }
    }
}

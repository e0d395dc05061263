//! RFC 9110 §7.6, RFC 7239: the head of a request as it is sent on.

use std::net::IpAddr;

use bolide_semantics::{Field, FieldName, Head, names_in};
use bolide_server::{Method, Request, Version, trace_id};
use smallvec::SmallVec;

use crate::Origin;
use crate::pseudonym::Pseudonym;

/// The head to send on for `request`: without what concerned the client's connection only, and with what
/// the proxy has to say.
pub(crate) fn head(request: &Request<'_>, origin: Origin, pseudonym: &Pseudonym) -> Head {
    let from = request.head();
    let mut head = Head::default();
    // Fields of a peer that is not trusted are its client's own: where some are, those of others don't go on.
    let origin = match (origin, request.is_forwarded()) {
        (Origin::Append, Some(false)) => Origin::Replace,
        (origin, _) => origin,
    };
    let names_trace = from.get_uncommon("traceparent").is_some_and(|it| trace_id(it).is_some());
    let counts_hops = *from.method() == Method::OPTIONS;
    head.forward(from, |field| {
        let is_said_anew = (is_origin(field) && origin != Origin::Append)
            || (counts_hops && field.known == Some(FieldName::MaxForwards));
        let is_trace = field.known.is_none() && matches!(field.name, "traceparent" | "tracestate");
        !is_said_anew && (names_trace || !is_trace)
    });
    if counts_hops && let Some(left) = hops_left(from) {
        head.push_field(FieldName::MaxForwards, left.saturating_sub(1).to_string().as_bytes());
    }
    let names_trailers = |name: &[u8]| name.eq_ignore_ascii_case(b"trailers");
    if from.get_all(FieldName::Te).flat_map(names_in).any(names_trailers) {
        head.push_field(FieldName::Te, b"trailers");
    }
    head.push_field(FieldName::Via, pseudonym.via(from.version()));
    if origin != Origin::Hide {
        let peer = request.peer().map(|peer| peer.ip());
        // What is appended goes on from where the peer is; else the client is named.
        let address = if origin == Origin::Append { peer } else { request.client() };
        say_origin(&mut head, address, request.client_authority(), request.scheme());
    }
    head
}

/// How many more proxies an OPTIONS request may pass (RFC 9110 §7.6.2), when it says so.
pub(crate) fn hops_left(head: &Head) -> Option<u32> {
    std::str::from_utf8(head.get(FieldName::MaxForwards)?).ok()?.parse().ok()
}

/// The protocols that a request of HTTP/1.1 asks to go on with (RFC 9110 §7.8), without those that a proxy
/// does not pass: `None` when nothing is left.
pub(crate) fn upgrade(head: &Head) -> Option<String> {
    let listed = |name: &[u8]| name.eq_ignore_ascii_case(b"upgrade");
    head.get(FieldName::Upgrade)?;
    if head.version() != Version::HTTP_11
        || !head.get_all(FieldName::Connection).flat_map(names_in).any(listed)
    {
        return None;
    }
    let names = head.get_all(FieldName::Upgrade).flat_map(names_in);
    let names: Vec<_> =
        names.filter_map(|name| str::from_utf8(name).ok()).filter(|name| passes(name)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Returns whether a tunnel to this protocol may go through the proxy. HTTP and TLS begin anew at each hop: requests in
/// such a tunnel would pass unread.
pub(crate) fn passes(protocol: &str) -> bool {
    let name = protocol.split('/').next().unwrap_or_default();
    let ends_here = ["h2", "h2c", "http", "tls"].iter().any(|own| name.eq_ignore_ascii_case(own));
    !ends_here && !protocol.contains(',')
}

/// Returns whether upstreams read from it where a request came from, or what it asked for there.
#[inline]
fn is_origin(field: &Field<'_>) -> bool {
    match field.known {
        Some(name) => ORIGIN_FIELDS.contains(&name),
        // CGI and WSGI read a name with underscores as the one with hyphens.
        None if field.name.contains('_') => is_origin_name(&field.name.replace('_', "-")),
        None => is_origin_name(field.name),
    }
}

/// Those of the names [of origins](is_origin_name) that are interned.
const ORIGIN_FIELDS: [FieldName; 4] = [
    FieldName::Forwarded,
    FieldName::XForwardedFor,
    FieldName::XForwardedHost,
    FieldName::XForwardedProto,
];

fn is_origin_name(name: &str) -> bool {
    name == "forwarded" || name == "x-real-ip" || name.starts_with("x-forwarded-")
}

/// Returns whether a field of a request's trailers goes on: upstreams that merge trailers into the head must not read from
/// them where the request came from, or in whose name (RFC 9110 §6.5.1).
pub(crate) fn passes_in_trailers(field: &Field<'_>) -> bool {
    let is_credential = matches!(
        field.known,
        Some(
            FieldName::Authorization
                | FieldName::Cookie
                | FieldName::Host
                | FieldName::ProxyAuthorization
        )
    );
    !is_credential && !is_origin(field)
}

/// Says where a request came from.
fn say_origin(head: &mut Head, client: Option<IpAddr>, host: Option<&str>, scheme: &str) {
    let address: SmallVec<[u8; ADDRESS_BYTES]> = client.map(address).unwrap_or_default();
    if client.is_some() {
        head.push_field(FieldName::XForwardedFor, &address);
    }
    let host = host
        .filter(|host| !host.is_empty() && !host.bytes().any(|byte| matches!(byte, b'"' | b'\\')));
    if let Some(host) = host {
        head.push_field(FieldName::XForwardedHost, host.as_bytes());
    }
    head.push_field(FieldName::XForwardedProto, scheme.as_bytes());
    let (before, after): (&[u8], &[u8]) = match client {
        None => (b"for=unknown", b""),
        Some(IpAddr::V4(_)) => (b"for=", b""),
        Some(IpAddr::V6(_)) => (b"for=\"[", b"]\""),
    };
    let forwarded = head.text_mut();
    let start = forwarded.len();
    [before, &address, after].iter().for_each(|part| forwarded.push(part));
    if let Some(host) = host {
        [b";host=\"", host.as_bytes(), b"\""].iter().for_each(|part| forwarded.push(part));
    }
    [b";proto=", scheme.as_bytes()].iter().for_each(|part| forwarded.push(part));
    head.push_known(FieldName::Forwarded, start);
}

/// The longest address that is written: eight groups of IPv6.
const ADDRESS_BYTES: usize = 39;

/// An address as text. By hand for IPv4: the standard library's formatter takes 1,300 instructions.
fn address(ip: IpAddr) -> SmallVec<[u8; ADDRESS_BYTES]> {
    let mut text = SmallVec::new();
    match ip {
        IpAddr::V4(ip) => {
            for (at, byte) in ip.octets().into_iter().enumerate() {
                if at > 0 {
                    text.push(b'.');
                }
                text.extend_from_slice(itoa::Buffer::new().format(byte).as_bytes());
            }
        }
        IpAddr::V6(ip) => text.extend_from_slice(ip.to_string().as_bytes()),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin_of(peer: Option<&str>, host: Option<&str>) -> String {
        let mut head = Head::default();
        say_origin(&mut head, peer.map(|peer| peer.parse().unwrap()), host, "https");
        String::from_utf8(head.get(FieldName::Forwarded).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn every_interned_name_of_an_origin_is_listed() {
        let listed = FieldName::ALL.iter().filter(|name| is_origin_name(name.as_str()));
        assert!(listed.eq(&ORIGIN_FIELDS));
    }

    #[test]
    fn origin_fields_with_underscores_and_in_trailers_are_known() {
        let mut head = Head::default();
        for (name, is_known) in [
            ("x-forwarded-for", true),
            ("x_forwarded_for", true),
            ("x-forwarded_port", true),
            ("x_real_ip", true),
            ("forwarded", true),
            ("x_forwarded", false),
            ("x-real-ipx", false),
            ("grpc-status", false),
        ] {
            head.clear(bolide_semantics::HeadKind::Trailers, Version::HTTP_11);
            head.append(name, b"1");
            let field = head.fields().next().unwrap();
            assert_eq!(is_origin(&field), is_known, "{name}");
            assert_eq!(passes_in_trailers(&field), !is_known, "{name}");
        }
        for name in ["authorization", "cookie", "host", "proxy-authorization"] {
            head.clear(bolide_semantics::HeadKind::Trailers, Version::HTTP_11);
            head.append(name, b"1");
            assert!(!passes_in_trailers(&head.fields().next().unwrap()), "{name}");
        }
    }

    #[test]
    fn the_origin_is_quoted_where_it_must_be() {
        let v4 = origin_of(Some("192.0.2.1"), Some("a.example:8080"));
        assert_eq!(v4, "for=192.0.2.1;host=\"a.example:8080\";proto=https");
        let v6 = origin_of(Some("2001:db8::1"), None);
        assert_eq!(v6, "for=\"[2001:db8::1]\";proto=https");
        assert_eq!(origin_of(None, Some("a\"b")), "for=unknown;proto=https");
    }
}

//! RFC 7239 and `X-Forwarded-For`: whose request it is that a trusted proxy passes on.

use std::net::{IpAddr, SocketAddr};

use bolide_semantics::{FieldName, Head, is_valid_authority};
use smallvec::SmallVec;

use crate::ends::Ends;
use crate::ingress::{ForwardedFields, Ingress};
use crate::limits::FORWARDED_HOPS_COUNT;

/// Client of a request, as the peer says that is trusted; or the peer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Client<'a> {
    /// None on a Unix socket.
    pub(crate) address: Option<IpAddr>,
    /// Scheme that the client has used.
    pub(crate) scheme: Option<&'a str>,
    /// The host that the client asked for.
    pub(crate) host: Option<&'a str>,
    /// The peer is trusted.
    pub(crate) is_forwarded: bool,
}

impl<'a> Client<'a> {
    /// Finds it out: from the right, the first address that is not trusted. What is malformed ends the search.
    pub(crate) fn of(head: &'a Head, ends: &Ends, ingress: Option<&Ingress>) -> Self {
        let peer = ends.peer().map(|peer| peer.ip().to_canonical());
        let own = Self { address: peer, scheme: None, host: None, is_forwarded: false };
        match ingress {
            Some(ingress) if ingress.trusted.contains(peer) => own.named(head, ingress),
            _ => own,
        }
    }

    #[inline(never)]
    fn named(self, head: &'a Head, ingress: &Ingress) -> Self {
        let mut client = Self { is_forwarded: true, ..self };
        let name = match ingress.fields {
            ForwardedFields::XForwarded => {
                client.scheme = last_of(head, FieldName::XForwardedProto).and_then(scheme);
                client.host = last_of(head, FieldName::XForwardedHost).and_then(host);
                FieldName::XForwardedFor
            }
            ForwardedFields::Forwarded => FieldName::Forwarded,
        };
        let values: SmallVec<[&[u8]; 4]> = head.get_all(name).collect();
        let members = values.iter().rev().flat_map(|value| value.rsplit(|byte| *byte == b','));
        for member in members.take(FORWARDED_HOPS_COUNT) {
            let found = match ingress.fields {
                ForwardedFields::XForwarded => node(member.trim_ascii()),
                ForwardedFields::Forwarded => element(member).map(|element| {
                    (client.scheme, client.host) = (element.scheme, element.host);
                    element.address
                }),
            };
            let Some(address) = found else { break };
            client.address = Some(address);
            if !ingress.trusted.contains(Some(address)) {
                break;
            }
        }
        client
    }
}

/// The last member of the last line of a field: what the peer itself says.
fn last_of(head: &Head, name: FieldName) -> Option<&[u8]> {
    head.get_all(name).last()?.rsplit(|byte| *byte == b',').next().map(<[u8]>::trim_ascii)
}

fn scheme(value: &[u8]) -> Option<&str> {
    let known = ["http", "https"].into_iter();
    known.into_iter().find(|known| known.as_bytes().eq_ignore_ascii_case(value))
}

fn host(value: &[u8]) -> Option<&str> {
    let is_host = !value.is_empty() && is_valid_authority(value);
    std::str::from_utf8(value).ok().filter(|_| is_host)
}

/// An address, with or without a port; one of IPv6 with a port is in brackets.
fn node(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let address = match text.parse::<IpAddr>() {
        Ok(address) => address,
        Err(_) => match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            Some(inner) => IpAddr::V6(inner.parse().ok()?),
            None => text.parse::<SocketAddr>().ok()?.ip(),
        },
    };
    Some(address.to_canonical())
}

/// A forwarded-element (RFC 7239 §4) that names an address.
#[derive(Debug)]
struct Element<'a> {
    address: IpAddr,
    scheme: Option<&'a str>,
    host: Option<&'a str>,
}

fn element(member: &[u8]) -> Option<Element<'_>> {
    let (mut address, mut proto, mut named) = (None, None, None);
    for pair in member.split(|byte| *byte == b';') {
        let pair = pair.trim_ascii();
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&pair[..at], unquoted(&pair[at + 1..])?);
        let place = match name.to_ascii_lowercase().as_slice() {
            b"for" => &mut address,
            b"proto" => &mut proto,
            b"host" => &mut named,
            _ => continue,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    let address = node(address?)?;
    Some(Element { address, scheme: proto.and_then(scheme), host: named.and_then(host) })
}

/// The text of a token or of a quoted string. Nothing that names an address, a host or a scheme needs an escape.
fn unquoted(value: &[u8]) -> Option<&[u8]> {
    let inner = match value {
        [b'"', inner @ .., b'"'] => inner,
        plain => plain,
    };
    let is_plain = !inner.iter().any(|byte| matches!(byte, b'"' | b'\\'));
    is_plain.then_some(inner)
}

#[cfg(test)]
mod tests {
    use bolide_semantics::HeadKind;
    use http::Version;
    use proptest::prelude::*;

    use super::*;

    fn head(name: &str, values: &[&[u8]]) -> Head {
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_11);
        values.iter().for_each(|value| head.append(name, value));
        head
    }

    fn ingress(fields: ForwardedFields) -> Ingress {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap());
        Ingress { trusted: trusted.into_iter().collect(), fields, ..Ingress::default() }
    }

    fn client_of(peer: &str, fields: ForwardedFields, values: &[&str]) -> String {
        let name = match fields {
            ForwardedFields::XForwarded => "x-forwarded-for",
            ForwardedFields::Forwarded => "forwarded",
        };
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        let head = head(name, &values);
        let ends = Ends::new(Some(peer.parse().unwrap()), None);
        let client = Client::of(&head, &ends, Some(&ingress(fields)));
        client.address.unwrap().to_string()
    }

    #[test]
    fn the_first_address_from_the_right_that_is_not_trusted_is_the_client() {
        for (values, client) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["198.51.100.9, 192.0.2.1"], "192.0.2.1"),
            (&["198.51.100.9, 192.0.2.1, 10.0.0.7"], "192.0.2.1"),
            (&["198.51.100.9", "192.0.2.1", "10.0.0.7,fd00::1"], "192.0.2.1"),
            (&["10.0.0.8, 10.0.0.7"], "10.0.0.8"),
            (&["192.0.2.1:5"], "192.0.2.1"),
            (&["[2001:db8::1]:5"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["::ffff:192.0.2.1"], "192.0.2.1"),
            (&["192.0.2.1, unknown, 10.0.0.7"], "10.0.0.7"),
            (&["192.0.2.1,"], "10.0.0.1"),
            (&[""], "10.0.0.1"),
            (&["192.0.2.256"], "10.0.0.1"),
            (&[], "10.0.0.1"),
        ] {
            let found = client_of("10.0.0.1:9", ForwardedFields::XForwarded, values);
            assert_eq!(found, client, "{values:?}");
        }
    }

    #[test]
    fn the_elements_of_rfc_7239_are_walked_alike() {
        for (value, client) in [
            ("for=192.0.2.1;proto=https;by=10.0.0.1", "192.0.2.1"),
            ("For=\"[2001:db8::1]:5\" , for=10.0.0.7", "2001:db8::1"),
            ("for=192.0.2.1, for=_hidden, for=10.0.0.7", "10.0.0.7"),
            ("for=192.0.2.1;for=192.0.2.2", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
            ("for=\"192.0.2.1", "10.0.0.1"),
            ("for=\"a,for=192.0.2.1\"", "10.0.0.1"),
        ] {
            let found = client_of("10.0.0.1:9", ForwardedFields::Forwarded, &[value]);
            assert_eq!(found, client, "{value}");
        }
    }

    #[test]
    fn a_forged_x_forwarded_for_of_an_untrusted_peer_is_not_believed() {
        for fields in [ForwardedFields::XForwarded, ForwardedFields::Forwarded] {
            assert_eq!(client_of("192.0.2.9:1", fields, &["for=10.0.0.2"]), "192.0.2.9");
            assert_eq!(client_of("192.0.2.9:1", fields, &["10.0.0.2"]), "192.0.2.9");
        }
    }

    /// The fields that are not configured are the client's.
    #[test]
    fn a_forged_field_of_the_other_kind_is_not_believed() {
        let head = head("forwarded", &[b"for=192.0.2.1;proto=https"]);
        let ends = Ends::new(Some("10.0.0.1:1".parse().unwrap()), None);
        let client = Client::of(&head, &ends, Some(&ingress(ForwardedFields::XForwarded)));
        assert_eq!((client.address, client.scheme), (Some("10.0.0.1".parse().unwrap()), None));
    }

    #[test]
    fn long_forwarded_for_costs_no_more_than_its_end() {
        let value = "10.0.0.2,".repeat(10_000) + "10.0.0.3";
        assert_eq!(client_of("10.0.0.1:9", ForwardedFields::XForwarded, &[&value]), "10.0.0.2");
        let hidden = format!("192.0.2.1{}", ",10.0.0.2".repeat(FORWARDED_HOPS_COUNT));
        assert_eq!(client_of("10.0.0.1:9", ForwardedFields::XForwarded, &[&hidden]), "10.0.0.2");
    }

    proptest! {
        /// Whatever stands left of an address that is not trusted changes nothing.
        #[test]
        fn what_the_client_wrote_itself_changes_nothing(
            forged in prop::collection::vec(any::<u8>(), 0..60),
            is_forwarded: bool,
        ) {
            let fields = if is_forwarded { ForwardedFields::Forwarded } else { ForwardedFields::XForwarded };
            let (name, honest) = if is_forwarded {
                ("forwarded", &b"for=192.0.2.1, for=10.0.0.7"[..])
            } else {
                ("x-forwarded-for", &b"192.0.2.1, 10.0.0.7"[..])
            };
            let ends = Ends::new(Some("10.0.0.1:1".parse().unwrap()), None);
            for values in [
                &[&[&forged[..], b",", honest].concat()[..]][..],
                &[&forged[..], honest],
            ] {
                let head = head(name, values);
                let client = Client::of(&head, &ends, Some(&ingress(fields)));
                prop_assert_eq!(client.address, Some("192.0.2.1".parse().unwrap()));
            }
            let noise = head(name, &[&forged]);
            let _ = Client::of(&noise, &ends, Some(&ingress(fields)));
        }
    }
}

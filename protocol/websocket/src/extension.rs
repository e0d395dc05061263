//! RFC 6455 §9.1, RFC 7692 §7.1: which compression both ends agree on.

use std::fmt::Write as _;

const NAME: &str = "permessage-deflate";
const SERVER_NO_CONTEXT: &str = "server_no_context_takeover";
const CLIENT_NO_CONTEXT: &str = "client_no_context_takeover";
const SERVER_BITS: &str = "server_max_window_bits";
const CLIENT_BITS: &str = "client_max_window_bits";

/// The window when nothing is said of it, in bits.
const BITS_MAX: u8 = 15;

/// Parameters of permessage-deflate that were agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deflate {
    /// The server compresses each message by itself.
    pub server_no_context_takeover: bool,
    /// The client compresses each message by itself.
    pub client_no_context_takeover: bool,
    /// The server's window, in bits, 8 to 15.
    pub server_max_window_bits: u8,
    /// The client's window, in bits, 8 to 15.
    pub client_max_window_bits: u8,
}

/// An endpoint's wishes for permessage-deflate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeflatePolicy {
    /// Keep our compressor between messages, so that they may refer to earlier ones: about 270 KiB for each
    /// connection. Default: no.
    pub own_context: bool,
    /// Let the peer do so, which costs us about 40 KiB for each connection. Default: no.
    pub peer_context: bool,
    /// Our window in bits, 9 to 15. Default: 15.
    pub own_window_bits: u8,
}

impl Default for DeflatePolicy {
    fn default() -> Self {
        Self { own_context: false, peer_context: false, own_window_bits: BITS_MAX }
    }
}

/// The parameters of one element, as they stand there.
#[derive(Debug, Default)]
struct Parameters {
    server_no_context: bool,
    client_no_context: bool,
    server_bits: Option<u8>,
    /// The outer `Some`: it was named; the inner: with a value.
    client_bits: Option<Option<u8>>,
}

impl Deflate {
    /// Server: accepts the first offer of permessage-deflate that can be met, from the values of all
    /// `Sec-WebSocket-Extensions` fields.
    #[must_use]
    pub fn accept<'a>(
        offers: impl Iterator<Item = &'a [u8]>,
        policy: &DeflatePolicy,
    ) -> Option<Self> {
        offers.filter_map(|value| std::str::from_utf8(value).ok()).flat_map(elements).find_map(
            |offer| {
                let offer = Parameters::parse(offer).ok()??;
                Some(Self {
                    server_no_context_takeover: offer.server_no_context || !policy.own_context,
                    client_no_context_takeover: offer.client_no_context || !policy.peer_context,
                    server_max_window_bits: offer
                        .server_bits
                        .unwrap_or(BITS_MAX)
                        .min(policy.own_window_bits.clamp(9, BITS_MAX)),
                    client_max_window_bits: offer.client_bits.flatten().unwrap_or(BITS_MAX),
                })
            },
        )
    }

    /// Server: the value of `Sec-WebSocket-Extensions` that tells the client.
    #[must_use]
    pub fn answer(&self) -> String {
        let mut value = NAME.to_owned();
        if self.server_no_context_takeover {
            push(&mut value, SERVER_NO_CONTEXT, None);
        }
        if self.client_no_context_takeover {
            push(&mut value, CLIENT_NO_CONTEXT, None);
        }
        if self.server_max_window_bits < BITS_MAX {
            push(&mut value, SERVER_BITS, Some(self.server_max_window_bits));
        }
        // Less than all bits only where the client has offered it.
        if self.client_max_window_bits < BITS_MAX {
            push(&mut value, CLIENT_BITS, Some(self.client_max_window_bits));
        }
        value
    }

    /// Client: the value of `Sec-WebSocket-Extensions` that offers what `policy` wishes.
    #[must_use]
    pub fn offer(policy: &DeflatePolicy) -> String {
        let mut value = NAME.to_owned();
        if !policy.own_context {
            push(&mut value, CLIENT_NO_CONTEXT, None);
        }
        if !policy.peer_context {
            push(&mut value, SERVER_NO_CONTEXT, None);
        }
        push(&mut value, CLIENT_BITS, None);
        value
    }

    /// Client: what the server has accepted of that offer; `None` when it wants no compression.
    ///
    /// # Errors
    ///
    /// What is wrong with the response, in words: the connection must not be used (RFC 7692 §7.1).
    pub fn accepted<'a>(
        responses: impl Iterator<Item = &'a [u8]>,
        policy: &DeflatePolicy,
    ) -> Result<Option<Self>, &'static str> {
        const WRONG: &str = "the response's Sec-WebSocket-Extensions names what was not offered";
        let mut agreed = None;
        for value in responses {
            for element in elements(std::str::from_utf8(value).map_err(|_| WRONG)?) {
                let response = Parameters::parse(element).map_err(|()| WRONG)?.ok_or(WRONG)?;
                let client_bits = match response.client_bits {
                    None => policy.own_window_bits.clamp(9, BITS_MAX),
                    Some(bits) => bits.ok_or(WRONG)?.min(policy.own_window_bits),
                };
                let deflate = Self {
                    server_no_context_takeover: response.server_no_context,
                    client_no_context_takeover: response.client_no_context || !policy.own_context,
                    server_max_window_bits: response.server_bits.unwrap_or(BITS_MAX),
                    client_max_window_bits: client_bits,
                };
                if agreed.replace(deflate).is_some() {
                    return Err("the response's Sec-WebSocket-Extensions names an extension twice");
                }
            }
        }
        Ok(agreed)
    }
}

impl Parameters {
    /// Reads an element of the list; `Ok(None)` for another extension. `Err` when a parameter is unknown,
    /// given twice, or has a value that it can't have.
    fn parse(element: &str) -> Result<Option<Self>, ()> {
        let mut parts = element.split(';').map(str::trim);
        if parts.next() != Some(NAME) {
            return Ok(None);
        }
        let mut parameters = Self::default();
        for part in parts {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name.trim_end(), Some(unquoted(value.trim_start()))),
                None => (part, None),
            };
            let again = match (name, value) {
                (SERVER_NO_CONTEXT, None) => {
                    std::mem::replace(&mut parameters.server_no_context, true)
                }
                (CLIENT_NO_CONTEXT, None) => {
                    std::mem::replace(&mut parameters.client_no_context, true)
                }
                (SERVER_BITS, Some(value)) => {
                    parameters.server_bits.replace(bits(value).ok_or(())?).is_some()
                }
                (CLIENT_BITS, value) => {
                    let value = value.map(|value| bits(value).ok_or(())).transpose()?;
                    parameters.client_bits.replace(value).is_some()
                }
                _ => return Err(()),
            };
            if again {
                return Err(());
            }
        }
        Ok(Some(parameters))
    }
}

/// The elements of a list. No value that we understand has a comma in it.
fn elements(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|element| !element.is_empty())
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// RFC 7692 §7.1.2: 8 to 15, without leading zeros.
fn bits(value: &str) -> Option<u8> {
    let bits = value.parse().ok().filter(|bits| (8..=BITS_MAX).contains(bits))?;
    (!value.starts_with(['0', '+'])).then_some(bits)
}

fn push(value: &mut String, name: &str, bits: Option<u8>) {
    // Writing to a string can't fail.
    let _ = match bits {
        Some(bits) => write!(value, "; {name}={bits}"),
        None => write!(value, "; {name}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: DeflatePolicy =
        DeflatePolicy { own_context: true, peer_context: true, own_window_bits: 15 };

    fn accept(offers: &[&str], policy: &DeflatePolicy) -> Option<String> {
        let agreed = Deflate::accept(offers.iter().map(|offer| offer.as_bytes()), policy)?;
        Some(agreed.answer())
    }

    #[test]
    fn the_first_offer_that_can_be_met_is_accepted() {
        let cases = [
            (&["permessage-deflate"][..], Some("permessage-deflate")),
            (&["x-other", "permessage-deflate"], Some("permessage-deflate")),
            (&["permessage-deflate; client_max_window_bits"], Some("permessage-deflate")),
            (
                &["permessage-deflate; client_max_window_bits=\"10\""],
                Some("permessage-deflate; client_max_window_bits=10"),
            ),
            (
                &["permessage-deflate ; server_max_window_bits = 8"],
                Some("permessage-deflate; server_max_window_bits=8"),
            ),
            (
                &["permessage-deflate; unknown, permessage-deflate; client_no_context_takeover"],
                Some("permessage-deflate; client_no_context_takeover"),
            ),
            (&["permessage-deflate; server_max_window_bits=7"], None),
            (&["permessage-deflate; server_max_window_bits=16"], None),
            (&["permessage-deflate; server_max_window_bits=010"], None),
            (&["permessage-deflate; server_max_window_bits"], None),
            (&["permessage-deflate; server_no_context_takeover=1"], None),
            (&["permessage-deflate; server_no_context_takeover; server_no_context_takeover"], None),
            (&[""], None),
        ];
        for (offers, response) in cases {
            assert_eq!(accept(offers, &KEEP).as_deref(), response, "{offers:?}");
        }
    }

    #[test]
    fn a_server_that_keeps_no_context_says_so() {
        let response = accept(&["permessage-deflate"], &DeflatePolicy::default()).unwrap();
        let both = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        assert_eq!(response, both);
    }

    #[test]
    fn a_client_takes_what_it_offered_and_nothing_else() {
        let accepted =
            |response: &str| Deflate::accepted(std::iter::once(response.as_bytes()), &KEEP);
        assert_eq!(accepted(""), Ok(None));
        let agreed = accepted("permessage-deflate; client_max_window_bits=9").unwrap().unwrap();
        assert_eq!((agreed.client_max_window_bits, agreed.server_max_window_bits), (9, 15));
        for wrong in [
            "x-other",
            "permessage-deflate; unknown",
            "permessage-deflate; client_max_window_bits",
            "permessage-deflate, permessage-deflate",
        ] {
            assert!(accepted(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn both_roles_agree() {
        for policy in [DeflatePolicy::default(), KEEP] {
            let offer = Deflate::offer(&policy);
            let server = Deflate::accept(std::iter::once(offer.as_bytes()), &policy).unwrap();
            let response = server.answer();
            let client = Deflate::accepted(std::iter::once(response.as_bytes()), &policy).unwrap();
            assert_eq!(client, Some(server));
        }
    }
}

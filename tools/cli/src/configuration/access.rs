//! Keys of a route that say who may send requests to it, and how many.

use std::sync::Arc;

use bolide::{HeaderName, Networks};
use bolide_access::limits::RATE_IPV6_BITS_COUNT;
use bolide_access::{Access, AllowedCertificate, RateKey, RateLimit};

use super::document::Section;
use super::ingress::networks;
use crate::routes::Answer;

const KEYS: [&str; 4] = ["allow", "deny", "client-certificate", "rate-limit"];

/// Reads them.
pub(super) fn read(section: &mut Section<'_>, answer: &Answer) -> Result<Access, String> {
    if let (Answer::Builtin(_), Some(key)) = (answer, KEYS.iter().find(|key| section.has(key))) {
        let what = format!("`{key}` is not for built-in routes: they are open to everyone");
        return Err(section.place_of(key).mistake(what));
    }
    let allow = if section.has("allow") {
        Some((section.place_of("allow"), networks(section, "allow")?))
    } else {
        None
    };
    if let Some((at, _)) = allow.as_ref().filter(|(_, networks)| networks.is_empty()) {
        return Err(at.mistake("`allow` is empty: every request would be refused"));
    }
    let deny: Networks = networks(section, "deny")?;
    let allow = allow.map(|(_, networks)| networks);
    let (certificates, rate) = (certificates(section)?, rate(section)?);
    Ok(Access { allow, deny, certificates, rate })
}

/// `client-certificate`: `"required"`, or the fingerprints and subjects one of which is.
fn certificates(section: &mut Section<'_>) -> Result<Option<Vec<AllowedCertificate>>, String> {
    let texts = section.texts("client-certificate")?;
    match &texts[..] {
        [] => return Ok(None),
        [(word, _)] if word == "required" => return Ok(Some(Vec::new())),
        _ => {}
    }
    let mut allowed = Vec::new();
    for (text, at) in texts {
        allowed.push(match fingerprint(&text) {
            Some(fingerprint) => AllowedCertificate::Fingerprint(fingerprint),
            None if text.contains('=') => AllowedCertificate::Subject(text),
            None => {
                let what = "give \"required\", SHA-256 fingerprints (64 hexadecimal digits), or subjects such \
                            as CN=alice,O=Example";
                let given = text.escape_debug();
                return Err(at.mistake(format!("`client-certificate` is `{given}`: {what}")));
            }
        });
    }
    Ok(Some(allowed))
}

/// 64 digits, with or without a colon after every two.
fn fingerprint(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    let mut fingerprint = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in fingerprint.iter_mut().zip(digits.as_chunks::<2>().0) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(fingerprint)
}

/// `rate-limit`: a table.
fn rate(section: &mut Section<'_>) -> Result<Option<Arc<RateLimit>>, String> {
    if !section.has("rate-limit") {
        return Ok(None);
    }
    let place = section.place_of("rate-limit");
    let mut table = section.table("rate-limit")?;
    let Some((rate, at)) = table.placed::<String>("requests")? else {
        return Err(place.mistake("`rate-limit` needs a rate: write `requests = \"10/s\"`"));
    };
    let burst = table.placed::<u16>("burst")?;
    let by = table.placed::<String>("by")?;
    let prefix = table.placed::<u16>("ipv6-prefix")?;
    table.finish()?;
    let ipv6_prefix = match prefix {
        None => RATE_IPV6_BITS_COUNT,
        Some((bits @ 1..=128, _)) => bits as u8,
        Some((bits, at)) => {
            return Err(at.mistake(format!("`ipv6-prefix` is {bits}: give a number from 1 to 128")));
        }
    };
    let key = match by {
        None => RateKey::Address { ipv6_prefix },
        Some((word, _)) if word == "address" => RateKey::Address { ipv6_prefix },
        Some((text, at)) => match text.strip_prefix("header:").map(HeaderName::try_from) {
            Some(Ok(name)) => RateKey::Field(name.as_str().to_owned()),
            _ => {
                let what = "give address, or header: and a name, such as header:x-api-key";
                return Err(at.mistake(format!("`by` is `{}`: {what}", text.escape_debug())));
            }
        },
    };
    let burst = burst.map(|(burst, _)| u32::from(burst));
    let limit = RateLimit::new(&rate, burst, key);
    limit
        .map(|limit| Some(Arc::new(limit)))
        .map_err(|what| at.mistake(format!("`rate-limit` can't be: {what}")))
}

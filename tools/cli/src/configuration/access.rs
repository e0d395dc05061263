//! Keys of a route that say who may send requests to it, and how many.

use std::sync::Arc;
use std::time::Duration;

use bolide::http::HeaderName;
use bolide::server::Networks;
use bolide_access::limits::RATE_IPV6_BITS_COUNT;
use bolide_access::{
    Access, AllowedCertificate, Bandwidth, BasicAuth, Concurrency, ForwardAuth, RateKey, RateLimit,
};
use bolide_site::{Direction, check_name};

use super::document::Section;
use super::ingress::networks;
use super::value::{Range, Setting};
use crate::routes::RouteAction;

const KEYS: [&str; 9] = [
    "allow",
    "deny",
    "client-certificate",
    "bandwidth",
    "upload-bandwidth",
    "concurrent-requests",
    "rate-limit",
    "basic-auth",
    "forward-auth",
];

/// Reads them.
pub(super) fn read(section: &mut Section<'_>, action: &RouteAction) -> Result<Access, String> {
    if let (RouteAction::Builtin(_), Some(key)) = (action, KEYS.iter().find(|key| section.has(key)))
    {
        let what = format!("`{key}` is not for built-in routes: they are open to everyone");
        return Err(section.place_of(key).mistake(what));
    }
    section.could_have(&KEYS);
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
    let concurrency = concurrency(section)?;
    let [bandwidth, upload_bandwidth] =
        [bandwidth(section, "bandwidth")?, bandwidth(section, "upload-bandwidth")?];
    let (basic, forward) = (basic(section)?, forward(section)?);
    Ok(Access {
        allow,
        deny,
        certificates,
        rate,
        bandwidth,
        upload_bandwidth,
        concurrency,
        basic,
        forward,
    })
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
    let Some(mut table) = section.inline("rate-limit")? else { return Ok(None) };
    let place = table.place();
    let Some((rate, at)) = table.placed::<String>("requests")? else {
        return Err(place.mistake("`rate-limit` needs a rate: write `requests = \"10/s\"`"));
    };
    let burst = table.placed::<u16>("burst")?;
    let key = key(&mut table)?;
    table.finish()?;
    let burst = burst.map(|(burst, _)| u32::from(burst));
    let limit = RateLimit::new(&rate, burst, key);
    limit
        .map(|limit| Some(Arc::new(limit)))
        .map_err(|what| at.mistake(format!("`rate-limit` can't be: {what}")))
}

/// `bandwidth` and `upload-bandwidth`: a table.
fn bandwidth(
    section: &mut Section<'_>,
    name: &'static str,
) -> Result<Option<Arc<Bandwidth>>, String> {
    let Some(mut table) = section.inline(name)? else { return Ok(None) };
    let place = table.place();
    let [rate, burst] = ["bytes-per-second", "burst"].map(|key| {
        let mut bytes = 0_u64;
        let range = Range { least: 1, most: 1 << 50, is_bytes: true };
        table.read(key, |value| bytes.read(value, &range)).map(|()| bytes)
    });
    let (rate, burst, key) = (rate?, burst?, key(&mut table)?);
    table.finish()?;
    if rate == 0 {
        let what = format!("`{name}` needs a rate: write `bytes-per-second = \"1MiB\"`");
        return Err(place.mistake(what));
    }
    Ok(Some(Arc::new(Bandwidth::new(rate, if burst == 0 { rate } else { burst }, key))))
}

/// `concurrent-requests`: a table.
fn concurrency(section: &mut Section<'_>) -> Result<Option<Arc<Concurrency>>, String> {
    let Some(mut table) = section.inline("concurrent-requests")? else { return Ok(None) };
    let place = table.place();
    let count = table.placed::<u16>("count")?;
    let key = key(&mut table)?;
    table.finish()?;
    match count {
        Some((count @ 1.., _)) => Ok(Some(Arc::new(Concurrency::new(count.into(), key)))),
        Some((_, at)) => Err(at.mistake("`count` must be at least 1: no request would pass")),
        None => Err(place.mistake("`concurrent-requests` needs a number: write `count = 10`")),
    }
}

/// `by` and `ipv6-prefix`: what is one client.
fn key(table: &mut Section<'_>) -> Result<RateKey, String> {
    let by = table.placed::<String>("by")?;
    let prefix = table.placed::<u16>("ipv6-prefix")?;
    let ipv6_prefix = match prefix {
        None => RATE_IPV6_BITS_COUNT,
        Some((bits @ 1..=128, _)) => bits as u8,
        Some((bits, at)) => {
            return Err(at.mistake(format!("`ipv6-prefix` is {bits}: give a number from 1 to 128")));
        }
    };
    match by {
        None => Ok(RateKey::Address { ipv6_prefix }),
        Some((word, _)) if word == "address" => Ok(RateKey::Address { ipv6_prefix }),
        Some((text, at)) => match text.strip_prefix("header:").map(HeaderName::try_from) {
            Some(Ok(name)) => Ok(RateKey::Field(name.as_str().to_owned())),
            _ => {
                let what = "give address, or header: and a name, such as header:x-api-key";
                Err(at.mistake(format!("`by` is `{}`: {what}", text.escape_debug())))
            }
        },
    }
}

/// `basic-auth`: a table with a realm, and users in it or in a file.
fn basic(section: &mut Section<'_>) -> Result<Option<Arc<BasicAuth>>, String> {
    let Some(mut table) = section.inline("basic-auth")? else { return Ok(None) };
    let place = table.place();
    let realm = table.placed::<String>("realm")?;
    let (realm, realm_at) = realm.unwrap_or_else(|| ("Restricted".to_owned(), place.clone()));
    let mut auth = BasicAuth::new(&realm).map_err(|what| {
        realm_at.mistake(format!("`realm` is `{}`: {what}", realm.escape_debug()))
    })?;
    if let Some(mut users) = table.inline("users")? {
        for name in users.keys() {
            let Some((hash, at)) = users.placed::<String>(&name)? else { continue };
            auth.user(&name, &hash).map_err(|what| at.mistake(what))?;
        }
    }
    if let Some((file, at)) = table.placed::<String>("users-file")? {
        let path = section.path(&file);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            at.mistake(format!("`users-file` {}: can't be read: {error}", path.display()))
        })?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| is_entry(line)) {
            let said = |what: String| format!("{}:{}: {what}", path.display(), number + 1);
            let Some((name, hash)) = line.trim().split_once(':') else {
                return Err(said("a line is a user name, a colon and a hash".to_owned()));
            };
            auth.user(name, hash).map_err(|what| said(what.to_string()))?;
        }
    }
    table.finish()?;
    if auth.is_empty() {
        let what = "`basic-auth` has no users: write `users = { name = \"hash\" }` or `users-file`, with hashes of \
                    `bolide hash-password`";
        return Err(place.mistake(what));
    }
    Ok(Some(Arc::new(auth)))
}

/// Returns whether a line of a file of users says anything.
fn is_entry(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// `forward-auth`: a table with a URL, and fields that its response gives to requests.
fn forward(section: &mut Section<'_>) -> Result<Option<Arc<ForwardAuth>>, String> {
    let Some(mut table) = section.inline("forward-auth")? else { return Ok(None) };
    let place = table.place();
    let Some((url, at)) = table.placed::<String>("url")? else {
        let what = "`forward-auth` needs a server: write `url = \"http://127.0.0.1:9091/verify\"`";
        return Err(place.mistake(what));
    };
    let forward = ForwardAuth::new(&url)
        .map_err(|what| at.mistake(format!("`url` is `{}`: {what}", url.escape_debug())))?;
    let mut copied = Vec::new();
    for (name, at) in table.texts("copy-headers")? {
        copied.push(check_name(&name, Direction::Request).map_err(|what| at.mistake(what))?);
    }
    let timeout = table.placed::<Duration>("timeout")?;
    let user = match table.placed::<String>("user")? {
        None => None,
        Some((name, at)) => Some(HeaderName::try_from(&name).map_err(|_| {
            at.mistake(format!("`user` is `{}`: give the name of a field", name.escape_debug()))
        })?),
    };
    table.finish()?;
    let forward = match user {
        None => forward.copied(copied),
        Some(name) => forward.copied(copied).user(name),
    };
    Ok(Some(Arc::new(match timeout {
        None => forward,
        Some((Duration::ZERO, at)) => {
            return Err(
                at.mistake("`timeout` must be at least 1ms: no client would be let through")
            );
        }
        Some((timeout, _)) => forward.timeout(timeout),
    })))
}

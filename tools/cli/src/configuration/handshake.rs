//! TLS settings of a listener, and those towards upstreams.

use std::fs;

use bolide::tls::{Alpn, HandshakeRules, Identity, TlsVersion};
use bolide_probe::nearest::nearest;

use super::choice::{choice, one_of};
use super::document::Section;
use crate::place::Place;

/// The keys of a listener.
const KEYS: [&str; 5] = ["min-version", "max-version", "cipher-suites", "alpn", "early-data"];

/// Reads them.
pub(super) fn rules(
    section: &mut Section<'_>,
    is_tls: bool,
    asks_for_certificates: bool,
) -> Result<HandshakeRules, String> {
    if let Some(key) = KEYS.iter().find(|key| section.has(key)).filter(|_| !is_tls) {
        let what = format!("`{key}` needs `https`: this listener is `http`");
        return Err(section.place_of(key).mistake(what));
    }
    let mut rules = HandshakeRules::default();
    let versions = [("1.2", TlsVersion::Tls12), ("1.3", TlsVersion::Tls13)];
    let suites_at = section.place_of("cipher-suites");
    let max_at = section.place_of("max-version");
    rules.least = choice(section, "min-version", &versions)?.unwrap_or(rules.least);
    rules.most = choice(section, "max-version", &versions)?.unwrap_or(rules.most);
    if rules.least > rules.most {
        return Err(max_at.mistake("`max-version` is older than `min-version`"));
    }
    let known = HandshakeRules::known_cipher_suites();
    for (name, at) in section.texts("cipher-suites")? {
        if !known.contains(&name) {
            let near = nearest(&name, known.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!(" (`{near}`?)"));
            let known = known.join(", ");
            let name = name.escape_debug();
            return Err(
                at.mistake(format!("`cipher-suites` has `{name}`{near}: known are {known}"))
            );
        }
        rules.cipher_suites.push(name);
    }
    if section.has("alpn") {
        let at = section.place_of("alpn");
        rules.alpn.clear();
        for (name, at) in section.texts("alpn")? {
            let words = [("h2", Alpn::H2), ("http/1.1", Alpn::Http11)];
            rules.alpn.push(one_of(&name, &at, "alpn", &words)?);
        }
        if rules.alpn.is_empty() {
            return Err(at.mistake("`alpn` is empty: give h2, http/1.1 or both"));
        }
    }
    rules.check().map_err(|what| suites_at.mistake(format!("`cipher-suites`: {what}")))?;
    let early_at = section.place_of("early-data");
    rules.early_data = section.value("early-data")?.unwrap_or(false);
    rules.check().map_err(|what| early_at.mistake(format!("`early-data`: {what}")))?;
    if rules.early_data && asks_for_certificates {
        let what = "`early-data` comes before a client has shown a certificate: leave it out, or `client-ca`";
        return Err(early_at.mistake(what));
    }
    Ok(rules)
}

/// `cert` and `key` of an upstream: what is shown to servers that request a certificate.
pub(super) fn identity(section: &mut Section<'_>) -> Result<Option<(Identity, Place)>, String> {
    let (cert, key) = (section.placed::<String>("cert")?, section.placed::<String>("key")?);
    let ((cert, at), key) = match (cert, key) {
        (None, None) => return Ok(None),
        (Some(cert), Some((key, _))) => (cert, key),
        (Some((_, at)), None) => return Err(at.mistake("`cert` needs its `key`")),
        (None, Some((_, at))) => return Err(at.mistake("`key` needs its `cert`")),
    };
    let read = |what: &str, name: &str| {
        let path = section.path(name);
        fs::read(&path).map_err(|error| {
            at.mistake(format!("`{what}` {}: can't be read: {error}", path.display()))
        })
    };
    let (chain, secret) = (read("cert", &cert)?, read("key", &key)?);
    let identity = Identity::from_pem(&chain, &secret)
        .map_err(|error| at.mistake(format!("`key` {key} with `cert` {cert}: {error}")))?;
    Ok(Some((identity, at)))
}

//! `[acme]`: certificates that a CA issues while the server runs.

use bolide::client::Trust;
use bolide_acme::{AcmeLimits, Challenge, Settings};

use super::choice::choice;
use super::document::Section;
use super::limit_tables;
use super::listen::Listen;
use crate::place::Place;

/// The CAs that have a name here, and the URLs of their directories.
const NAMED: [(&str, &str); 2] = [
    ("letsencrypt", "https://acme-v02.api.letsencrypt.org/directory"),
    ("letsencrypt-staging", "https://acme-staging-v02.api.letsencrypt.org/directory"),
];

/// Reads `[acme]`; its names are those of the listeners.
pub(super) fn read(root: &mut Section<'_>) -> Result<Option<(Settings, Place)>, String> {
    if !root.has("acme") {
        // Other sections may be mistaken for it.
        root.table("acme")?;
        return Ok(None);
    }
    let mut section = root.table("acme")?;
    let place = section.place();
    let directory = directory(&mut section)?;
    let storage = section.value::<String>("storage")?.filter(|path| !path.is_empty());
    let mut contact = Vec::new();
    for (address, at) in section.texts("contact")? {
        contact.push(contact_url(&address).map_err(|what| at.mistake(what))?);
    }
    let challenges = [Challenge::TlsAlpn01, Challenge::Http01].map(|one| (one.name(), one));
    let challenge = choice(&mut section, "challenge", &challenges)?.unwrap_or_default();
    let trust = match section.placed::<String>("ca")? {
        None => None,
        Some((path, at)) => Some(trust(&section.path(&path)).map_err(|what| at.mistake(what))?),
    };
    let mut limits = AcmeLimits::default();
    limit_tables::read(&mut section, &mut limits)?;
    let storage = storage.map(|path| section.path(&path));
    section.finish()?;
    let missing = |what: &str| Err(place.mistake(format!("[acme] needs {what}")));
    let Some(directory) = directory else {
        return missing(
            "a CA: write `directory = \"letsencrypt\"`, or the URL of another one's directory",
        );
    };
    let Some(storage) = storage else {
        return missing("a directory for keys and certificates: write `storage`");
    };
    let names = Vec::new();
    Ok(Some((Settings { directory, contact, storage, challenge, trust, names, limits }, place)))
}

/// The URL of the CA's directory. Requests are signed, but what the CA says is not: https alone protects it.
fn directory(section: &mut Section<'_>) -> Result<Option<String>, String> {
    let Some((given, at)) = section.placed::<String>("directory")? else { return Ok(None) };
    if let Some((_, url)) = NAMED.iter().find(|(name, _)| *name == given) {
        return Ok(Some((*url).to_owned()));
    }
    let host = given.strip_prefix("https://").and_then(|rest| rest.split('/').next());
    let is_url = host.is_some_and(|host| !host.is_empty())
        && given.bytes().all(|byte| byte.is_ascii_graphic());
    if is_url {
        return Ok(Some(given));
    }
    let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
    Err(at.mistake(format!(
        "`directory` is `{}`: give {}, or an https URL",
        given.escape_debug(),
        names.join(", ")
    )))
}

/// A URL to write to (RFC 8555 §7.1.2) from an address.
fn contact_url(address: &str) -> Result<String, String> {
    let bare = address.strip_prefix("mailto:").unwrap_or(address);
    let is_address = bare
        .split_once('@')
        .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !host.contains('@'));
    if !is_address || !bare.bytes().all(|byte| byte.is_ascii_graphic() && !b",?".contains(&byte)) {
        return Err(format!(
            "`contact` is `{}`: give a mail address, such as admin@example.org",
            address.escape_debug()
        ));
    }
    Ok(format!("mailto:{bare}"))
}

fn trust(path: &std::path::Path) -> Result<Trust, String> {
    let failed = |what: String| format!("`ca` {}: {what}", path.display());
    let pem = std::fs::read(path).map_err(|error| failed(format!("can't be read: {error}")))?;
    bolide::tls::Identity::check_chain(&pem).map_err(|error| failed(error.to_string()))?;
    Ok(Trust::Pem(pem))
}

/// Checks whether the names of listeners and the CA fit together.
pub(super) fn check(acme: Option<&(Settings, Place)>, listen: &[Listen]) -> Result<(), String> {
    let wants = |one: &&Listen| one.tls.as_ref().is_some_and(|files| !files.acme.is_empty());
    let first = listen.iter().find(wants);
    match (acme, first.and_then(|one| one.place.as_ref())) {
        (None, Some(place)) => {
            Err(place.mistake("`acme` needs a CA: write [acme] with `directory` and `storage`"))
        }
        (Some((_, place)), _) if first.is_none() => {
            Err(place.mistake("no [[listen]] has `acme`: write the names of hosts there"))
        }
        (Some((settings, place)), _)
            if settings.challenge == Challenge::Http01
                && listen.iter().all(|one| one.tls.is_some()) =>
        {
            Err(place.mistake(
                "`challenge` is http-01, and no [[listen]] has `http`: the CA connects to port 80",
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::Document;
    use super::super::{Configuration, DRAIN};
    use super::*;

    const LISTEN: &str = "[[listen]]\nhttps = \"8443\"\nacme = [\"a.org\", \"WWW.a.org\"]\n";
    const CA: &str = "[acme]\ndirectory = \"letsencrypt-staging\"\nstorage = \"acme\"\n";

    fn read(text: &str) -> Result<Configuration, String> {
        Configuration::of(&Document::of("b.toml", text), true)
    }

    #[test]
    fn names_and_a_ca_are_read() {
        let text = format!(
            "{LISTEN}{CA}contact = [\"me@a.org\", \"mailto:you@a.org\"]\nretry-delay = \"5s\"\n"
        );
        let configuration = read(&text).unwrap();
        assert_eq!(configuration.drain, DRAIN);
        let acme = configuration.acme.unwrap();
        assert_eq!(acme.directory, "https://acme-staging-v02.api.letsencrypt.org/directory");
        assert_eq!(acme.contact, ["mailto:me@a.org", "mailto:you@a.org"]);
        assert_eq!((acme.storage.to_str(), acme.challenge), (Some("acme"), Challenge::TlsAlpn01));
        assert_eq!(acme.limits.retry_delay, std::time::Duration::from_secs(5));
        let files = configuration.listen[0].tls.as_ref().unwrap();
        assert_eq!(files.acme, ["a.org", "www.a.org"]);
    }

    #[test]
    fn what_can_not_work_is_one_sentence_with_its_place() {
        let http = "[[listen]]\nhttp = \"8080\"\n";
        let directory =
            |given: &str| format!("{LISTEN}{}", CA.replace("letsencrypt-staging", given));
        let name = |given: &str| LISTEN.replace("WWW.a.org", given);
        for (text, said) in [
            (LISTEN.to_owned(), "b.toml:1:1: `acme` needs a CA"),
            (format!("{http}{CA}"), "b.toml:3:1: no [[listen]] has `acme`"),
            (
                format!("{LISTEN}{CA}challenge = \"http-01\"\n"),
                "b.toml:4:1: `challenge` is http-01",
            ),
            (
                format!("{LISTEN}{CA}challenge = \"dns-01\"\n"),
                "b.toml:7:13: `challenge` is `dns-01`",
            ),
            (format!("{LISTEN}{CA}contact = \"nobody\"\n"), "b.toml:7:11: `contact` is `nobody`"),
            (
                format!("{LISTEN}{CA}ca = \"/no/such\"\n"),
                "b.toml:7:6: `ca` /no/such: can't be read",
            ),
            (format!("{LISTEN}[acme]\nstorage = \"a\"\n"), "b.toml:4:1: [acme] needs a CA"),
            (
                format!("{LISTEN}[acme]\ndirectory = \"letsencrypt\"\n"),
                "b.toml:4:1: [acme] needs a directory",
            ),
            (directory("http://ca.org/"), "b.toml:5:13: `directory` is `http://ca.org/`"),
            (directory("https:///"), "b.toml:5:13: `directory` is `https:///`"),
            (directory("letsencript"), "b.toml:5:13: `directory` is `letsencript`"),
            (name("*.a.org"), "b.toml:3:18: `acme` has `*.a.org`: a wildcard"),
            (name("127.0.0.1"), "b.toml:3:18: `acme` has `127.0.0.1`, an address"),
            (name("A.org"), "b.toml:3:18: `acme` has `A.org` twice"),
            (name("a..org"), "b.toml:3:18: `acme` has `a..org`: give the name"),
            (name("../a"), "b.toml:3:18: `acme` has `../a`: give the name"),
            (name(""), "b.toml:3:18: `acme` has ``: give the name"),
            (
                "[[listen]]\nhttp = \"8080\"\nacme = \"a.org\"\n".to_owned(),
                "b.toml:1:1: certificates need `https`",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with(said), "{text}\n  said: {error}\n  want: {said}");
        }
    }
}

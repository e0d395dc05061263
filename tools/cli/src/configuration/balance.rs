//! `balance` and `sticky` of an upstream: which of its servers gets a request.

use std::time::Duration;

use bolide::proxy::{Balance, HashKey, SameSite, StickyCookie};

use super::choice::{choice, one_of};
use super::document::Section;

/// `balance`: a word, which may be `hash:` and what is hashed.
pub(super) fn balance(section: &mut Section<'_>) -> Result<Balance, String> {
    let Some((given, at)) = section.placed::<String>("balance")? else {
        return Ok(Balance::default());
    };
    if let Some(key) = given.strip_prefix("hash:") {
        return key.parse().map(Balance::Hash).map_err(|what| {
            at.mistake(format!("`balance` is `{}`: {what}", given.escape_debug()))
        });
    }
    let words = [
        ("round-robin", Balance::RoundRobin),
        ("least-requests", Balance::LeastRequests),
        ("power-of-two", Balance::PowerOfTwo),
        ("hash:client", Balance::Hash(HashKey::Client)),
        ("hash:uri", Balance::Hash(HashKey::Target)),
    ];
    one_of(&given, &at, "balance", &words)
}

/// `sticky`: a table with the cookie.
pub(super) fn sticky(section: &mut Section<'_>) -> Result<Option<StickyCookie>, String> {
    let Some(mut table) = section.inline("sticky")? else { return Ok(None) };
    let place = table.place();
    let name = table.placed::<String>("cookie")?;
    let path = table.placed::<String>("path")?;
    let words = [("lax", SameSite::Lax), ("strict", SameSite::Strict), ("none", SameSite::None)];
    let same_site = choice(&mut table, "same-site", &words)?;
    let max_age = table.placed::<Duration>("max-age")?;
    let secret = table.placed::<String>("secret")?;
    table.finish()?;
    let Some((name, at)) = name else {
        return Err(place.mistake("`sticky` needs a name: write `cookie = \"upstream\"`"));
    };
    let mut cookie = StickyCookie::new(&name).map_err(|what| at.mistake(what))?;
    if let Some((path, at)) = path {
        cookie = cookie.path(&path).map_err(|what| at.mistake(what))?;
    }
    match max_age {
        Some((age, at)) if age.as_secs() == 0 => {
            return Err(
                at.mistake("`max-age` must be at least \"1s\": clients would drop the cookie")
            );
        }
        Some((age, _)) => cookie = cookie.max_age(age),
        None => {}
    }
    match secret {
        Some((secret, at)) if secret.len() < SECRET_BYTES_MIN => {
            let what = format!("`secret` must have at least {SECRET_BYTES_MIN} characters");
            return Err(at.mistake(what));
        }
        Some((secret, _)) => cookie = cookie.secret(secret.as_bytes()),
        None => {}
    }
    Ok(Some(cookie.same_site(same_site.unwrap_or_default())))
}

/// Fewer can be guessed.
const SECRET_BYTES_MIN: usize = 16;

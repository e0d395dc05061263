//! Keys of a `[[route]]` beyond its host, path and action: conditions, rewriting, fields, pages and limits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide::Bytes;
use bolide::http::{HeaderValue, Method, StatusCode};
use bolide_compression::Compression;
use bolide_compression::limits::COMPRESS_MIN_BYTES;
use bolide_site::{
    Conditions, Cors, Direction, Edits, Hsts, PAGE_BYTES, Pattern, Rewrite, Rules, Scheme, Switch,
    Template, Test, check_name,
};

use super::choice::choice;
use super::document::Section;
use super::ingress::networks;
use super::listen::check_address;
use super::value::{Range, Setting, Value};
use crate::place::Place;
use crate::routes::SiteRules;
use toml::de::DeValue;

/// Keys of conditions and rules, in the order of the documentation.
pub(super) const KEYS: [&str; 21] = [
    "scheme",
    "listen",
    "method",
    "header",
    "query",
    "address",
    "while-file",
    "strip-prefix",
    "rewrite",
    "add-prefix",
    "request-headers",
    "response-headers",
    "hsts",
    "security-headers",
    "cors",
    "error-pages",
    "compress",
    "body-bytes-max",
    "response-timeout",
    "exchange-timeout",
    "retry-after",
];

/// Age in HSTS where nothing else is said: a year.
const HSTS_MAX_AGE: Duration = Duration::from_secs(365 * 24 * 3600);

/// `[defaults]`: rules of all routes that don't say otherwise.
pub(super) fn defaults(mut section: Section<'_>) -> Result<Rules, String> {
    let mut rules = Rules::default();
    common(&mut section, &mut rules)?;
    section.finish()?;
    Ok(rules)
}

/// Takes the conditions and rules of a route.
pub(super) fn read(
    section: &mut Section<'_>,
    path: &str,
    defaults: &Rules,
) -> Result<SiteRules, String> {
    let conditions = conditions(section)?;
    let mut rules = defaults.clone();
    rules.rewrite = rewrite(section, path)?;
    rules.request = edits(section, "request-headers", Direction::Request)?;
    rules.cors = cors(section)?;
    common(section, &mut rules)?;
    Ok(SiteRules { conditions, rules: Arc::new(rules) })
}

/// Takes the rules that may stand for all routes, in place of those that are there.
fn common(section: &mut Section<'_>, rules: &mut Rules) -> Result<(), String> {
    let is_edited = section.has("response-headers");
    let response = edits(section, "response-headers", Direction::Response)?;
    if is_edited {
        rules.response = response;
    }
    let says_hsts = section.has("hsts");
    let hsts = hsts(section)?;
    if says_hsts {
        rules.hsts = hsts;
    }
    rules.security = section.value("security-headers")?.unwrap_or(rules.security);
    error_pages(section, rules)?;
    let says_compress = section.has("compress");
    let compression = compression(section)?;
    if says_compress {
        rules.compression = compression;
    }
    let mut bytes = 0_u64;
    let says_bytes = section.has("body-bytes-max");
    let range = Range { least: 0, most: u64::MAX, is_bytes: true };
    section.read("body-bytes-max", |value: &DeValue<'_>| bytes.read(value, &range))?;
    if says_bytes {
        rules.body_bytes_max = Some(bytes);
    }
    let response = section.value("response-timeout")?;
    rules.response_timeout = response.or(rules.response_timeout);
    let exchange = section.value("exchange-timeout")?;
    rules.exchange_timeout = exchange.or(rules.exchange_timeout);
    Ok(())
}

fn error_pages(section: &mut Section<'_>, rules: &mut Rules) -> Result<(), String> {
    let Some(mut pages) = section.inline("error-pages")? else { return Ok(()) };
    for key in pages.keys() {
        let at = pages.place_of_key(&key);
        let status = key.parse().ok().filter(|status| (400..=599).contains(status));
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let Some(status) = status else {
            let what = format!("`{key}` in `error-pages` is not a status from 400 to 599");
            return Err(at.mistake(what));
        };
        let Some((file, at)) = pages.placed::<String>(&key)? else { continue };
        let (page, media_type) = page(section, &file, &at)?;
        rules.error_pages.add(status, page, media_type);
    }
    Ok(())
}

/// Reads a page that is kept in memory, with its type.
pub(super) fn page(
    section: &Section<'_>,
    file: &str,
    at: &Place,
) -> Result<(Bytes, HeaderValue), String> {
    let media_type = match file.rsplit_once('.').map(|(_, end)| end) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("json") => "application/json",
        _ => return Err(at.mistake(format!("page `{file}`: name an .html, .txt or .json file"))),
    };
    let path = section.path(file);
    let length = std::fs::metadata(&path).map(|metadata| metadata.len());
    if length.is_ok_and(|length| length > PAGE_BYTES as u64) {
        return Err(at.mistake(format!("page `{file}` is larger than {} KiB", PAGE_BYTES / 1024)));
    }
    let page = std::fs::read(&path)
        .map_err(|error| at.mistake(format!("page `{file}` can't be read: {error}")))?;
    Ok((page.into(), HeaderValue::from_static(media_type)))
}

fn conditions(section: &mut Section<'_>) -> Result<Conditions, String> {
    let mut conditions = Conditions::default();
    let schemes = [("http", Scheme::Http), ("https", Scheme::Https)];
    conditions.scheme = choice(section, "scheme", &schemes)?;
    for (given, at) in section.texts("listen")? {
        let address = check_address(&given).ok().and_then(|address| address.parse().ok());
        let address = address.filter(|address: &SocketAddr| address.port() != 0);
        conditions.listeners.push(address.ok_or_else(|| {
            at.mistake(format!(
                "`listen` is `{given}`: give the address and port of a [[listen]], such as 0.0.0.0:8080"
            ))
        })?);
    }
    for (given, at) in section.texts("method")? {
        let method = Method::from_bytes(given.as_bytes()).ok();
        // Methods are case-sensitive.
        let method = method.filter(|_| given == given.to_ascii_uppercase());
        conditions.methods.push(method.ok_or_else(|| {
            let upper = given.to_ascii_uppercase();
            at.mistake(format!("`method` is `{given}`: give a method such as `{upper}`"))
        })?);
    }
    conditions.fields = tests(section, "header")?;
    for (name, _) in &mut conditions.fields {
        name.make_ascii_lowercase();
    }
    conditions.query = tests(section, "query")?;
    conditions.networks = networks(section, "address")?;
    let file = section.value::<String>("while-file")?;
    conditions.switch = file.map(|file| Switch::new(section.path(&file)));
    Ok(conditions)
}

/// A test of a field or a parameter: whether it is there, or what its value is.
struct Wanted(Test);

impl Value for Wanted {
    fn of(value: &DeValue<'_>) -> Result<Self, String> {
        match value {
            DeValue::Boolean(true) => Ok(Self(Test::Present)),
            DeValue::Boolean(false) => Ok(Self(Test::Absent)),
            DeValue::String(text) => Ok(Self(Test::of(text))),
            _ => {
                let what = "is neither a string nor true or false: give a value, \"its beginning*\", or \
                            whether it must be there";
                Err(what.to_owned())
            }
        }
    }
}

/// `header = { name = "value" }`.
fn tests(section: &mut Section<'_>, key: &str) -> Result<Vec<(String, Test)>, String> {
    let Some(mut wanted) = section.inline(key)? else { return Ok(Vec::new()) };
    let mut tests = Vec::new();
    for name in wanted.keys() {
        if let Some(Wanted(test)) = wanted.value(&name)? {
            tests.push((name, test));
        }
    }
    Ok(tests)
}

fn rewrite(section: &mut Section<'_>, path: &str) -> Result<Rewrite, String> {
    let mut rewrite = Rewrite::default();
    if let Some((prefix, at)) = section.placed::<String>("strip-prefix")? {
        let said = |what: &dyn std::fmt::Display| {
            at.mistake(format!("`strip-prefix` is `{prefix}`: {what}"))
        };
        rewrite = rewrite.strip_prefix(&prefix).map_err(|what| said(&what))?;
        let bare = prefix.strip_suffix('/').unwrap_or(&prefix);
        let is_above =
            path.strip_prefix(bare).is_some_and(|rest| rest.starts_with('/') || rest.is_empty());
        if !is_above {
            return Err(said(&format!(
                "the paths of this route don't begin so, but with `{path}`"
            )));
        }
        if section.has("root") {
            let what = "files are found below the route's path already: remove it";
            return Err(said(&what));
        }
    }
    if let Some(mut inner) = section.inline("rewrite")? {
        let place = inner.place();
        let (from, to) = (inner.placed::<String>("from")?, inner.placed::<String>("to")?);
        inner.finish()?;
        let (Some((from, from_at)), Some((to, to_at))) = (from, to) else {
            let what = "`rewrite` needs both: write { from = \"^/old/(.*)$\", to = \"/new/{1}\" }";
            return Err(place.mistake(what));
        };
        let pattern = pattern(&from, &from_at)?;
        rewrite = Template::parse(&to, pattern.captures())
            .and_then(|to| rewrite.replace(pattern, to))
            .map_err(|what| to_at.mistake(format!("`to` is `{to}`: {what}")))?;
    }
    if let Some((prefix, at)) = section.placed::<String>("add-prefix")? {
        rewrite = rewrite
            .add_prefix(&prefix)
            .map_err(|what| at.mistake(format!("`add-prefix` is `{prefix}`: {what}")))?;
    }
    Ok(rewrite)
}

pub(super) fn pattern(text: &str, at: &Place) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|what| at.mistake(format!("`from` is `{text}`: {what}")))
}

/// `{ set = { name = "value" }, add = { … }, remove = ["name"] }`.
fn edits(section: &mut Section<'_>, key: &str, direction: Direction) -> Result<Edits, String> {
    let mut edits = Edits::default();
    let Some(mut all) = section.inline(key)? else { return Ok(edits) };
    for (name, at) in all.texts("remove")? {
        edits.remove(check_name(&name, direction).map_err(|what| at.mistake(what))?);
    }
    for how in ["set", "add"] {
        let Some(mut fields) = all.inline(how)? else { continue };
        for given in fields.keys() {
            let name_at = fields.place_of_key(&given);
            let name = check_name(&given, direction).map_err(|what| name_at.mistake(what))?;
            let Some((text, at)) = fields.placed::<String>(&given)? else { continue };
            let value = Template::parse(&text, 0).map_err(|what| {
                at.mistake(format!("`{given}` is `{text}`: {what}", text = text.escape_debug()))
            })?;
            if value.has_user() && direction == Direction::Response {
                let what =
                    "`{user}` is for requests: responses are edited before the user is known";
                return Err(at.mistake(format!("`{given}`: {what}")));
            }
            if how == "set" { edits.set(name, value) } else { edits.add(name, value) }
        }
    }
    all.finish()?;
    Ok(edits)
}

/// `hsts = true`, or a table.
fn hsts(section: &mut Section<'_>) -> Result<Option<Hsts>, String> {
    if section.is_table("hsts") {
        let Some(mut inner) = section.inline("hsts")? else { return Ok(None) };
        let max_age = inner.value::<Duration>("max-age")?.unwrap_or(HSTS_MAX_AGE);
        let subdomains = inner.value("include-subdomains")?.unwrap_or(false);
        let preload = inner.placed::<bool>("preload")?;
        inner.finish()?;
        if let Some((true, at)) = &preload
            && (!subdomains || max_age < HSTS_MAX_AGE)
        {
            let what = "`preload` needs `include-subdomains = true` and a `max-age` of a year";
            return Err(at.mistake(what));
        }
        return Ok(Some(Hsts::new(max_age, subdomains, preload.is_some_and(|(on, _)| on))));
    }
    let is_on = section.value::<bool>("hsts")?.unwrap_or(false);
    Ok(is_on.then(|| Hsts::new(HSTS_MAX_AGE, false, false)))
}

/// `compress = true`, or a table.
fn compression(section: &mut Section<'_>) -> Result<Option<Compression>, String> {
    if !section.is_table("compress") {
        let is_on = section.value::<bool>("compress")?.unwrap_or(false);
        return Ok(is_on.then(Compression::default));
    }
    let Some(mut inner) = section.inline("compress")? else { return Ok(None) };
    let types_at = inner.place_of("types");
    let says_types = inner.has("types");
    let types = inner.texts("types")?;
    let mut least = COMPRESS_MIN_BYTES;
    let range = Range { least: 0, most: u64::MAX, is_bytes: true };
    inner.read("min-bytes", |value: &DeValue<'_>| least.read(value, &range))?;
    inner.finish()?;
    let mut compression = Compression::default().min_bytes(least);
    if says_types {
        if types.is_empty() {
            let what =
                "`types` is empty, and nothing would be compressed: write `compress = false`";
            return Err(types_at.mistake(what));
        }
        let names = types.iter().map(|(text, _)| text.as_str());
        compression = compression.types(names).map_err(|(nth, what)| {
            let (text, at) = &types[nth];
            at.mistake(format!("`types` has `{}`: {what}", text.escape_debug()))
        })?;
    }
    Ok(Some(compression))
}

fn cors(section: &mut Section<'_>) -> Result<Option<Cors>, String> {
    let Some(mut inner) = section.inline("cors")? else { return Ok(None) };
    let place = inner.place();
    let mut list = |key: &str| -> Result<Option<(Vec<String>, Place)>, String> {
        let at = inner.place_of(key);
        let is_there = inner.has(key);
        let texts: Vec<String> = inner.texts(key)?.into_iter().map(|(text, _)| text).collect();
        Ok(is_there.then_some((texts, at)))
    };
    let (origins, methods) = (list("origins")?, list("methods")?);
    let (headers, exposed) = (list("headers")?, list("expose")?);
    let credentials = inner.placed::<bool>("credentials")?;
    let max_age = inner.value::<Duration>("max-age")?;
    inner.finish()?;
    let Some((origins, at)) = origins else {
        return Err(place.mistake("`cors` needs `origins`: name one, or \"*\" for any"));
    };
    let mut cors = Cors::new(&origins).map_err(|what| at.mistake(what))?;
    if let Some((names, at)) = methods {
        cors = cors.methods(&names).map_err(|what| at.mistake(format!("`methods`: {what}")))?;
    }
    if let Some((names, at)) = headers {
        cors = cors.headers(&names).map_err(|what| at.mistake(format!("`headers`: {what}")))?;
    }
    if let Some((names, at)) = exposed {
        cors = cors.exposed(&names).map_err(|what| at.mistake(format!("`expose`: {what}")))?;
    }
    if let Some((allowed, at)) = credentials {
        cors = cors.credentials(allowed).map_err(|what| at.mistake(what))?;
    }
    Ok(Some(match max_age {
        Some(time) => cors.max_age(time),
        None => cors,
    }))
}

//! `[[route]]`: what is answered, by host and path.

use std::time::Duration;

use bolide::files::{Offload, OffloadLimits, StaticFiles};
use bolide::http::{HeaderValue, StatusCode};
use bolide_measurement::Ndt7Settings;
use bolide_site::{Redirect, Rules, Template};
use bolide_static_files::limits::FilesLimits;

use super::access;
use super::document::Section;
use super::limit_tables;
use super::rules;
use super::upstream::Upstreams;
use crate::files::cache_control;
use crate::place::Place;
use crate::routes::{Builtin, Route, RouteAction, SiteRules};

/// A route, and where it stands.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) place: Place,
    /// Places where the route's hosts are named.
    pub(super) hosts: Vec<Place>,
    pub(super) route: Route,
}

/// Kinds of routes, by their keys.
const KINDS: [&str; 5] = ["root", "proxy", "builtin", "redirect", "respond"];

/// Reads a `[[route]]`.
pub(super) fn read(
    mut section: Section<'_>,
    upstreams: &mut Upstreams,
    ndt7: &mut Ndt7Settings,
    defaults: &Rules,
) -> Result<Placed, String> {
    let place = section.place();
    let kinds: Vec<&str> = KINDS.into_iter().filter(|key| section.has(key)).collect();
    let names_hosts = section.has("host");
    let list_at = section.place_of("host");
    let (hosts, hosts_at) = hosts(&mut section)?;
    if names_hosts && hosts.is_empty() {
        return Err(list_at.mistake("this route can never match: its list of hosts is empty"));
    }
    let given = section.placed::<String>("path")?;
    let (path, path_at) = match &given {
        None => ("/", &place),
        Some((path, at)) => (path.as_str(), at),
    };
    check_path(path)
        .and_then(|()| check_encoding(path))
        .map_err(|what| path_at.mistake(format!("path `{path}` {what}")))?;
    let given_rule = rules::KEYS.into_iter().find(|key| section.has(key));
    let is_builtin = section.has("builtin");
    let none = Rules::default();
    let defaults = if is_builtin { &none } else { defaults };
    let compress_at = section.is_table("compress").then(|| section.place_of("compress"));
    let mut site = rules::read(&mut section, path, defaults)?;
    let action = match kinds[..] {
        ["root"] | ["root", "proxy"] => {
            files_answer(&mut section, (path, path_at), upstreams, &mut site, compress_at)?
        }
        ["proxy"] => {
            let urls = section.texts("proxy")?;
            RouteAction::Proxy(upstreams.find(&urls)?)
        }
        ["builtin"] => {
            if let Some(key) = given_rule {
                let what =
                    format!("the built-in routes have no conditions and rules: remove `{key}`");
                return Err(place.mistake(what));
            }
            builtin(&mut section, given.is_some(), ndt7)?
        }
        ["redirect"] => redirect(&mut section, path, &mut site)?,
        ["respond"] => respond(&mut section)?,
        _ => {
            // A slip in the key that says what to do is the likelier mistake.
            section.could_have(&KINDS);
            section.could_have(&["index", "listing", "status", "content-type"]);
            section.finish()?;
            let what = match kinds[..] {
                [] => "a route needs an action: write one of".to_owned(),
                _ => format!("a route has one action, not `{}`: use one of", kinds.join("` and `")),
            };
            return Err(place.mistake(format!("{what} `{}`", KINDS.join("`, `"))));
        }
    };
    let access = access::read(&mut section, &action)?;
    section.finish()?;
    let route = Route { hosts, path: path.to_owned(), action, site, access };
    Ok(Placed { route, place, hosts: hosts_at })
}

/// The hosts as they are compared, and where each is named.
fn hosts(section: &mut Section<'_>) -> Result<(Vec<String>, Vec<Place>), String> {
    let (mut hosts, mut places) = (Vec::new(), Vec::new());
    for (given, at) in section.texts("host")? {
        let host = normal(&given);
        if hosts.contains(&host) {
            return Err(at.mistake(format!("`host` names `{host}` twice: remove one")));
        }
        hosts.push(host);
        places.push(at);
    }
    Ok((hosts, places))
}

/// Hosts are compared in lower case and without the dot of the root.
fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Checks whether a request can ask for this path; what is wrong completes "path `…` …".
fn check_path(path: &str) -> Result<(), String> {
    let what = if !path.starts_with('/') {
        "can never match: a path must begin with a slash"
    } else if path.contains(['?', '#']) {
        "can never match: a path has no query and no fragment"
    } else if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        "can never match: paths are matched as they are sent, so write it percent-encoded"
    } else if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        "can never match: clients resolve dots before they send the request"
    } else if let Some(above) = path.strip_suffix('*').filter(|above| !above.contains('*')) {
        return Err(match above.strip_suffix('/') {
            Some(_) => format!("matches a `*` alone: write `{above}` for everything below it"),
            None => format!("matches a `*` alone: write `{above}/`, or `{above}{{*rest}}`"),
        });
    } else if path.replace("{*", "").contains('*') {
        "matches a `*` alone: write {name} for one segment, or {*rest} at the end"
    } else if path.ends_with('/') && path.contains(['{', '}']) {
        "can't match: a path with a parameter can't end with a slash (nor can `root` have one)"
    } else {
        return Ok(());
    };
    Err(what.to_owned())
}

/// Checks whether each escape is one, and of a byte that clients escape: letters, digits and `-._~` they send as they
/// are (RFC 3986 §2.3, §6.2.2.2), and paths are matched as they are sent.
fn check_encoding(path: &str) -> Result<(), String> {
    for (at, _) in path.match_indices('%') {
        let digits = path.get(at + 1..at + 3).filter(|digits| {
            // A number may have a sign, an escape has none.
            digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return Err(
                "can never match: a % must be followed by two hexadecimal digits".to_owned()
            );
        };
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            let (escape, plain) = (&path[at..at + 3], char::from(byte));
            return Err(format!(
                "has `{escape}`, which clients send as `{plain}`: write `{}`",
                path.replace(escape, &plain.to_string())
            ));
        }
    }
    Ok(())
}

/// The same for all patterns that match the same paths.
fn shape(path: &str) -> String {
    let mut shape = String::new();
    for (number, part) in path.split('{').enumerate() {
        match part.split_once('}').filter(|_| number > 0) {
            None => shape.push_str(part),
            Some((name, rest)) => {
                shape.push_str(if name.starts_with('*') { "{*}" } else { "{}" });
                shape.push_str(rest);
            }
        }
    }
    shape
}

/// Files, and the upstreams for what has no file. `compress_at`: where `compress` is a table.
fn files_answer(
    section: &mut Section<'_>,
    (path, path_at): (&str, &Place),
    upstreams: &mut Upstreams,
    site: &mut SiteRules,
    compress_at: Option<Place>,
) -> Result<RouteAction, String> {
    let has_proxy = section.has("proxy");
    if let Some(at) = compress_at.filter(|_| !has_proxy) {
        let what =
            "files are compressed by their type, once for each version: write `compress = true`";
        return Err(at.mistake(what));
    }
    let compress =
        if has_proxy { site.rules.compression.is_some() } else { site.take_compression() };
    let files = files(section, path, path_at)?.compress(compress);
    let other = if has_proxy { Some(upstreams.find(&section.texts("proxy")?)?) } else { None };
    Ok(RouteAction::Files { files, other })
}

/// `root` and what goes with it.
fn files(section: &mut Section<'_>, path: &str, path_at: &Place) -> Result<StaticFiles, String> {
    section.could_have(&["index", "proxy"]);
    if !path.ends_with('/') {
        let above = path.split('{').next().unwrap_or_default().trim_end_matches('/');
        let what = format!("a route with `root` needs a path that ends with `/`: use `{above}/`");
        return Err(path_at.mistake(what));
    }
    let Some((root, root_at)) = section.placed::<String>("root")? else {
        return Err(path_at.mistake("`root` is missing"));
    };
    let mut files =
        StaticFiles::new(section.path(&root)).map_err(|error| root_at.mistake(error))?.under(path);
    if let Some(listing) = section.value("listing")? {
        files = files.listing(listing);
    }
    if let Some(precompressed) = section.value("precompressed")? {
        files = files.precompressed(precompressed);
    }
    if let Some(hidden) = section.value("hidden")? {
        files = files.hidden(hidden);
    }
    if let Some(sendfile) = section.value("sendfile")? {
        files = files.sendfile(sendfile);
    }
    if section.has("index") {
        files = files.index(section.texts("index")?.into_iter().map(|(name, _)| name));
    }
    let others: Vec<&str> =
        ["not-found", "proxy"].into_iter().filter(|key| section.has(key)).collect();
    if let Some(page) = page(section, "not-found", &files)? {
        files = files.not_found(&page);
    }
    let fallback_at = section.place_of("fallback");
    if let Some(page) = page(section, "fallback", &files)? {
        if let [other, ..] = others[..] {
            let what =
                format!("`fallback` and `{other}` are for the same requests: remove one of them");
            return Err(fallback_at.mistake(what));
        }
        files = files.fallback(&page);
    }
    for (rule, at) in section.texts("cache-control")? {
        let (pattern, value) = cache_control(&rule)
            .map_err(|what| at.mistake(format!("`cache-control` is `{rule}`: {what}")))?;
        files = files.cache_control(&pattern, value);
    }
    let mut limits = FilesLimits::default();
    limit_tables::read(section, &mut limits)?;
    let mut offload = OffloadLimits::default();
    limit_tables::read(section, &mut offload)?;
    let FilesLimits { cache_bytes, cache_files_count, cached_file_bytes, fresh, waiting_bytes } =
        limits;
    Ok(files
        .cache(cache_bytes, cache_files_count)
        .cached_file(cached_file_bytes)
        .fresh(fresh)
        .waiting(waiting_bytes)
        .offload(Offload::new(offload)))
}

/// A file below the root that is sent where there is no other.
fn page(
    section: &mut Section<'_>,
    key: &str,
    files: &StaticFiles,
) -> Result<Option<String>, String> {
    match section.placed::<String>(key)? {
        Some((page, at)) if !files.has_file(&page) => {
            let what = format!("`{key}` is `{page}`: not in the root directory, or not readable");
            Err(at.mistake(what))
        }
        page => Ok(page.map(|(page, _)| page)),
    }
}

fn builtin(
    section: &mut Section<'_>,
    has_path: bool,
    ndt7: &mut Ndt7Settings,
) -> Result<RouteAction, String> {
    let Some((on, at)) = section.placed::<bool>("builtin")? else {
        return Err(section.place().mistake("`builtin` is missing"));
    };
    if !on {
        return Err(
            at.mistake("built-in routes are off unless a route enables them: remove this key")
        );
    }
    if has_path {
        return Err(at.mistake("the built-in routes have their own paths: remove `path`"));
    }
    if let Some((given, at)) = section.placed::<String>("ndt7-archive")? {
        let directory = section.path(&given);
        if !directory.is_dir() {
            let what = format!(
                "`ndt7-archive` {}: directory doesn't exist (create it first)",
                directory.display()
            );
            return Err(at.mistake(what));
        }
        if ndt7.archive.as_ref().is_some_and(|other| *other != directory) {
            return Err(at.mistake("`ndt7-archive`: another route names a different directory"));
        }
        ndt7.archive = Some(directory);
    }
    Ok(RouteAction::Builtin(Builtin::All))
}

fn redirect(
    section: &mut Section<'_>,
    path: &str,
    site: &mut SiteRules,
) -> Result<RouteAction, String> {
    let (pattern, to) = if section.is_table("redirect") {
        let Some(mut inner) = section.inline("redirect")? else {
            return Err(section.place().mistake("`redirect` is missing"));
        };
        let from = inner.placed::<String>("from")?;
        let to = inner.placed::<String>("to")?;
        inner.finish()?;
        (from.map(|(from, at)| rules::pattern(&from, &at)).transpose()?, to)
    } else {
        (None, section.placed::<String>("redirect")?)
    };
    let status =
        status(section, StatusCode::PERMANENT_REDIRECT, "301, 302, 303, 307 or 308", |status| {
            matches!(status, 301 | 302 | 303 | 307 | 308)
        })?;
    let Some((to, at)) = to else {
        return Err(section.place().mistake("`redirect` needs a target: write `to`"));
    };
    let captures = pattern.as_ref().map_or(0, bolide_site::Pattern::captures);
    let mut redirect = Template::parse(&to, captures)
        .and_then(|to| Redirect::new(to, path, status))
        .map_err(|what| at.mistake(format!("`redirect` is `{to}`: {what}")))?;
    if let Some(pattern) = pattern {
        site.conditions.pattern = Some(pattern.clone());
        redirect = redirect.captured(pattern);
    }
    Ok(RouteAction::Redirect(redirect))
}

fn respond(section: &mut Section<'_>) -> Result<RouteAction, String> {
    let (text, page_type) = if section.is_table("respond") {
        let file = match section.inline("respond")? {
            None => None,
            Some(mut inner) => {
                let file = inner.placed::<String>("file")?;
                inner.finish()?;
                file
            }
        };
        let Some((file, at)) = file else {
            return Err(section
                .place()
                .mistake("`respond` needs a file: write { file = \"page.html\" }"));
        };
        let (page, media_type) = rules::page(section, &file, &at)?;
        (page, media_type)
    } else {
        let text = section.value::<String>("respond")?.unwrap_or_default();
        (text.into(), HeaderValue::from_static("text/plain; charset=utf-8"))
    };
    let retry_after = section.value::<Duration>("retry-after")?.map(|time| time.as_secs().into());
    let media_type = section.placed::<String>("content-type")?;
    let status =
        status(section, StatusCode::OK, "200 to 599", |status| (200..=599).contains(&status))?;
    let media_type = match media_type {
        None => page_type,
        Some((given, at)) => HeaderValue::try_from(&given).map_err(|_| {
            at.mistake(format!("`content-type` is `{given}`: not a valid field value"))
        })?,
    };
    Ok(RouteAction::Respond { text, media_type, status, retry_after })
}

fn status(
    section: &mut Section<'_>,
    default: StatusCode,
    allowed: &str,
    suits: impl Fn(u16) -> bool,
) -> Result<StatusCode, String> {
    let Some((number, at)) = section.placed::<u16>("status")? else { return Ok(default) };
    match StatusCode::from_u16(number) {
        Ok(status) if suits(number) => Ok(status),
        _ => Err(at.mistake(format!("`status` is {number}: this route allows {allowed}"))),
    }
}

/// Checks whether each route has its place: of those with the same host and path, the first whose conditions hold responds, and
/// none may come after one without conditions.
pub(super) fn check(routes: &[Placed]) -> Result<(), String> {
    let builtin = bolide_measurement::paths();
    let mut taken: Vec<(&str, String, &Placed)> = Vec::new();
    for placed in routes {
        let hosts: Vec<&str> = match &placed.route.hosts[..] {
            [] => vec![""],
            hosts => hosts.iter().map(String::as_str).collect(),
        };
        let paths = match placed.route.action {
            RouteAction::Builtin(_) => &builtin[..],
            _ => std::slice::from_ref(&placed.route.path),
        };
        for host in hosts {
            for path in paths {
                let shape = shape(path);
                let is_same = |(h, p, other): &&(&str, String, &Placed)| {
                    *h == host
                        && *p == shape
                        && other.route.comes_first() == placed.route.comes_first()
                };
                for (.., other) in taken.iter().filter(is_same) {
                    check_order(placed, other, host, path)?;
                }
                taken.push((host, shape, placed));
            }
        }
    }
    Ok(())
}

/// Checks whether a route can be reached after another with the same host and path.
fn check_order(placed: &Placed, other: &Placed, host: &str, path: &str) -> Result<(), String> {
    let (own, theirs) = (&placed.route.site.conditions, &other.route.site.conditions);
    let is_builtin = |placed: &Placed| matches!(placed.route.action, RouteAction::Builtin(_));
    let is_plain = own.is_empty() && theirs.is_empty();
    if is_plain || is_builtin(placed) || is_builtin(other) || other.route.path != placed.route.path
    {
        return Err(clash(placed, other, host, path));
    }
    if own.imply(theirs) {
        let at = &other.place.at;
        let what = format!("this route is never reached: the route at {at} takes its requests");
        return Err(placed.place.mistake(what));
    }
    Ok(())
}

/// Returns what is said of a route that answers what another does already.
fn clash(placed: &Placed, other: &Placed, host: &str, path: &str) -> String {
    let is_builtin = |placed: &Placed| matches!(placed.route.action, RouteAction::Builtin(_));
    let which = if is_builtin(other) { "the built-in routes of" } else { "the route in" };
    let line = other.place.line;
    let both = match other.route.path.as_str() {
        theirs if theirs == path || is_builtin(other) || is_builtin(placed) => {
            format!("both match `{host}{path}`")
        }
        theirs => format!("`{host}{path}` and `{host}{theirs}` match the same paths"),
    };
    let file = match other.place.file() {
        file if file == placed.place.file() => String::new(),
        file => format!(" of {file}"),
    };
    placed.place.mistake(format!("this route conflicts with {which} line {line}{file}: {both}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_no_client_sends_is_found() {
        for good in ["/", "/a", "/a/", "/%20", "/users/{id}", "/users/{id}/list", "/a//b"] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        for bad in ["", "a", "/a?b", "/a#b", "/a b", "/ä", "/../a", "/a/.", "/a/{b}/"] {
            assert!(check_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_escape_that_no_client_sends_is_found() {
        for good in ["/", "/%20", "/%C3%a9", "/a%2Fb", "/{id}"] {
            assert_eq!(check_encoding(good), Ok(()), "{good}");
        }
        let said = |path: &str| check_encoding(path).unwrap_err();
        assert_eq!(said("/%61/b"), "has `%61`, which clients send as `a`: write `/a/b`");
        for bad in ["/%", "/%2", "/%zz", "/%+1", "/%ä"] {
            assert!(said(bad).contains("two hexadecimal digits"), "{bad}");
        }
    }

    #[test]
    fn patterns_with_other_names_have_the_same_shape() {
        assert_eq!(shape("/users/{id}/list"), shape("/users/{name}/list"));
        assert_eq!(shape("/{*rest}"), shape("/{*path}"));
        assert_ne!(shape("/{id}"), shape("/{*id}"));
        assert_ne!(shape("/a{id}"), shape("/b{id}"));
    }
}

//! A scenario as its file says it (TOML).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bolide_probe::engine::template::{Content, Escape, Names, Template};
use bolide_probe::plan::RequestPlan;
use bolide_probe::scenario::{Capture, Place, Scenario, StepPlan, Think, UserKind};
use bolide_semantics::{Scheme, Url, check_path};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde::Deserialize;

use super::{SERVERS_COUNT, STEPS_COUNT, data, is_secret};
use crate::given::{body_file, method};
use crate::options::request::{fields as read_fields, statuses};

/// Redirects that a step follows, by default.
const REDIRECTS_COUNT: u8 = 5;

/// Boundary of the parts of a multipart body (RFC 2046 §5.1.1); no part may contain it.
const BOUNDARY: &str = "bolide-5f0c1b9e7a3d46288d21";

/// Users, by default.
const USERS_COUNT: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    data: Option<PathBuf>,
    #[serde(default)]
    user: Vec<User>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    name: Option<String>,
    weight: Option<u32>,
    think: Option<String>,
    redirects: Option<u8>,
    #[serde(default)]
    step: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    name: Option<String>,
    request: String,
    #[serde(default)]
    fields: BTreeMap<String, String>,
    body: Option<String>,
    body_file: Option<PathBuf>,
    json: Option<serde_json::Value>,
    form: Option<BTreeMap<String, String>>,
    multipart: Option<Vec<Part>>,
    basic: Option<String>,
    bearer: Option<String>,
    #[serde(default)]
    capture: BTreeMap<String, String>,
    #[serde(default)]
    expect: Expect,
    redirects: Option<u8>,
    think: Option<String>,
}

/// A part of a multipart body (RFC 7578).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    value: Option<String>,
    file: Option<PathBuf>,
    r#type: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    status: Option<String>,
    contains: Option<String>,
    #[serde(default)]
    fields: BTreeMap<String, String>,
}

/// Properties that all steps of a file have in common.
struct Common<'a> {
    directory: &'a Path,
    /// That of the URL, and those that steps name.
    servers: &'a [Url],
    fields: &'a [(HeaderName, HeaderValue)],
    columns: &'a [String],
    captures: &'a [String],
}

/// Contents of a file.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(crate) scenario: Scenario,
    pub(crate) plans: Vec<RequestPlan>,
    /// The servers that steps name besides the URL's, whose addresses are to be put into the scenario.
    pub(crate) others: Vec<Url>,
}

/// Reads a scenario; `fields` go with every request, but credentials only to the URL's server. Paths in it begin at its
/// directory.
///
/// # Errors
///
/// The user, the step, and what is wrong with it.
pub(crate) fn read(
    path: &Path,
    server: &Url,
    fields: &[(HeaderName, HeaderValue)],
) -> Result<Steps, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    parse(&text, path.parent().unwrap_or_else(|| Path::new("")), server, fields)
}

fn parse(
    text: &str,
    directory: &Path,
    server: &Url,
    fields: &[(HeaderName, HeaderValue)],
) -> Result<Steps, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let (columns, rows) = match &file.data {
        Some(path) => data::read(&directory.join(path))?,
        None => Default::default(),
    };
    let captures = captures(&file)?;
    let mut named = servers(&file, server)?;
    let common =
        Common { directory, servers: &named, fields, columns: &columns, captures: &captures };
    let (mut kinds, mut plans, mut weights_sum) = (Vec::new(), Vec::new(), 0);
    let mut numbers = Vec::new();
    for (index, user) in file.user.iter().enumerate() {
        let named = |why: String| match &user.name {
            Some(name) => format!("user `{name}`: {why}"),
            None => format!("user {}: {why}", index + 1),
        };
        let begin = plans.len();
        for plan in steps(user, &common, file.user.len() > 1) {
            let (server, plan) = plan.map_err(named)?;
            numbers.push(server);
            plans.push(plan);
        }
        if begin == plans.len() {
            return Err(named("has no [[user.step]]".to_owned()));
        }
        weights_sum += u64::from(user.weight.unwrap_or(1));
        kinds.push(UserKind { weights_sum, steps: begin..plans.len() });
    }
    if weights_sum == 0 {
        return Err("has no [[user]] of a weight above 0".to_owned());
    }
    if plans.len() > STEPS_COUNT {
        return Err(format!("has {} steps, more than {STEPS_COUNT}", plans.len()));
    }
    let captures_count = captures.len();
    let scenario = Scenario {
        rows,
        captures_count,
        servers: numbers.into(),
        ..Scenario::new(USERS_COUNT, kinds)
    };
    Ok(Steps { scenario, plans, others: named.split_off(1) })
}

/// The server of the URL, and those that steps name besides.
fn servers(file: &File, server: &Url) -> Result<Vec<Url>, String> {
    let mut servers = vec![server.clone()];
    // What is no URL is told with its step.
    let urls = file.user.iter().flat_map(|user| &user.step).filter_map(|step| url(&step.request));
    for named in urls.filter_map(|url| Url::parse(before_braces(url), &Scheme::HTTP).ok()) {
        if !servers.iter().any(|known| known.is_same_origin(&named)) {
            servers.push(Url { path: "/".to_owned(), ..named });
        }
    }
    if servers.len() > SERVERS_COUNT {
        return Err(format!("names {} servers, more than {SERVERS_COUNT}", servers.len()));
    }
    Ok(servers)
}

/// The URL of a step that has a whole one.
fn url(request: &str) -> Option<&str> {
    let url = request.split_once(' ').map_or(request, |(_, url)| url.trim());
    (!url.starts_with('/')).then_some(url)
}

/// A placeholder is no part of a URL, and its braces are none of a path.
fn before_braces(url: &str) -> &str {
    url.split('{').next().unwrap_or(url)
}

/// The names of all that is captured.
fn captures(file: &File) -> Result<Vec<String>, String> {
    let steps = file.user.iter().flat_map(|user| &user.step);
    let mut names: Vec<String> = steps.flat_map(|step| step.capture.keys().cloned()).collect();
    names.sort();
    names.dedup();
    let is_of = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let is_word = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    for name in &names {
        if !is_word(name) || !name.chars().all(is_of) {
            return Err(format!(
                "capture `{}`: use letters, digits, `_` and `-`",
                name.escape_debug()
            ));
        }
        if ["connection", "request", "user", "uuid", "random"].contains(&name.as_str()) {
            return Err(format!("capture `{name}`: `{{{name}}}` stands for something else"));
        }
    }
    Ok(names)
}

/// The steps of one kind of users, and the number of the server that each goes to.
fn steps(
    user: &User,
    common: &Common<'_>,
    is_one_of_many: bool,
) -> impl Iterator<Item = Result<(usize, RequestPlan), String>> {
    let mut captured = vec![false; common.captures.len()];
    user.step.iter().enumerate().map(move |(index, step)| {
        let name = step.name.clone().unwrap_or_else(|| step.request.clone());
        let named = |why: String| format!("step {} (`{name}`): {why}", index + 1);
        let full = match &user.name {
            Some(user) if is_one_of_many => format!("{user}: {name}"),
            _ => name.clone(),
        };
        let (server, plan) = plan(user, step, full, common).map_err(named)?;
        if let Some(of) = &plan.step {
            let mut needed = of.templates().flat_map(Template::captures);
            if let Some(slot) = needed.find(|slot| !captured[*slot]) {
                let missing = &common.captures[slot];
                return Err(named(format!("`{{{missing}}}` is captured by no step before it")));
            }
            for capture in &of.captures {
                captured[capture.slot] = true;
            }
        }
        Ok((server, plan))
    })
}

fn plan(
    user: &User,
    step: &Step,
    name: String,
    common: &Common<'_>,
) -> Result<(usize, RequestPlan), String> {
    let names = Names { columns: common.columns, captures: common.captures };
    let (content_type, content) = content(step, common, &names)?;
    let default = if content.is_empty() { Method::GET } else { Method::POST };
    let (method, server, path) = request(&step.request, default, common.servers)?;
    let target = Template::named(&path, &names, Escape::Path)?;
    target.texts().try_for_each(check_path)?;
    let mut fields = own_fields(step, &names)?;
    if let Some(content_type) = content_type
        && !fields.iter().any(|(name, _)| *name == CONTENT_TYPE)
    {
        fields.push((CONTENT_TYPE, Template::constant(&content_type)));
    }
    let is_own = |name: &HeaderName| fields.iter().any(|(own, _)| own == name);
    // The command line's credentials are for the server of the URL.
    let is_shared = |name: &HeaderName| !is_own(name) && (server == 0 || !is_secret(name));
    let shared = common.fields.iter().filter(|(name, _)| is_shared(name)).cloned().collect();
    let captures = step.capture.iter().map(|(name, place)| {
        let slot = common.captures.iter().position(|known| known == name).unwrap_or_default();
        let place = Place::parse(place).map_err(|why| format!("capture `{name}`: {why}"))?;
        Ok(Capture { slot, place })
    });
    let expected = step.expect.fields.iter().map(|(name, value)| format!("{name}: {value}"));
    let expected: Vec<String> = expected.collect();
    let think = step.think.as_deref().or(user.think.as_deref());
    let response_statuses: Vec<StatusCode> =
        step.expect.status.as_deref().map(statuses).transpose()?.unwrap_or_default();
    let of = StepPlan {
        name,
        target,
        fields,
        content,
        think: think.map(Think::parse).transpose()?.unwrap_or_default(),
        captures: captures.collect::<Result<_, String>>()?,
        contains: step.expect.contains.as_deref().filter(|text| !text.is_empty()).map(Box::from),
        redirects: step.redirects.or(user.redirects).unwrap_or(REDIRECTS_COUNT),
        statuses: response_statuses,
    };
    let plan = RequestPlan {
        fields: shared,
        has_placeholders: true,
        response_fields: read_fields(expected.iter().map(String::as_str))?.0,
        step: Some(Arc::new(of)),
        ..RequestPlan::new(method, path)
    };
    Ok((server, plan))
}

/// The fields that a step has of its own, and its credentials.
fn own_fields(step: &Step, names: &Names<'_>) -> Result<Vec<(HeaderName, Template)>, String> {
    let template = |text: &str, escape| Template::named(text, names, escape);
    let mut fields = Vec::new();
    for (name, value) in &step.fields {
        let value = template(value, Escape::Field)?;
        let shown: String = value.texts().collect();
        let (read, authority) = read_fields([format!("{name}: {shown}").as_str()])?;
        match read.into_iter().next() {
            Some((COOKIE, _)) => return Err("`cookie`: each user keeps its own cookies".to_owned()),
            Some((name, _)) => fields.push((name, value)),
            None if authority.is_some() => {
                return Err(
                    "`host`: a step that goes to another server names it in `request`".to_owned()
                );
            }
            None => {}
        }
    }
    match (&step.basic, &step.bearer) {
        (Some(_), Some(_)) => return Err("`basic` or `bearer`, not both".to_owned()),
        (Some(basic), _) if !basic.contains(':') => {
            return Err("`basic`: has no colon; use `user:password`".to_owned());
        }
        (Some(basic), _) => {
            fields.push((AUTHORIZATION, template(basic, Escape::Plain)?.into_basic()));
        }
        (_, Some(token)) => {
            fields.push((AUTHORIZATION, template(&format!("Bearer {token}"), Escape::Field)?));
        }
        _ => {}
    }
    Ok(fields)
}

/// Method, number of the server, and path of `GET /path`, of `/path`, or of either with a whole URL.
fn request(
    text: &str,
    default: Method,
    servers: &[Url],
) -> Result<(Method, usize, String), String> {
    let (method, path) = match text.split_once(' ') {
        Some((name, path)) => (method(name)?, path.trim()),
        None => (default, text),
    };
    let Some(url) = url(text) else { return Ok((method, 0, path.to_owned())) };
    let named = Url::parse(before_braces(url), &Scheme::HTTP)?;
    let server = servers.iter().position(|server| server.is_same_origin(&named));
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url[authority..].find(['/', '?']).map_or("/", |at| &url[authority + at..]);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((method, server.unwrap_or_default(), path))
}

/// The content of a step, and the type that it is of.
fn content(
    step: &Step,
    common: &Common<'_>,
    names: &Names<'_>,
) -> Result<(Option<String>, Vec<Content>), String> {
    let given = [
        ("body", step.body.is_some()),
        ("body_file", step.body_file.is_some()),
        ("json", step.json.is_some()),
        ("form", step.form.is_some()),
        ("multipart", step.multipart.is_some()),
    ];
    let given: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    if let [first, second, ..] = given[..] {
        return Err(format!("`{first}` or `{second}`, not both: each is the body"));
    }
    let text = |text: &str, escape| Template::named(text, names, escape).map(Content::Text);
    if let Some(body) = &step.body {
        return Ok((None, vec![text(body, Escape::Plain)?]));
    }
    if let Some(path) = &step.body_file {
        let bytes = body_file("body_file", &common.directory.join(path))?;
        return Ok((None, vec![Content::Bytes(bytes)]));
    }
    if let Some(json) = &step.json {
        let content = text(&json.to_string(), Escape::Json)?;
        return Ok((Some("application/json".to_owned()), vec![content]));
    }
    if let Some(form) = &step.form {
        let mut whole = Template::default();
        for (index, (name, value)) in form.iter().enumerate() {
            let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
            let between = if index == 0 { "" } else { "&" };
            whole.append(Template::constant(&format!("{between}{name}=")));
            whole.append(Template::named(value, names, Escape::Form)?);
        }
        let content_type = "application/x-www-form-urlencoded".to_owned();
        return Ok((Some(content_type), vec![Content::Text(whole)]));
    }
    match &step.multipart {
        Some(parts) => Ok((
            Some(format!("multipart/form-data; boundary={BOUNDARY}")),
            multipart(parts, common, names)?,
        )),
        None => Ok((None, Vec::new())),
    }
}

/// RFC 7578: the parts of a form, and files.
fn multipart(
    parts: &[Part],
    common: &Common<'_>,
    names: &Names<'_>,
) -> Result<Vec<Content>, String> {
    let mut content = Vec::new();
    for part in parts {
        let wrong = |why: &str| format!("multipart `{}`: {why}", part.name.escape_debug());
        let quoted = |text: &str| {
            let is_safe = !text.contains(['"', '\r', '\n']);
            is_safe.then(|| text.to_owned()).ok_or_else(|| wrong("has a quote or a line end"))
        };
        let name = quoted(&part.name)?;
        let mut head = format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"");
        if let Some(file) = &part.file {
            let file = file.file_name().unwrap_or_default().to_string_lossy();
            head += &format!("; filename=\"{}\"", quoted(&file)?);
        }
        if let Some(content_type) = &part.r#type {
            head += &format!("\r\ncontent-type: {}", quoted(content_type)?);
        }
        content.push(Content::Text(Template::constant(&(head + "\r\n\r\n"))));
        content.push(match (&part.value, &part.file) {
            (Some(value), None) => Content::Text(Template::named(value, names, Escape::Plain)?),
            (None, Some(file)) => {
                Content::Bytes(body_file("multipart", &common.directory.join(file))?)
            }
            _ => return Err(wrong("needs `value` or `file`, one of them")),
        });
        content.push(Content::Bytes(Bytes::from_static(b"\r\n")));
    }
    content.push(Content::Text(Template::constant(&format!("--{BOUNDARY}--\r\n"))));
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<Steps, String> {
        let server = Url::parse("http://shop.test", &Scheme::HTTP).unwrap();
        let fields = read_fields(["accept: */*", "x-a: {user}"]).unwrap().0;
        parse(text, Path::new(""), &server, &fields)
    }

    #[test]
    fn users_have_weights_and_steps() {
        let Steps { scenario, plans, others } = parsed(
            "[[user]]\nname = 'buyer'\nweight = 3\nthink = '1s..2s'\n\
             [[user.step]]\nname = 'log in'\nrequest = '/login'\nform = { name = 'a b', 'p&' = '{uuid}' }\n\
             capture = { token = 'json /t' }\nthink = '0s'\n\
             [[user.step]]\nrequest = 'PUT http://shop.test/cart?t={token}'\njson = { id = '{token}' }\n\
             bearer = '{token}'\nfields = { accept = 'a/b' }\nexpect = { status = '2xx', contains = 'ok' }\n\
             [[user]]\n[[user.step]]\nrequest = '/'\n",
        )
        .unwrap();
        let kinds: Vec<_> =
            scenario.kinds.iter().map(|kind| (kind.weights_sum, kind.steps.clone())).collect();
        assert_eq!(kinds, [(3, 0..2), (4, 2..3)]);
        assert_eq!((scenario.captures_count, plans.len(), others.len()), (1, 3, 0));
        let steps: Vec<&StepPlan> =
            plans.iter().map(|plan| &**plan.step.as_ref().unwrap()).collect();
        assert_eq!((steps[0].name.as_str(), &plans[0].method), ("buyer: log in", &Method::POST));
        assert_eq!(steps[0].think, Think::Never);
        assert!(steps[0].fields.iter().any(|(name, _)| *name == CONTENT_TYPE));
        assert_eq!(plans[0].fields.len(), 2);
        assert_eq!((plans[1].target.as_str(), &plans[1].method), ("/cart?t={token}", &Method::PUT));
        assert_eq!(plans[1].fields.len(), 1, "its own `accept` takes the place of the common one");
        assert_eq!(steps[1].statuses.len(), 100);
        assert!(steps[1].reads_body() && steps[0].reads_body() && !steps[2].reads_body());
        assert_eq!((steps[2].name.as_str(), steps[2].redirects), ("/", REDIRECTS_COUNT));
    }

    #[test]
    fn a_mistake_is_told_with_its_user_and_step() {
        let step = |text: &str| format!("[[user]]\nname = 'u'\n[[user.step]]\n{text}\n");
        for (text, why) in [
            (String::new(), "has no [[user]]"),
            ("[[user]]\nname = 'u'\n".to_owned(), "user `u`: has no [[user.step]]"),
            ("[[user]]\nweight = 0\n[[user.step]]\nrequest = '/'\n".to_owned(), "weight above 0"),
            (step("request = '/'\nspeed = 1"), "unknown field `speed`"),
            (
                step("request = '/{tokn}'\ncapture = { token = 'json /a' }"),
                "did you mean `{token}`?",
            ),
            (
                step("request = '/{token}'\ncapture = { token = 'json /a' }"),
                "user `u`: step 1 (`/{token}`): `{token}` is captured by no step before it",
            ),
            (step("request = 'http://{user}.test/'"), "it has no host"),
            (step("request = 'ws://other.test/'"), "must begin with http://"),
            (step("request = '/a b'"), "is not a method"),
            (step("request = 'CONNECT /'"), "opens a tunnel"),
            (step("request = '/'\nbody = 'a'\njson = 1"), "`body` or `json`, not both"),
            (step("request = '/'\nfields = { cookie = 'a=b' }"), "keeps its own cookies"),
            (step("request = '/'\nfields = { host = 'a' }"), "names it in `request`"),
            (step("request = '/'\nfields = { 'content-length' = '1' }"), "body's length is sent"),
            (step("request = '/'\nbasic = 'a'"), "use `user:password`"),
            (step("request = '/'\nthink = 'long'"), "`exponential 2s`"),
            (step("request = '/'\ncapture = { 'a b' = 'json /a' }"), "use letters"),
            (step("request = '/'\ncapture = { user = 'json /a' }"), "stands for something else"),
            (step("request = '/'\nmultipart = [{ name = 'a' }]"), "needs `value` or `file`"),
            (step("request = '/'\nexpect = { status = '2' }"), "is not a status"),
            (format!("data = 'absent.csv'\n{}", step("request = '/'")), "data absent.csv: "),
        ] {
            let said = parsed(&text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn steps_may_name_other_servers() {
        let server = Url::parse("http://shop.test", &Scheme::HTTP).unwrap();
        let fields = read_fields(["authorization: secret", "x-a: b"]).unwrap().0;
        let text = "[[user]]\n[[user.step]]\nrequest = '/a'\n\
                    [[user.step]]\nrequest = 'https://Login.test/b?u={user}'\n\
                    [[user.step]]\nrequest = 'PUT http://shop.test:80/c'\n\
                    [[user.step]]\nrequest = 'https://login.test:443'\n\
                    [[user.step]]\nrequest = 'https://shop.test/d'\n";
        let Steps { scenario, plans, others } =
            parse(text, Path::new(""), &server, &fields).unwrap();
        let named: Vec<String> = others.iter().map(Url::to_string).collect();
        assert_eq!(named, ["https://Login.test/", "https://shop.test/"]);
        let found: Vec<_> = plans
            .iter()
            .enumerate()
            .map(|(step, plan)| (scenario.server(step), plan.target.as_str(), plan.fields.len()))
            .collect();
        let expected =
            [(0, "/a", 2), (1, "/b?u={user}", 1), (0, "/c", 2), (1, "/", 1), (2, "/d", 1)];
        assert_eq!(found, expected, "credentials are for the URL's server");
        let many: String = (0..SERVERS_COUNT)
            .map(|number| format!("[[user.step]]\nrequest = 'http://{number}.test/'\n"))
            .collect();
        let said = parsed(&format!("[[user]]\n{many}")).unwrap_err();
        assert!(said.contains("names 33 servers, more than 32"), "{said}");
    }

    #[test]
    fn parts_are_framed() {
        let text = "[[user]]\n[[user.step]]\nrequest = '/'\n\
                    multipart = [{ name = 'a', value = 'x{user}', type = 'text/plain' }]\n";
        let plans = parsed(text).unwrap().plans;
        let step = plans[0].step.as_ref().unwrap();
        assert_eq!(step.content.len(), 4);
        let texts: String = step.templates().flat_map(Template::texts).collect();
        let expected = format!(
            "/multipart/form-data; boundary={BOUNDARY}--{BOUNDARY}\r\n\
             content-disposition: form-data; name=\"a\"\r\ncontent-type: text/plain\r\n\r\n\
             x--{BOUNDARY}--\r\n"
        );
        assert_eq!(texts, expected);
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(
            request in "(GET |PUT )?(/|http://shop.test)?.{0,12}",
            value in ".{0,20}",
        ) {
            // A text of JSON is one of TOML.
            let quoted = |text: &str| serde_json::to_string(text).unwrap();
            let (request, value) = (quoted(&request), quoted(&value));
            let _ = parsed(&format!(
                "[[user]]\n[[user.step]]\nrequest = {request}\nbody = {value}\nbearer = {value}\n\
                 capture = {{ a = {value} }}\nthink = {value}\n"
            ));
        }
    }
}

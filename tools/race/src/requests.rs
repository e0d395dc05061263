//! The requests of a run, and the responses that they must have.

use bytes::Bytes;
use fastrand::Rng;

use crate::catalogue::{Cell, EVENT_BYTES, EVENTS_COUNT, Route};
use crate::contender::Contender;
use crate::differing::{LARGE_FILE_BYTES, Requests};
use crate::grpc;

/// How many files stand behind a route of files whose requests differ.
pub(crate) const FILES_COUNT: usize = 1000;

/// How many responses of its upstream a site has whose requests differ.
pub(crate) const ITEMS_COUNT: usize = 100;

/// Objects in each of them, of about 108 bytes.
const ITEMS_EACH: usize = 189;

/// Target to which the site's `/old/page` redirects.
const REDIRECTED_TO: &str = "/new/page";

/// How often the most frequent file is requested while the last one is requested once: by Zipf's law
/// with exponent 1, the frequency of a file is inversely proportional to its rank.
const ZIPF_SCALE: usize = 100_000;

/// The path of one of [`FILES_COUNT`] files of one size.
pub(crate) fn file(path: &str, number: usize) -> String {
    match path.rsplit_once('.') {
        Some((stem, extension)) if !extension.contains('/') => {
            format!("{stem}-{number:03}.{extension}")
        }
        _ => format!("{path}-{number:03}"),
    }
}

/// Requests with random bodies in a run: no more than [`BODIES_BYTES`] together.
const BODIES_COUNT: usize = 64;

/// Most that the random bodies of a run have together, in bytes.
const BODIES_BYTES: usize = 4 << 20;

/// One in so many requests of an echo is for another size, of which there are [`OTHER_SIZES_COUNT`].
const OTHER_SIZES_ONE_IN: usize = 100;

/// Sizes of a run besides the workload's own.
const OTHER_SIZES_COUNT: usize = 10;

/// A request of a run, and the body that its response must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// How often it is sent, relative to the others. Never all the same: then they would come in turn.
    pub(crate) weight: usize,
    /// With placeholders.
    pub(crate) path: String,
    /// The body of a POST; `None`: a GET.
    pub(crate) body: Option<Bytes>,
    pub(crate) expected: Bytes,
    /// Names in lower case and values of header fields that the response must have.
    pub(crate) fields: Vec<(String, String)>,
}

/// One in so many requests of a workload that repeats what is known asks for something that can't be known beforehand.
const SURPRISE_ONE_IN: usize = 2000;

impl Exchange {
    /// As many exchanges as a run of `cell` has.
    fn count(cell: &Cell) -> usize {
        match cell.route {
            Route::Post | Route::Grpc => (BODIES_BYTES / cell.size.max(1)).clamp(4, BODIES_COUNT),
            Route::Echo => 1 + OTHER_SIZES_COUNT,
            Route::SiteApi if cell.requests == Requests::Distinct => ITEMS_COUNT,
            _ if cell.requests == Requests::Distinct && cell.route.is_file() => FILES_COUNT,
            _ => 1,
        }
    }

    /// Those of a run. They can't be known beforehand: bodies are random, and sizes are drawn. Where the workload's own
    /// can be known, a few are [surprises](Contender::surprising), if the contender serves such. `content_type`: what the
    /// responses of the workload's own requests had when the contender was verified.
    pub(crate) fn all(
        contender: &Contender,
        cell: &Cell,
        content_type: Option<&str>,
        random: &mut Rng,
    ) -> Vec<Self> {
        let of = |number| Self::of(contender, cell, number, random);
        let mut all: Vec<Self> = (0..Self::count(cell)).map(of).collect();
        for exchange in &mut all {
            let content_type = content_type.map(str::to_owned);
            exchange.fields.extend(content_type.map(|value| ("content-type".to_owned(), value)));
        }
        if let Some(surprise) = Self::surprise(contender, cell, random) {
            let sum = all.iter().map(|exchange| exchange.weight).sum();
            for exchange in &mut all {
                exchange.weight *= SURPRISE_ONE_IN - 1;
            }
            all.push(Self { weight: sum, ..surprise });
        }
        all
    }

    /// Returns what can't be known beforehand, among requests that can be known; it has the workload's own fields and status.
    fn surprise(contender: &Contender, cell: &Cell, random: &mut Rng) -> Option<Self> {
        if cell.route.has_body() || cell.route == Route::Echo {
            return None;
        }
        let other = contender.surprising(cell, random)?;
        let is_like = other.route != Route::Grpc
            && other.route.status() == cell.route.status()
            && !other.route.has_own_bytes()
            && !cell.route.has_own_bytes();
        is_like.then(|| Self::any(contender, &other, random))
    }

    /// One of them.
    pub(crate) fn any(contender: &Contender, cell: &Cell, random: &mut Rng) -> Self {
        let number = random.usize(..Self::count(cell));
        Self::of(contender, cell, number, random)
    }

    fn of(contender: &Contender, cell: &Cell, number: usize, random: &mut Rng) -> Self {
        let path = contender.path(cell);
        let exchange = |weight, path, expected| Self {
            weight,
            path,
            body: None,
            expected,
            fields: own_fields(cell.route),
        };
        match cell.route {
            Route::Post | Route::Grpc => {
                let weight = if number == 0 { 2 } else { 1 };
                Self::with_body(path, posted(cell.route, cell.size, random), weight)
            }
            Route::Echo if number > 0 => {
                let cell = Cell { size: 1 + random.usize(..2 * cell.size.max(1)), ..cell.clone() };
                let expected = vec![b'x'; cell.size].into();
                exchange(1, contender.path(&cell), expected)
            }
            Route::Echo => {
                let weight = OTHER_SIZES_COUNT * (OTHER_SIZES_ONE_IN - 1);
                exchange(weight, path, vec![b'x'; cell.size].into())
            }
            Route::Ping | Route::Logged if cell.requests == Requests::Distinct => {
                let path = format!("{path}?item=7b0d5e{{connection}}-{{request}}&page=2");
                exchange(1, path, Bytes::from_static(b"pong"))
            }
            Route::Ping | Route::Logged => exchange(1, path, Bytes::from_static(b"pong")),
            Route::SitePage => exchange(
                1,
                format!("{path}/{{connection}}/{{request}}"),
                contents(cell.route, None),
            ),
            Route::SiteRedirect => exchange(1, path, contents(cell.route, None)),
            _ if cell.requests == Requests::Distinct => {
                let expected = contents(cell.route, Some(number));
                exchange(ZIPF_SCALE / (number + 1), file(&path, number), expected)
            }
            _ => exchange(1, path, contents(cell.route, None)),
        }
    }

    /// A POST whose body comes back.
    pub(crate) fn with_body(path: String, body: Bytes, weight: usize) -> Self {
        Self { weight, path, body: Some(body.clone()), expected: body, fields: Vec::new() }
    }
}

/// Header fields without which a response of the route is wrong.
fn own_fields(route: Route) -> Vec<(String, String)> {
    let field = match route {
        Route::SiteRedirect => ("location", REDIRECTED_TO),
        Route::SiteApi => ("content-encoding", "gzip"),
        _ => return Vec::new(),
    };
    vec![(field.0.to_owned(), field.1.to_owned())]
}

/// Returns what is posted: random bytes, as the route frames them.
pub(crate) fn posted(route: Route, size: usize, random: &mut Rng) -> Bytes {
    let mut bytes = vec![0; size];
    random.fill(&mut bytes);
    if route == Route::Grpc { grpc::message(&bytes).into() } else { bytes.into() }
}

/// Returns what is in the file of a route, or in one of its [`FILES_COUNT`] files: no two have the same.
pub(crate) fn contents(route: Route, number: Option<usize>) -> Bytes {
    match (route, number) {
        (Route::Static6 | Route::Proxy6 | Route::SiteLimited, None) => {
            Bytes::from_static(b"hello\n")
        }
        (Route::Static6 | Route::Proxy6 | Route::SiteLimited, Some(number)) => {
            format!("{number:05}\n").into()
        }
        (Route::SitePage, _) => Bytes::from_static(
            b"<!doctype html><title>Site</title><script src=\"/assets/app.js\"></script>\n",
        ),
        (Route::Events | Route::ProxyEvents, _) => (0..EVENTS_COUNT)
            .map(|event| format!("id: {event}\ndata: {}\n\n", "x".repeat(EVENT_BYTES)))
            .collect::<String>()
            .into(),
        (Route::SiteRedirect, _) => Bytes::from_static(REDIRECTED_TO.as_bytes()),
        (Route::SiteApi, number) => items(number.map_or(0, |number| number as u64 + 1)),
        (Route::Static16m, _) => {
            let mut bytes = vec![0; LARGE_FILE_BYTES];
            Rng::with_seed(LARGE_FILE_BYTES as u64).fill(&mut bytes);
            bytes.into()
        }
        _ => {
            let first = number.map_or(0, |number| (number + 1) * 1000);
            (first..first + 512)
                .flat_map(|line| format!("{line:07}\n").into_bytes())
                .collect::<Vec<u8>>()
                .into()
        }
    }
}

/// About 20 KiB of JSON, as an API lists what a shop has.
fn items(seed: u64) -> Bytes {
    const NOUNS: [&str; 8] =
        ["lamp", "chair", "table", "shelf", "carpet", "mirror", "curtain", "clock"];
    let mut random = Rng::with_seed(seed);
    let item = |number: usize| {
        let (noun, price) = (NOUNS[random.usize(..NOUNS.len())], 100 + random.usize(..99_900));
        let (id, stock, is_new) = (random.u64(..), random.usize(..500), random.usize(..4) == 0);
        format!(
            "{{\"number\":{number},\"id\":\"{id:016x}\",\"name\":\"{noun}\",\"price\":{price},\
             \"currency\":\"EUR\",\"stock\":{stock},\"new\":{is_new}}}"
        )
    };
    let list: Vec<String> = (0..ITEMS_EACH).map(item).collect();
    format!("{{\"items\":[{}]}}\n", list.join(",")).into()
}

/// Text of a request with its placeholders replaced, as `bolide load` replaces them.
pub(crate) fn filled(text: &str, connection: usize, request: usize) -> String {
    text.replace("{connection}", &connection.to_string()).replace("{request}", &request.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_sends_twelve_fields_of_about_600_bytes() {
        let fields = Requests::Distinct.fields();
        let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert_eq!(fields.len(), 12);
        assert!((550..700).contains(&bytes), "{bytes}");
        let varies = fields.iter().filter(|(_, value)| value.contains("{connection}"));
        assert!(varies.map(|(name, _)| *name).eq(["user-agent", "referer", "cookie"]));
    }

    #[test]
    fn placeholders_are_filled() {
        assert_eq!(filled("/a?{connection}-{request}-{request}", 3, 12), "/a?3-12-12");
        assert_eq!(filled("{}", 3, 12), "{}");
    }

    fn exchanges(route: Route, size: usize, requests: Requests, seed: u64) -> Vec<Exchange> {
        let text =
            "name = 'any'\nprotocols = ['h1']\nroutes = ['ping']\n[start]\ncommand = ['any']\n";
        let contender = Contender::parse(text, "any.toml").unwrap();
        let cell = Cell { route, size, requests, ..crate::outcome::tests::outcome().cell };
        Exchange::all(&contender, &cell, None, &mut Rng::with_seed(seed))
    }

    #[test]
    fn bodies_that_are_posted_are_random_and_differ() {
        let all = exchanges(Route::Post, 4096, Requests::Same, 1);
        let mut bodies: Vec<&Bytes> = all.iter().filter_map(|one| one.body.as_ref()).collect();
        bodies.sort();
        bodies.dedup();
        assert_eq!(bodies.len(), BODIES_COUNT);
        assert!(all.iter().all(|one| one.body.as_ref() == Some(&one.expected)));
        assert_ne!(all, exchanges(Route::Post, 4096, Requests::Same, 2));
        assert_eq!(exchanges(Route::Post, 4 << 20, Requests::Same, 1).len(), 4);
    }

    #[test]
    fn a_few_requests_among_those_that_can_be_known_are_surprises() {
        let of = |routes: &str, route, requests, content_type| {
            let text = format!(
                "name = 'any'\nprotocols = ['h1']\nroutes = [{routes}]\n[start]\ncommand = ['any']\n"
            );
            let contender = Contender::parse(&text, "any.toml").unwrap();
            let cell = Cell { route, requests, ..crate::outcome::tests::outcome().cell };
            Exchange::all(&contender, &cell, content_type, &mut Rng::with_seed(3))
        };
        for (route, requests) in [
            (Route::Ping, Requests::Same),
            (Route::Ping, Requests::Distinct),
            (Route::Static6, Requests::Distinct),
        ] {
            let all = of("'ping', 'static-6', 'post'", route, requests, Some("text/plain"));
            let (surprise, usual) = all.split_last().unwrap();
            let sum: usize = usual.iter().map(|one| one.weight).sum();
            assert_eq!(sum, surprise.weight * (SURPRISE_ONE_IN - 1));
            assert!(u32::try_from(sum).is_ok(), "weights are sent as 32 bits");
            assert!(surprise.body.is_some() && surprise.fields.is_empty());
            let typed = [("content-type".to_owned(), "text/plain".to_owned())];
            assert!(usual.iter().all(|one| one.body.is_none() && one.fields == typed));
        }
        // A contender without such a route gets no surprise, nor does a workload whose bodies are random.
        assert_eq!(of("'ping'", Route::Ping, Requests::Same, None).len(), 1);
        let posts = of("'ping', 'post'", Route::Post, Requests::Same, None);
        assert!(posts.iter().all(|one| one.weight <= 2));
        let redirects = of("'ping', 'post'", Route::SiteRedirect, Requests::Same, None);
        assert_eq!(redirects[0].fields, [("location".to_owned(), "/new/page".to_owned())]);
    }

    #[test]
    fn one_in_a_hundred_echoes_has_a_size_that_is_drawn() {
        let all = exchanges(Route::Echo, 1024, Requests::Same, 1);
        assert_eq!((all[0].path.as_str(), all[0].expected.len()), ("/echo?size=1024", 1024));
        let others: usize = all[1..].iter().map(|one| one.weight).sum();
        assert_eq!(all[0].weight, 99 * others);
        let other = exchanges(Route::Echo, 1024, Requests::Same, 2);
        assert!(all[1..].iter().zip(&other[1..]).all(|(one, other)| one.path != other.path));
    }

    #[test]
    fn no_two_files_have_the_same_contents() {
        for (route, bytes) in [(Route::Static6, 6), (Route::Proxy4k, 4096)] {
            let mut all: Vec<Bytes> =
                (0..FILES_COUNT).map(|number| contents(route, Some(number))).collect();
            all.push(contents(route, None));
            assert!(all.iter().all(|contents| contents.len() == bytes));
            all.sort();
            all.dedup();
            assert_eq!(all.len(), FILES_COUNT + 1);
        }
        let files = exchanges(Route::Static4k, 0, Requests::Distinct, 1);
        assert_eq!((files.len(), files[7].path.as_str()), (FILES_COUNT, "/4096-007"));
    }
}

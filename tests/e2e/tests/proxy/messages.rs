//! Parts of messages other than bodies, through every pair of versions, between curl or our client and Go: interim
//! responses, HEAD, `Expect`, trailers both ways.

use bolide::client::{Client, Trust};
use bolide::http::{HeaderMap, HeaderValue};
use bolide_launcher::{Server, find, run};

use crate::behind::Behind;
use crate::pairs::{WAYS, go, proxy};

/// SHA-256 of `a body`.
const SUM: &str = "771824de42287642fa0fbe0b568b80cc3290e29b7d3cd6efbc7b1b8eb1037b04";

/// A proxy to each way in which Go is asked.
fn proxies(behind: &Behind) -> Vec<Server> {
    let certificate = behind.certificate.display().to_string();
    let urls = behind.urls.iter().chain([&behind.unix]);
    urls.map(|url| proxy(&[url], &["--proxy-ca", &certificate])).collect()
}

#[test]
fn interim_responses_heads_and_trailers_pass_each_pair() {
    let Some(curl) = find("curl", "interim_responses_pass") else { return };
    let Some(behind) = go("interim_responses_pass") else { return };
    for server in proxies(&behind) {
        for (option, tls) in WAYS {
            let show = |path: &str, more: &[&str]| {
                let url = if *tls { server.https() } else { server.http() };
                let target = format!("{url}{path}");
                let options = ["-sSki", "--max-time", "20", option];
                run(&curl, options.iter().chain(more).chain(&[target.as_str()])).well().text()
            };
            let expects = ["-H", "Expect: 100-continue", "--data-binary", "a body"];
            let said = show("/told", &expects);
            let at = |what: &str| said.find(what).unwrap_or(usize::MAX);
            // Go asks for the body when the handler reads it.
            assert!(at(" 100 ") < at(" 200 "), "{option} {tls}: {said}");
            assert!(at(" 200 ") < at(SUM) && at(SUM) < said.len(), "{option} {tls}: {said}");
            let (hint, response) = (" 103 ", " 200 ");
            for method in ["GET", "HEAD"] {
                let more: &[&str] = if method == "HEAD" { &["--head"] } else { &[] };
                let said = show("/hinted", more);
                let (hint, response) = (said.find(hint), said.find(response));
                let link = said.find("link: </style>; rel=preload");
                assert!(hint.is_some() && hint < link && link < response, "{option} {tls}: {said}");
                assert_eq!(said.matches("link:").count(), 1, "{option} {tls}: {said}");
                assert!(said.ends_with("\r\n\r\n"), "no content: {said}");
            }
        }
    }
}

#[test]
fn trailers_pass_both_ways_through_each_pair() {
    let Some(behind) = go("trailers_pass") else { return };
    let client = Client::builder().trust(Trust::Any).build().expect("a client");
    for server in proxies(&behind) {
        let clear = server.http();
        for url in [clear, &clear.replace("http://", "h2c://"), server.https()] {
            let call = client.post(&format!("{url}/told")).header("trailer", "x-sent");
            let mut upload = call.start().expect("it begins");
            upload.send("a body").expect("it is taken");
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sent", HeaderValue::from_static("along"));
            let mut response = upload.finish_with_trailers(trailers).expect("a response");
            assert_eq!(response.collect().expect("all of it"), "read");
            let trailers = response.trailers().expect("trailers");
            assert_eq!(trailers["x-sum"], SUM, "{url}");
            assert_eq!(trailers["x-came"], "along", "{url}");
        }
    }
}

//! draft-ietf-ippm-responsiveness-09 §7: what a server says about its measurement resources.

use bolide_semantics::Url;
use serde::Deserialize;

use crate::target;

/// Resources that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resources {
    /// URL of probes.
    pub(super) small: Url,
    /// URL of downloads.
    pub(super) large: Url,
    /// URL of uploads.
    pub(super) upload: Url,
    /// The host to connect to instead of the URLs'.
    pub(super) endpoint: Option<String>,
}

/// As it is sent. Unknown names are ignored; a name that comes twice is an error.
#[derive(Debug, Deserialize)]
struct Sent {
    version: u64,
    urls: Urls,
    test_endpoint: Option<String>,
}

/// Under today's names, and those of older servers.
#[derive(Debug, Deserialize)]
struct Urls {
    small_download_url: Option<String>,
    large_download_url: Option<String>,
    upload_url: Option<String>,
    small_https_download_url: Option<String>,
    large_https_download_url: Option<String>,
    https_upload_url: Option<String>,
}

impl Resources {
    /// Reads the object.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in a sentence.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let sent: Sent = serde_json::from_slice(json)
            .map_err(|error| format!("not a description of measurement resources: {error}"))?;
        if sent.version != 1 {
            return Err(format!("it has version {}, and 1 is the one that is known", sent.version));
        }
        let urls = sent.urls;
        let url = |today: Option<String>, old: Option<String>, name: &str| {
            let url = today.or(old).ok_or_else(|| format!("it has no `{name}`"))?;
            target::parse(&url).map_err(|why| format!("`{name}`: {why}"))
        };
        let small =
            url(urls.small_download_url, urls.small_https_download_url, "small_download_url")?;
        let large =
            url(urls.large_download_url, urls.large_https_download_url, "large_download_url")?;
        let upload = url(urls.upload_url, urls.https_upload_url, "upload_url")?;
        for other in [&large, &upload] {
            if !other.is_same_origin(&small) {
                return Err(format!("`{other}` and `{small}` are not of one host"));
            }
        }
        Ok(Self { small, large, upload, endpoint: sent.test_endpoint })
    }

    /// The host that the load goes to where scheme, host and port are not those of the server that was asked.
    pub(super) fn other_host(&self, asked: &Url) -> Option<&str> {
        let target = &self.small;
        match self.endpoint.as_deref() {
            Some(endpoint) if !endpoint.eq_ignore_ascii_case(&asked.host) => Some(endpoint),
            _ if target.is_same_origin(asked) => None,
            _ => Some(&target.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"version":1,"urls":{"small_download_url":"https://h/small",
        "large_download_url":"https://h/large","upload_url":"https://h/slurp"}}"#;

    #[test]
    fn both_sets_of_names_are_read() {
        let today = Resources::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(today.large.to_string(), "https://h/large");
        assert_eq!(today.endpoint, None);
        let old = GOOD
            .replace("small_download_url", "small_https_download_url")
            .replace("large_download_url", "large_https_download_url")
            .replace("upload_url", "https_upload_url")
            .replace("\"urls\"", "\"other\":[],\"test_endpoint\":\"h2\",\"urls\"");
        let old = Resources::parse(old.as_bytes()).unwrap();
        assert_eq!((old.small, old.upload), (today.small, today.upload));
        assert_eq!(old.endpoint.as_deref(), Some("h2"));
    }

    #[test]
    fn another_scheme_host_port_or_endpoint_is_another_host() {
        let other = |url: &str, endpoint: &str| {
            let json = GOOD.replace("https://h/", url);
            let json = json.replace("\"urls\"", &format!("\"test_endpoint\":{endpoint},\"urls\""));
            let resources = Resources::parse(json.as_bytes()).unwrap();
            let asked = target::parse("https://h/nq").unwrap();
            resources.other_host(&asked).map(str::to_owned)
        };
        for (url, endpoint) in [("https://h/", "null"), ("https://H:443/", "\"h\"")] {
            assert_eq!(other(url, endpoint), None, "{url} {endpoint}");
        }
        for (url, endpoint, host) in [
            ("http://h/", "null", "h"),
            ("https://h:8443/", "null", "h"),
            ("https://h:8443/", "\"h\"", "h"),
            ("https://127.0.0.1/", "null", "127.0.0.1"),
            ("https://h/", "\"10.0.0.1\"", "10.0.0.1"),
            ("https://other/", "\"10.0.0.1\"", "10.0.0.1"),
        ] {
            assert_eq!(other(url, endpoint).as_deref(), Some(host), "{url} {endpoint}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (from, to, why) in [
            ("\"version\":1", "\"version\":2", "version 2"),
            ("\"version\":1,", "", "missing field `version`"),
            ("\"version\":1", "\"version\":1,\"version\":1", "duplicate field"),
            ("\"upload_url\"", "\"upload\"", "no `upload_url`"),
            ("\"upload_url\"", "\"small_download_url\"", "duplicate field"),
            ("https://h/slurp", "https://other/slurp", "not of one host"),
            ("https://h/slurp", "h/slurp", "`upload_url`: `h/slurp` is not a URL"),
            ("{", "", "not a description"),
        ] {
            let said = Resources::parse(GOOD.replace(from, to).as_bytes()).unwrap_err();
            assert!(said.contains(why), "{to}: {said}");
        }
    }
}

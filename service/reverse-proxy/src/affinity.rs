//! RFC 6265: which upstream a request belongs to, by a cookie of the proxy or by a hash of what the request says.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use bolide_semantics::{FieldName, FieldRef, Head, is_token};
use bolide_server::{HeaderName, Request};

use crate::{Upstream, UpstreamError};

/// The property that decides about the upstream of a request, for [`Balance::Hash`](crate::Balance::Hash).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address; of IPv6, the first 64 bits.
    Client,
    /// The path and the query.
    Target,
    /// The first field with this name; requests without it go by the client's address.
    Field(HeaderName),
    /// The first cookie with this name; requests without it go by the client's address.
    Cookie(String),
}

impl FromStr for HashKey {
    type Err = &'static str;

    /// `client`, `uri`, `header:NAME` or `cookie:NAME`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const GIVE: &str = "give hash:client, hash:uri, hash:header:NAME or hash:cookie:NAME";
        match text.split_once(':') {
            None if text == "client" => Ok(Self::Client),
            None if text == "uri" => Ok(Self::Target),
            Some(("header", name)) => HeaderName::try_from(name).map(Self::Field).map_err(|_| GIVE),
            Some(("cookie", name)) if is_token(name.as_bytes()) => {
                Ok(Self::Cookie(name.to_owned()))
            }
            _ => Err(GIVE),
        }
    }
}

impl HashKey {
    /// The hash of what a request says.
    pub(crate) fn of(&self, request: &Request<'_>) -> u64 {
        let head = request.head();
        let value = match self {
            Self::Client => None,
            Self::Target => Some(head.path_and_query_bytes()),
            Self::Field(name) => head.get_named(name.as_str()),
            Self::Cookie(name) => cookie(head, name),
        };
        match (value, request.client()) {
            (Some(value), _) => hash(value),
            (None, None) => 0,
            (None, Some(IpAddr::V4(v4))) => hash(&v4.octets()),
            (None, Some(IpAddr::V6(v6))) => hash(&v6.octets()[..8]),
        }
    }
}

/// A hash that is the same in every process, so that several proxies choose alike (FNV-1a).
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// How much an upstream suits a request by rendezvous hashing: of several upstreams, each has the highest score for as large a
/// share of requests as its share of the weights, and without one of them, only its requests go elsewhere.
pub(crate) fn score(request: u64, upstream: u64, weight: u32) -> f64 {
    // The finalizer of SplitMix64: each bit depends on all.
    let mut mixed = request ^ upstream.rotate_left(32);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let between_0_and_1 = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -f64::from(weight) / between_0_and_1.ln()
}

/// The value of the first cookie with this name (RFC 6265 §5.4).
fn cookie<'h>(head: &'h Head, name: &str) -> Option<&'h [u8]> {
    let mut pairs = head.get_all(FieldName::Cookie).flat_map(|field| field.split(|b| *b == b';'));
    pairs.find_map(|pair| pair.trim_ascii_start().strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// When clients send the cookie with requests that begin at another site (RFC 6265bis §5.6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SameSite {
    /// Never.
    Strict,
    /// When the user follows a link.
    #[default]
    Lax,
    /// Always; clients take such a cookie over TLS alone.
    None,
}

/// A cookie that keeps a client's requests at one upstream. It names the upstream by a keyed hash, so that it tells clients
/// nothing and they can't choose. Where that upstream takes no requests, another one gets them, and the cookie is set anew.
#[derive(Debug, Clone)]
pub struct StickyCookie {
    name: String,
    path: String,
    same_site: SameSite,
    max_age: Option<Duration>,
    key: Option<Key>,
}

impl StickyCookie {
    /// A cookie with this name, for all paths, until the client's session ends. `HttpOnly` is set, and `Secure` over TLS.
    ///
    /// # Errors
    ///
    /// When the name is not a token.
    pub fn new(name: &str) -> Result<Self, UpstreamError> {
        if !is_token(name.as_bytes()) {
            return Err(UpstreamError::Cookie {
                what: "its name must be a token",
                given: name.to_owned(),
            });
        }
        let (name, path, same_site) = (name.to_owned(), "/".to_owned(), SameSite::default());
        Ok(Self { name, path, same_site, max_age: None, key: None })
    }

    /// The paths below which clients send it. Default: `/`.
    ///
    /// # Errors
    ///
    /// When it does not begin with a slash, or has a semicolon or other characters that no cookie may have.
    pub fn path(mut self, path: &str) -> Result<Self, UpstreamError> {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b';';
        if !path.starts_with('/') || !path.bytes().all(is_plain) {
            let what = "its path must begin with a slash and have no spaces and semicolons";
            return Err(UpstreamError::Cookie { what, given: path.to_owned() });
        }
        path.clone_into(&mut self.path);
        Ok(self)
    }

    /// When clients send it with requests from other sites. Default: [`SameSite::Lax`].
    #[must_use]
    pub fn same_site(mut self, same_site: SameSite) -> Self {
        self.same_site = same_site;
        self
    }

    /// For how long clients keep it. Default: until their session ends.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = Some(max_age);
        self
    }

    /// The key of the hash: proxies with the same one take each other's cookies. Default: one that the process keeps for its
    /// lifetime.
    #[must_use]
    pub fn secret(mut self, secret: &[u8]) -> Self {
        self.key = Some(Key::new(HMAC_SHA256, secret));
        self
    }
}

/// How much of the keyed hash of its name stands for an upstream, in bytes.
const TAG_BYTES: usize = 8;

/// A cookie for the upstreams of one proxy.
#[derive(Debug)]
pub(crate) struct Sticky {
    name: Box<str>,
    upstreams: Box<[Named]>,
}

/// An upstream's name in the cookie, and the value of `Set-Cookie` over cleartext and over TLS.
#[derive(Debug)]
struct Named {
    tag: Box<str>,
    set: [Box<str>; 2],
}

impl Sticky {
    pub(crate) fn new(cookie: &StickyCookie, upstreams: &[Upstream]) -> Self {
        static KEY: LazyLock<Key> = LazyLock::new(|| {
            let seed = [(); 4].map(|()| RandomState::new().hash_one(()).to_le_bytes());
            Key::new(HMAC_SHA256, seed.as_flattened())
        });
        let key = cookie.key.as_ref().unwrap_or(&KEY);
        let of = |upstream: &Upstream| {
            let mut tag = String::new();
            for byte in &sign(key, upstream.name().as_bytes()).as_ref()[..TAG_BYTES] {
                // Writing to a string never fails.
                let _ = write!(tag, "{byte:02x}");
            }
            let mut plain = format!("{}={tag}; Path={}; HttpOnly", cookie.name, cookie.path);
            if let Some(max_age) = cookie.max_age {
                let _ = write!(plain, "; Max-Age={}", max_age.as_secs());
            }
            let _ = write!(plain, "; SameSite={:?}", cookie.same_site);
            let secure = format!("{plain}; Secure");
            Named { tag: tag.into(), set: [plain.into(), secure.into()] }
        };
        Self { name: cookie.name.as_str().into(), upstreams: upstreams.iter().map(of).collect() }
    }

    /// The upstream that a request's cookie names.
    fn named(&self, head: &Head) -> Option<usize> {
        let tag = cookie(head, &self.name)?;
        self.upstreams.iter().position(|own| own.tag.as_bytes() == tag)
    }

    /// The field that names the upstream, unless the request did.
    pub(crate) fn field(&self, leaning: Leaning, upstream: usize) -> Option<FieldRef<'_>> {
        let value = &self.upstreams[upstream].set[usize::from(leaning.is_secure)];
        let is_new = leaning.named != Some(upstream);
        is_new.then(|| FieldRef::known(FieldName::SetCookie, value.as_bytes()))
    }
}

/// Preference of a request for an upstream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leaning {
    /// The upstream that its cookie names.
    pub(crate) named: Option<usize>,
    /// Of what [`HashKey`] stands for.
    pub(crate) hash: u64,
    /// Its client speaks TLS.
    pub(crate) is_secure: bool,
}

impl Leaning {
    pub(crate) fn of(
        request: &Request<'_>,
        key: Option<&HashKey>,
        sticky: Option<&Sticky>,
    ) -> Self {
        Self {
            named: sticky.and_then(|sticky| sticky.named(request.head())),
            hash: key.map_or(0, |key| key.of(request)),
            is_secure: sticky.is_some() && request.scheme() == "https",
        }
    }
}

#[cfg(test)]
mod tests {
    use bolide_semantics::HeadKind;
    use bolide_server::Version;

    use super::*;

    fn head(cookies: &[&str]) -> Head {
        let mut head = Head::default();
        head.clear(HeadKind::Request, Version::HTTP_11);
        cookies.iter().for_each(|cookie| head.push_field(FieldName::Cookie, cookie.as_bytes()));
        head
    }

    fn sticky(secret: &[u8]) -> Sticky {
        let upstreams =
            ["http://127.0.0.1:1", "http://127.0.0.1:2"].map(|url| Upstream::parse(url).unwrap());
        Sticky::new(&StickyCookie::new("at").unwrap().secret(secret), &upstreams)
    }

    #[test]
    fn keys_are_read_and_what_is_none_is_refused() {
        assert_eq!("client".parse(), Ok(HashKey::Client));
        assert_eq!("uri".parse(), Ok(HashKey::Target));
        assert_eq!("header:X-User".parse(), Ok(HashKey::Field(HeaderName::from_static("x-user"))));
        assert_eq!("cookie:id".parse(), Ok(HashKey::Cookie("id".to_owned())));
        for wrong in
            ["", "path", "header", "header:", "header:a b", "cookie:", "cookie:a;b", "client:"]
        {
            assert!(wrong.parse::<HashKey>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cookie_is_found_among_others_and_nothing_that_only_looks_like_it() {
        for (cookies, value) in [
            (&["a=1"][..], Some("1")),
            (&["b=2; a=1", "a=3"], Some("1")),
            (&["b=2", "a="], Some("")),
            (&["b=2;a=1=2"], Some("1=2")),
            (&["aa=1; ba=2; a; =a=1"], None),
            (&["A=1"], None),
            (&[], None),
        ] {
            assert_eq!(cookie(&head(cookies), "a"), value.map(str::as_bytes), "{cookies:?}");
        }
    }

    #[test]
    fn a_cookie_names_its_upstream_by_a_hash_that_depends_on_the_key() {
        let (one, other) = (sticky(b"one"), sticky(b"other"));
        let field = one.field(Leaning::default(), 1).unwrap();
        let set = str::from_utf8(field.value).unwrap();
        let (pair, attributes) = set.split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax");
        assert!(pair.len() == "at=".len() + 16 && !set.contains("127"), "{set}");
        assert_eq!(one.named(&head(&[pair])), Some(1));
        assert_eq!(sticky(b"one").named(&head(&[pair])), Some(1), "another proxy with the key");
        assert_eq!(other.named(&head(&[pair])), None);
        for forged in ["at=http://127.0.0.1:2", "at=1", "at=", &pair[..pair.len() - 1]] {
            assert_eq!(one.named(&head(&[forged])), None, "{forged}");
        }
        let leaning = Leaning { named: Some(1), ..Leaning::default() };
        assert!(one.field(leaning, 1).is_none(), "the client has it already");
        let secure = one.field(Leaning { is_secure: true, ..leaning }, 0).unwrap();
        assert!(secure.value.ends_with(b"; SameSite=Lax; Secure"));
    }

    #[test]
    fn cookies_that_cannot_be_are_refused() {
        for name in ["", "a b", "a=b", "a;b"] {
            assert!(StickyCookie::new(name).is_err(), "{name}");
        }
        for path in ["", "a", "/a;b", "/a b", "/\r\n"] {
            assert!(StickyCookie::new("a").unwrap().path(path).is_err(), "{path}");
        }
    }
}

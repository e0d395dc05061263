//! Place in which a connection is counted: by its protocol and what it does.

use http::Version;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Not known yet.
    Unknown,
    /// HTTP/1.1 or HTTP/1.0.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its protocol is being found out: a TLS handshake, or the first bytes.
    Opening,
    /// An exchange is under way.
    Active,
    /// It waits for the next request.
    Idle,
}

/// Place in which a connection is counted: its protocol and its state. The number of a place is also its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u8);

impl Place {
    /// How many there are.
    pub const COUNT: usize = 14;

    /// The place of a connection; `None`: its version is not known yet.
    pub fn new(version: Option<Version>, is_idle: bool, is_secure: bool) -> Self {
        let active = match version {
            None => 0,
            Some(Version::HTTP_3) => 5,
            Some(Version::HTTP_2) => 3,
            Some(_) => 1,
        };
        let place = active + u8::from(is_idle && version.is_some());
        Self(place * 2 + u8::from(is_secure))
    }

    /// Its number, below [`Self::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// All places, with what they stand for.
    pub fn all() -> impl Iterator<Item = (Protocol, Standing, bool)> {
        (0..Self::COUNT).map(|index| {
            let (protocol, standing) = match index / 2 {
                0 => (Protocol::Unknown, Standing::Opening),
                1 => (Protocol::Http1, Standing::Active),
                2 => (Protocol::Http1, Standing::Idle),
                3 => (Protocol::Http2, Standing::Active),
                4 => (Protocol::Http2, Standing::Idle),
                5 => (Protocol::Http3, Standing::Active),
                _ => (Protocol::Http3, Standing::Idle),
            };
            (protocol, standing, index % 2 == 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_one_of_the_list() {
        let all: Vec<_> = Place::all().collect();
        assert_eq!(all.len(), Place::COUNT);
        let place = Place::new(Some(Version::HTTP_2), true, true);
        assert_eq!(all[place.index()], (Protocol::Http2, Standing::Idle, true));
        let place = Place::new(None, true, false);
        assert_eq!(all[place.index()], (Protocol::Unknown, Standing::Opening, false));
    }
}

//! Query of a request.

use bolide_server::query_pairs;

use super::Direction;
use crate::limits::NDT7_QUERY_BYTES;

/// The one value of `early_exit`, in megabytes.
const EARLY_EXIT: &str = "250";

/// That many bytes.
const EARLY_EXIT_BYTES: u64 = 250_000_000;

/// Options that a client asks for in addition to the test itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// A download ends once so many bytes were acknowledged.
    pub(super) end_after_bytes: Option<u64>,
    /// Names and values for the archive.
    pub(super) metadata: Vec<(String, String)>,
}

impl Asked {
    /// Reads the query. `Err` says what is wrong with it.
    pub(super) fn parse(query: Option<&str>, direction: Direction) -> Result<Self, String> {
        let query = query.unwrap_or_default();
        if query.len() > NDT7_QUERY_BYTES {
            return Err(format!("the query is longer than {NDT7_QUERY_BYTES} bytes"));
        }
        let mut asked = Self::default();
        for (name, value) in query_pairs(query) {
            if name == "early_exit" {
                if value != EARLY_EXIT {
                    return Err(format!("early_exit is {EARLY_EXIT} or left out"));
                }
                if direction == Direction::Download {
                    asked.end_after_bytes = Some(EARLY_EXIT_BYTES);
                }
            }
            // Only the server speaks for itself.
            if !name.starts_with("server_") {
                asked.metadata.push((name.into_owned(), value.into_owned()));
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_metadata_but_for_what_is_the_servers() {
        let asked = Asked::parse(
            Some("client_name=a%20b&server_name=evil&early_exit=250"),
            Direction::Download,
        )
        .unwrap();
        assert_eq!(asked.end_after_bytes, Some(250_000_000));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(asked.metadata, [pair("client_name", "a b"), pair("early_exit", "250")]);
        assert_eq!(Asked::parse(None, Direction::Upload), Ok(Asked::default()));
    }

    #[test]
    fn a_wrong_early_exit_is_refused() {
        for query in ["early_exit", "early_exit=0", "early_exit=251", "early_exit=250.0"] {
            assert!(Asked::parse(Some(query), Direction::Download).is_err(), "{query}");
        }
    }

    #[test]
    fn a_long_ndt7_query_is_refused() {
        let query = format!("a={}", "b".repeat(NDT7_QUERY_BYTES - 2));
        assert!(Asked::parse(Some(&query), Direction::Upload).is_ok());
        assert!(Asked::parse(Some(&(query + "b")), Direction::Upload).is_err());
    }
}

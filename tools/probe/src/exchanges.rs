//! Requests with bodies of their own, as a program writes them for `bolide load --exchanges`.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A list of exchanges, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanges {
    /// The file that the ranges are of.
    pub bytes: PathBuf,
    /// The exchanges.
    pub exchanges: Vec<Exchange>,
}

/// A request, and what its response must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// How often it is taken, relative to the others. All the same: in turn.
    pub weight: u32,
    /// The method.
    pub method: String,
    /// Path and query; `{connection}` and `{request}` are replaced.
    pub target: String,
    /// The request's body; an empty range: none.
    pub body: Range<usize>,
    /// The response's body; none: it is not compared.
    #[serde(default)]
    pub expected: Option<Range<usize>>,
    /// The response's body must be coded with gzip, and `expected` is what it decodes to.
    #[serde(default)]
    pub is_gzip: bool,
    /// Names and values of header fields that the response must have.
    #[serde(default)]
    pub expected_fields: Vec<(String, String)>,
}

//! `bolide serve --root`: from arguments to a directory that is served.

use std::path::PathBuf;

use bolide::files::StaticFiles;
use bolide::http::HeaderValue;

/// The arguments about files.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Files")]
#[group(skip)]
pub(crate) struct Arguments {
    /// Serve the files of this directory: the same as --root.
    #[arg(value_name = "DIR", group = "directory")]
    served: Option<PathBuf>,

    /// Serve the files of this directory, and /ping. --builtin adds the other built-in routes. With --proxy,
    /// requests without a file go to the upstream, also /ping.
    #[arg(long, value_name = "DIR", group = "directory")]
    root: Option<PathBuf>,

    /// List directories that have no index file.
    #[arg(long, requires = "directory")]
    listing: bool,

    /// Index file of a directory. May be repeated; the first that exists is served. Default: index.html.
    #[arg(long, value_name = "NAME", requires = "directory")]
    index: Vec<String>,

    /// File below the root that is sent with status 404.
    #[arg(long, value_name = "FILE", requires = "directory")]
    not_found: Option<String>,

    /// Page that is sent with status 200 for every path without a file: for single-page applications.
    #[arg(long, value_name = "FILE", requires = "directory", conflicts_with_all = ["not_found", "proxy"])]
    fallback: Option<String>,

    /// Send Cache-Control with files whose path matches, such as '/assets/*=max-age=31536000'; * matches any
    /// characters. May be repeated; the first match applies.
    #[arg(long, value_name = "PATTERN=VALUE", requires = "directory", value_parser = cache_control)]
    cache_control: Vec<(String, HeaderValue)>,

    /// Compress text for clients that accept it, unless there is a precompressed file (.br, .zst, .gz).
    #[arg(long, requires = "directory")]
    compress: bool,

    /// Don't look for precompressed files.
    #[arg(long, requires = "directory")]
    no_precompressed: bool,

    /// Serve names that begin with a dot.
    #[arg(long, requires = "directory")]
    hidden: bool,

    /// Read large files instead of using sendfile, which serves them over cleartext HTTP/1.1.
    #[arg(long, requires = "directory")]
    no_sendfile: bool,
}

/// A rule: `PATTERN=VALUE`.
pub(crate) fn cache_control(text: &str) -> Result<(String, HeaderValue), String> {
    let (pattern, value) = text
        .split_once('=')
        .filter(|(pattern, value)| !pattern.is_empty() && !value.is_empty())
        .ok_or("give a path pattern, an equals sign and a value, such as *.css=max-age=60")?;
    let value = HeaderValue::try_from(value)
        .map_err(|_| format!("`{}` is not a valid field value", value.escape_debug()))?;
    Ok((pattern.to_owned(), value))
}

impl Arguments {
    /// Returns whether there is a root.
    pub(crate) fn are_given(&self) -> bool {
        self.directory().is_some()
    }

    fn directory(&self) -> Option<&PathBuf> {
        self.root.as_ref().or(self.served.as_ref())
    }

    /// Opens the root, if one is given.
    pub(crate) fn files(&self) -> Result<Option<StaticFiles>, String> {
        let Some(root) = self.directory() else { return Ok(None) };
        let mut files = StaticFiles::new(root)
            .map_err(|error| error.to_string())?
            .listing(self.listing)
            .compress(self.compress)
            .precompressed(!self.no_precompressed)
            .hidden(self.hidden)
            .sendfile(!self.no_sendfile);
        if !self.index.is_empty() {
            files = files.index(self.index.iter().cloned());
        }
        for (flag, page, is_fallback) in
            [("--not-found", &self.not_found, false), ("--fallback", &self.fallback, true)]
        {
            let Some(page) = page else { continue };
            if !files.has_file(page) {
                return Err(format!("{flag} {page}: not in the root directory, or not readable"));
            }
            files = if is_fallback { files.fallback(page) } else { files.not_found(page) };
        }
        for (pattern, value) in &self.cache_control {
            files = files.cache_control(pattern, value.clone());
        }
        Ok(Some(files))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_pattern_and_a_value() {
        let (pattern, value) = cache_control("/assets/*=max-age=60, immutable").unwrap();
        assert_eq!(
            (pattern.as_str(), value),
            ("/assets/*", "max-age=60, immutable".parse().unwrap())
        );
        for bad in ["", "*.css", "=max-age=60", "*.css=", "*.css=a\nb"] {
            assert!(cache_control(bad).is_err(), "{bad:?}");
        }
    }
}

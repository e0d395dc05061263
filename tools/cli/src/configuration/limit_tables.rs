//! The limits that a file can set, by the names of their fields.
//!
//! docs/LIMITS.md, which is written from the declarations, says what each limit is for.

use std::sync::Arc;

use bolide::server::Limits as ServerLimits;
use bolide::websocket::{self, Options, PeerLimits};
use bolide_limits::{Limit, Limits, Place};

use super::document::Section;
use super::value::{Range, Setting};

/// How the WebSocket connections of the built-in routes are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WebSocketLimits {
    pub(crate) messages: websocket::Limits,
    pub(crate) peer: PeerLimits,
}

impl WebSocketLimits {
    /// As handlers take them.
    pub(crate) fn options(&self) -> Options {
        Options::new()
            .limits(self.messages)
            .ping_interval(self.peer.ping_interval)
            .close_timeout(self.peer.close_timeout)
            .message_timeout(self.peer.message_timeout)
            .output_bytes_max(self.peer.output_bytes)
    }
}

/// Something to do with each struct of limits.
pub(crate) trait Visit {
    /// Limits that belong together begin: the table of the file that has them, within `[limits]`, or nothing for `[limits]` itself.
    fn table(&mut self, name: &'static str) -> Result<(), String>;

    /// Limits of the table that began last.
    fn limits<L: Limits>(&mut self, limits: &mut L) -> Result<(), String>;
}

/// Visits all limits in `[limits]`.
pub(crate) fn visit(
    limits: &mut ServerLimits,
    websocket: &mut WebSocketLimits,
    visit: &mut impl Visit,
) -> Result<(), String> {
    visit.table("")?;
    visit.limits(limits)?;
    visit.limits(&mut limits.connection.opening)?;
    visit.limits(&mut limits.event_loop)?;
    visit.limits(&mut limits.event_loop.closing)?;
    let http1 = Arc::make_mut(&mut limits.connection.h1);
    visit.table("http1")?;
    visit.limits(http1)?;
    visit.limits(&mut http1.heads)?;
    visit.limits(&mut http1.bodies)?;
    visit.limits(&mut http1.times)?;
    let http2 = Arc::make_mut(&mut limits.connection.h2);
    visit.table("http2")?;
    visit.limits(http2)?;
    visit.limits(&mut http2.windows)?;
    visit.limits(&mut http2.frames)?;
    visit.limits(&mut http2.heads)?;
    visit.limits(&mut http2.budgets)?;
    visit.limits(&mut http2.times)?;
    let http3 = Arc::make_mut(&mut limits.connection.h3);
    visit.table("http3")?;
    visit.limits(http3)?;
    visit.limits(&mut http3.heads)?;
    visit.limits(&mut http3.budgets)?;
    visit.limits(&mut http3.times)?;
    visit.table("websocket")?;
    visit.limits(&mut websocket.messages)?;
    visit.limits(&mut websocket.peer)
}

/// Takes what a section says of these limits.
pub(crate) fn read<L: Limits>(section: &mut Section<'_>, limits: &mut L) -> Result<(), String> {
    for limit in L::ALL {
        let range = range(limit);
        section.read(&key(limit), |value| setting((limit.of)(limits)).read(value, &range))?;
    }
    Ok(())
}

/// The key of a limit in a file.
pub(crate) fn key<L>(limit: &Limit<L>) -> String {
    limit.name.replace('_', "-")
}

fn range<L>(limit: &Limit<L>) -> Range {
    let is_bytes = limit.name.split('_').any(|word| word == "bytes");
    Range { least: limit.least, most: limit.most, is_bytes }
}

/// A limit, to be set or written.
pub(crate) fn setting(place: Place<'_>) -> &mut dyn Setting {
    match place {
        Place::U8(limit) => limit,
        Place::U16(limit) => limit,
        Place::U32(limit) => limit,
        Place::Optional(limit) => limit,
        Place::U64(limit) => limit,
        Place::Usize(limit) => limit,
        Place::Time(limit) => limit,
    }
}

#[cfg(test)]
mod tests {
    mod fixed;

    use std::collections::BTreeSet;

    use bolide::files::OffloadLimits;
    use bolide::proxy::ProxyLimits;
    use bolide::server::LogLimits;
    use bolide_acme::AcmeLimits;
    use bolide_reverse_proxy::limits::HealthLimits;
    use bolide_static_files::limits::FilesLimits;

    use super::*;
    use fixed::CANNOT_BE_SET;

    /// The names of limits as the page of all limits has them, with their crates' directories.
    #[derive(Default)]
    struct Names(BTreeSet<(&'static str, String)>);

    impl Visit for Names {
        fn table(&mut self, _: &'static str) -> Result<(), String> {
            Ok(())
        }

        fn limits<L: Limits>(&mut self, _: &mut L) -> Result<(), String> {
            let directory = L::FILE.strip_suffix("/src/limits.rs").expect("a file of limits");
            for limit in L::ALL {
                let name = format!("{}{}", L::PREFIX, limit.name.to_ascii_uppercase());
                assert!(
                    self.0.insert((directory, name)),
                    "{} of {directory} is there twice",
                    limit.name
                );
            }
            Ok(())
        }
    }

    /// Returns what can be set, by the directory of its crate.
    fn settable() -> BTreeSet<(&'static str, String)> {
        let mut names = Names::default();
        visit(&mut ServerLimits::default(), &mut WebSocketLimits::default(), &mut names).unwrap();
        names.limits(&mut FilesLimits::default()).unwrap();
        names.limits(&mut OffloadLimits::default()).unwrap();
        let mut proxy = ProxyLimits::default();
        names.limits(&mut proxy).unwrap();
        names.limits(&mut proxy.times).unwrap();
        names.limits(&mut proxy.choice).unwrap();
        names.limits(&mut HealthLimits::default()).unwrap();
        names.limits(&mut LogLimits::default()).unwrap();
        names.limits(&mut AcmeLimits::default()).unwrap();
        names.0
    }

    /// The limits of the page, by the directory of their crate.
    fn on_the_page() -> BTreeSet<(&'static str, String)> {
        let page = include_str!("../../../../docs/LIMITS.md");
        let (mut directory, mut rows) = ("", BTreeSet::new());
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("## `") {
                directory = heading.trim_end_matches('`');
            } else if let Some(row) = line.strip_prefix("| `") {
                let name = row.split('`').next().unwrap_or_default();
                rows.insert((directory, name.to_owned()));
            }
        }
        rows
    }

    #[test]
    fn every_limit_on_the_page_can_be_set_or_says_why_not() {
        // Clients, and tools, have limits of their own.
        const NOT_OF_SERVERS: [&str; 4] =
            ["protocol/tls", "service/client", "tools/measure", "tools/netlab"];
        let (page, settable) = (on_the_page(), settable());
        let missing: Vec<_> = settable.difference(&page).collect();
        assert!(missing.is_empty(), "not on the page: {missing:?}");
        let cannot: BTreeSet<_> = page
            .difference(&settable)
            .filter(|(directory, _)| !NOT_OF_SERVERS.contains(directory))
            .cloned()
            .collect();
        let fixed: BTreeSet<(&str, String)> = CANNOT_BE_SET
            .iter()
            .flat_map(|(its, names, _)| names.iter().map(|name| (*its, (*name).to_owned())))
            .collect();
        assert_eq!(cannot, fixed, "what can't be set");
        assert!(CANNOT_BE_SET.iter().all(|(.., why)| why.len() > 20), "each has its reason");
    }

    #[test]
    fn bytes_are_told_by_the_name() {
        let is_bytes = |name| {
            range(&Limit { name, least: 1, most: 2, of: |limit: &mut u8| limit.into() }).is_bytes
        };
        assert!(is_bytes("body_bytes_max") && is_bytes("bytes") && is_bytes("a_bytes"));
        assert!(!is_bytes("byte") && !is_bytes("fields_count") && !is_bytes(""));
    }
}

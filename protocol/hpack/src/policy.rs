//! RFC 7541 §6.2, §7.1.3, RFC 9204 §7.1: which lines the encoder puts into its table.
//!
//! A line that comes again costs one byte once it is in the table; a line that does not come again
//! costs an insertion and pushes out others. So what changes with every message stays out, and of
//! the rest a new value is inserted only if the last one of that name has been of use, or now and
//! then: values that never repeat do not churn the table, and values that do get in soon.

use bolide_semantics::{FieldName, FieldRef};

/// Of the lines whose name has an entry that was not used again, one in this many is inserted.
pub const RETRY_ONE_IN: u32 = 8;

/// Values that are sent once are coded (RFC 7541 §5.2) from this length on, in bytes. Below it the
/// few bytes saved are worth less than the time for both sides. What goes into the table is always
/// coded if that is shorter: it is read once and used often.
pub const CODE_ONCE_FROM: usize = 24;

/// Cookies below this length, in bytes, are short enough to be guessed byte by byte through the
/// size of what is sent (RFC 7541 §7.1), so they stay out of every table.
pub const COOKIE_GUESSABLE: usize = 20;

/// An entry may take at most one part in this many of the table.
pub const ENTRY_SHARE: usize = 2;

/// Treatment of the lines of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// They enter the table.
    Insert,
    /// They stay out (RFC 7541 §6.2.2).
    Once,
    /// They stay out, and out of every table on the way (RFC 7541 §6.2.3).
    Never,
}

static RULES: [Rule; FieldName::ALL.len()] = {
    let mut rules = [Rule::Insert; FieldName::ALL.len()];
    let mut at = 0;
    while at < rules.len() {
        rules[at] = decide(FieldName::ALL[at]);
        at += 1;
    }
    rules
};

/// The rule for an interned name. Other names follow [`Rule::Insert`].
#[inline]
#[must_use]
pub fn rule(name: FieldName) -> Rule {
    RULES[name as usize]
}

/// Returns what becomes of a line whose name is interned.
#[inline]
#[must_use]
pub fn rule_of(known: FieldName, field: &FieldRef<'_>) -> Rule {
    let guessable = known == FieldName::Cookie && field.value.len() < COOKIE_GUESSABLE;
    if field.sensitive || guessable { Rule::Never } else { rule(known) }
}

const fn decide(name: FieldName) -> Rule {
    match name {
        FieldName::Authorization | FieldName::ProxyAuthorization => Rule::Never,
        FieldName::Age
        | FieldName::ContentDisposition
        | FieldName::ContentLength
        | FieldName::ContentLocation
        | FieldName::ContentRange
        | FieldName::Etag
        | FieldName::Expires
        | FieldName::Http2Settings
        | FieldName::IfMatch
        | FieldName::IfModifiedSince
        | FieldName::IfNoneMatch
        | FieldName::IfRange
        | FieldName::IfUnmodifiedSince
        | FieldName::LastModified
        | FieldName::Link
        | FieldName::Location
        | FieldName::MaxForwards
        | FieldName::Range
        | FieldName::RetryAfter
        | FieldName::SecWebsocketAccept
        | FieldName::SecWebsocketKey
        | FieldName::SetCookie => Rule::Once,
        _ => Rule::Insert,
    }
}

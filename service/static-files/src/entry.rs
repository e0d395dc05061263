//! One file as it is served: its variants, with the fields of their responses made once.

use bolide_semantics::{Date, EntityTag, Validators};
use bolide_server::{Fields, HeaderName, HeaderValue};
use bytes::Bytes;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LAST_MODIFIED, VARY,
};
use std::time::{Duration, SystemTime};

use crate::body::Version;
use crate::disk::Stamp;

/// Memory of one entry in addition to its contents, in bytes: names, fields, tables. A generous guess.
const ENTRY_BYTES: usize = 2048;

/// A file and its compressed variants.
#[derive(Debug)]
pub(crate) struct Entry {
    /// As it is first, then in each coding of `offered`.
    pub(crate) variants: Vec<Variant>,
    /// The codings of the variants but the first, in order of preference.
    pub(crate) offered: Vec<&'static str>,
    /// The versions of all that it was made from.
    pub(crate) sources: Vec<(&'static str, Stamp)>,
    /// True if it was read so soon after a change that another in the same tick of the clock could not
    /// be told apart: then it is read again.
    pub(crate) is_racy: bool,
    last_modified: Option<u64>,
    /// True if that second was over when the file was read.
    last_modified_is_strong: bool,
}

/// The file in one coding.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) content: Content,
    pub(crate) length: u64,
    /// Those of a 200.
    pub(crate) fields: Fields,
    /// Those of a 304.
    pub(crate) not_modified: Fields,
    /// Characters between the quotes of its entity tag.
    opaque_tag: Box<str>,
    is_weak: bool,
}

/// Place of the bytes.
#[derive(Debug)]
pub(crate) enum Content {
    Memory(Bytes),
    File(Version),
}

/// Source of a variant.
#[derive(Debug)]
pub(crate) struct Source {
    /// Empty for the file as it is.
    pub(crate) coding: &'static str,
    pub(crate) content: Content,
    pub(crate) length: u64,
    /// Of the file that it was read from.
    pub(crate) stamp: Stamp,
    /// True if it was made on the fly: another version of us may make other bytes of it.
    pub(crate) is_made: bool,
}

/// Fields that the responses of all variants have in common.
#[derive(Debug)]
pub(crate) struct Description<'a> {
    pub(crate) media_type: HeaderValue,
    pub(crate) cache_control: Option<&'a HeaderValue>,
    pub(crate) is_racy: bool,
    /// True if the second of the last change of its content is over.
    pub(crate) is_settled: bool,
}

impl Entry {
    /// `sources` begins with the file as it is.
    pub(crate) fn new(description: &Description<'_>, sources: Vec<Source>) -> Self {
        let modified = sources.first().map(|source| source.stamp.modified);
        let last_modified = modified.and_then(|time| u64::try_from(time.seconds).ok());
        let varies = sources.len() > 1;
        let offered = sources.iter().skip(1).map(|source| source.coding).collect();
        let files = sources.iter().filter(|source| !source.is_made);
        let stamps = files.map(|source| (source.coding, source.stamp)).collect();
        let variant = |source| Variant::new(source, description, last_modified, varies);
        Self {
            variants: sources.into_iter().map(variant).collect(),
            offered,
            sources: stamps,
            is_racy: description.is_racy,
            last_modified,
            last_modified_is_strong: description.is_settled,
        }
    }

    /// Returns what conditions are compared with.
    #[inline]
    pub(crate) fn validators<'a>(&self, variant: &'a Variant) -> Validators<'a> {
        Validators {
            entity_tag: Some(EntityTag {
                weak: variant.is_weak,
                opaque: variant.opaque_tag.as_bytes(),
            }),
            last_modified: self.last_modified,
            last_modified_is_strong: self.last_modified_is_strong,
        }
    }

    /// The memory that it takes in bytes, if all of it is in memory.
    pub(crate) fn weight(&self) -> Option<usize> {
        self.variants.iter().try_fold(ENTRY_BYTES, |sum, variant| match &variant.content {
            Content::Memory(bytes) => Some(sum + bytes.len()),
            Content::File(_) => None,
        })
    }
}

impl Variant {
    fn new(
        source: Source,
        description: &Description<'_>,
        last_modified: Option<u64>,
        varies: bool,
    ) -> Self {
        let opaque_tag = opaque_tag(&source);
        let weak = if source.is_made { "W/" } else { "" };
        let mut shared: Vec<(HeaderName, HeaderValue)> = Vec::new();
        if let Ok(tag) = HeaderValue::try_from(format!("{weak}\"{opaque_tag}\"")) {
            shared.push((ETAG, tag));
        }
        if let Some(seconds) = last_modified {
            shared.push((LAST_MODIFIED, http_date(seconds)));
        }
        if let Some(value) = description.cache_control {
            shared.push((CACHE_CONTROL, value.clone()));
        }
        if varies {
            shared.push((VARY, HeaderValue::from_static("accept-encoding")));
        }
        let mut fields = vec![(CONTENT_TYPE, description.media_type.clone())];
        if !source.coding.is_empty() {
            fields.push((CONTENT_ENCODING, HeaderValue::from_static(source.coding)));
        }
        fields.extend(shared.iter().cloned());
        fields.push((ACCEPT_RANGES, HeaderValue::from_static("bytes")));
        Self {
            content: source.content,
            length: source.length,
            fields: Fields::new(fields),
            not_modified: Fields::new(shared),
            opaque_tag: opaque_tag.into_boxed_str(),
            is_weak: source.is_made,
        }
    }
}

/// Which file, its last change of any kind, its length, and the coding. The time of the last change of content is
/// not enough: programs that copy files set it. The time of any change is the kernel's own, and no two contents of a file
/// of the same length have it in common, unless they changed within one tick of its clock.
fn opaque_tag(source: &Source) -> String {
    let Stamp { length, changed, identity: (_, number), .. } = source.stamp;
    let nanoseconds = i128::from(changed.seconds) * 1_000_000_000 + i128::from(changed.nanoseconds);
    let dash = if source.coding.is_empty() { "" } else { "-" };
    format!("{nanoseconds:x}-{length:x}-{number:x}{dash}{}", source.coding)
}

/// A time as HTTP writes it: `Mon, 23 Nov 2026 12:04:05 GMT`.
pub(crate) fn date(seconds: u64) -> Date {
    // Beyond the year 9999 there is no date; and such a clock is wrong.
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    Date::new(time.unwrap_or(SystemTime::UNIX_EPOCH))
}

fn http_date(seconds: u64) -> HeaderValue {
    HeaderValue::from_bytes(date(seconds).as_bytes())
        .expect("a date is made of letters, digits and signs")
}

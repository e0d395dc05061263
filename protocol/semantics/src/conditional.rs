//! RFC 9110 §13: conditional requests, and which of several conditions counts.

use http::Method;

use crate::entity_tag::{EntityTag, tags};
use crate::{FieldName, Head, parse_http_date};

/// Validators of the representation that would be sent.
#[derive(Debug, Clone, Copy)]
pub struct Validators<'a> {
    /// Its entity tag.
    pub entity_tag: Option<EntityTag<'a>>,
    /// When it was modified last, in seconds since the epoch.
    pub last_modified: Option<u64>,
    /// True if it surely was not modified twice in that second (§8.8.2.2).
    pub last_modified_is_strong: bool,
}

/// Result of a request's conditions (§13.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// The method is to be performed; `range` says whether a `Range` field counts.
    Perform {
        /// There is none, or its `If-Range` holds.
        range: bool,
    },
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// The fields of a request that decide which response it gets, found in one pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conditions<'a> {
    if_match: Option<&'a [u8]>,
    if_none_match: Option<&'a [u8]>,
    if_modified_since: Option<&'a [u8]>,
    if_unmodified_since: Option<&'a [u8]>,
    if_range: Option<&'a [u8]>,
    range: Option<&'a [u8]>,
    accept_encoding: Option<&'a [u8]>,
    /// A field came on several lines: lists are read again from the head; what is no list is void.
    repeated: Option<&'a Head>,
}

impl<'a> Conditions<'a> {
    /// Looks them up.
    #[inline]
    #[must_use]
    pub fn of(head: &'a Head) -> Self {
        let mut found = Self::default();
        for field in head.fields() {
            let place = match field.known {
                Some(FieldName::IfMatch) => &mut found.if_match,
                Some(FieldName::IfNoneMatch) => &mut found.if_none_match,
                Some(FieldName::IfModifiedSince) => &mut found.if_modified_since,
                Some(FieldName::IfUnmodifiedSince) => &mut found.if_unmodified_since,
                Some(FieldName::IfRange) => &mut found.if_range,
                Some(FieldName::Range) => &mut found.range,
                Some(FieldName::AcceptEncoding) => &mut found.accept_encoding,
                _ => continue,
            };
            if place.is_some() {
                found.repeated = Some(head);
            }
            *place = Some(field.value);
        }
        found
    }

    /// Returns whether a request has any of these fields but `Accept-Encoding`, at a fraction of the cost of finding
    /// them.
    #[inline]
    #[must_use]
    pub fn are_in(head: &Head) -> bool {
        head.fields().any(|field| {
            matches!(
                field.known,
                Some(
                    FieldName::IfMatch
                        | FieldName::IfNoneMatch
                        | FieldName::IfModifiedSince
                        | FieldName::IfUnmodifiedSince
                        | FieldName::IfRange
                        | FieldName::Range
                )
            )
        })
    }

    /// Returns whether the request has none of these fields.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.accept_encoding.is_none() && self.range.is_none() && self.is_unconditional()
    }

    /// Returns whether every response but the plain one is out of the question.
    #[inline]
    fn is_unconditional(&self) -> bool {
        self.if_match.is_none()
            && self.if_none_match.is_none()
            && self.if_modified_since.is_none()
            && self.if_unmodified_since.is_none()
            && self.if_range.is_none()
    }

    /// The lines of `Accept-Encoding`.
    pub fn accept_encoding(&self) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.lines(FieldName::AcceptEncoding, self.accept_encoding)
    }

    /// The value of `Range`. It is no list: given twice, it asks for nothing.
    #[must_use]
    pub fn range(&self) -> Option<&'a [u8]> {
        self.single(FieldName::Range, self.range)
    }

    /// Evaluates the conditions in their order of precedence (§13.2.2).
    #[inline]
    #[must_use]
    pub fn evaluate(&self, method: &Method, validators: &Validators<'_>) -> Precondition {
        if self.is_unconditional() {
            return Precondition::Perform { range: self.range.is_some() };
        }
        self.evaluate_each(method, validators)
    }

    #[cold]
    fn evaluate_each(&self, method: &Method, validators: &Validators<'_>) -> Precondition {
        let reads = method == Method::GET || method == Method::HEAD;
        if self.if_match.is_some() {
            if !self.any_tag(FieldName::IfMatch, self.if_match, validators, EntityTag::is_strongly)
            {
                return Precondition::Failed;
            }
        } else if let Some(modified) = validators.last_modified
            && let Some(since) = self.date(FieldName::IfUnmodifiedSince, self.if_unmodified_since)
            && modified > since
        {
            return Precondition::Failed;
        }
        if self.if_none_match.is_some() {
            let known = (FieldName::IfNoneMatch, self.if_none_match);
            if self.any_tag(known.0, known.1, validators, EntityTag::is_weakly) {
                return if reads { Precondition::NotModified } else { Precondition::Failed };
            }
        } else if reads
            && let Some(modified) = validators.last_modified
            && let Some(since) = self.date(FieldName::IfModifiedSince, self.if_modified_since)
            && modified <= since
        {
            return Precondition::NotModified;
        }
        Precondition::Perform { range: self.range.is_some() && self.range_holds(validators) }
    }

    /// §13.1.5: whether the part asked for still belongs to what the client has.
    fn range_holds(&self, validators: &Validators<'_>) -> bool {
        if self.if_range.is_none() {
            return true;
        }
        let Some(value) = self.single(FieldName::IfRange, self.if_range) else { return false };
        match (EntityTag::parse(value), validators.entity_tag) {
            (Some(given), Some(ours)) => given.is_strongly(&ours),
            (Some(_), None) => false,
            (None, _) => {
                validators.last_modified_is_strong
                    && validators.last_modified.is_some()
                    && parse_http_date(value) == validators.last_modified
            }
        }
    }

    fn any_tag(
        &self,
        name: FieldName,
        last: Option<&'a [u8]>,
        validators: &Validators<'_>,
        equal: fn(&EntityTag<'a>, &EntityTag<'_>) -> bool,
    ) -> bool {
        self.lines(name, last).any(|line| {
            line == b"*"
                || validators
                    .entity_tag
                    .is_some_and(|ours| tags(line).any(|tag| equal(&tag, &ours)))
        })
    }

    fn date(&self, name: FieldName, last: Option<&'a [u8]>) -> Option<u64> {
        self.single(name, last).and_then(parse_http_date)
    }

    /// The lines of a field that is a list.
    fn lines(
        &self,
        name: FieldName,
        last: Option<&'a [u8]>,
    ) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let single = if self.repeated.is_some() { None } else { last };
        let several = self.repeated.into_iter().flat_map(move |head| {
            head.fields().filter(move |field| field.known == Some(name)).map(|field| field.value)
        });
        single.into_iter().chain(several)
    }

    /// The value of a field that is no list, if it came once.
    fn single(&self, name: FieldName, last: Option<&'a [u8]>) -> Option<&'a [u8]> {
        match self.repeated {
            Some(head) if head.get_all(name).count() > 1 => None,
            _ => last,
        }
    }
}

#[cfg(test)]
mod tests;

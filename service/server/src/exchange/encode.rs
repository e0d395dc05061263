//! RFC 9110 §8.4: what a policy edits of a final response, and whether its content is encoded.

use std::mem;

use bolide_buffers::Chunk;
use bolide_connection::SharedFields;
use bolide_semantics::{Content, FieldName, FieldRef, ResponseHead, parse_content_length};
use bytes::Bytes;
use http::StatusCode;
use http::header::{ETAG, VARY};

use super::encoded::{Encoded, WholeBody};
use super::paced::Paced;
use super::{Io, Kind, Phase};
use crate::coding::{Codec, Coding};
use crate::policy::ResponseFields;

/// Fields of an encoded content in the head.
struct Representation<'a> {
    vary: &'a [u8],
    coding: Option<&'static str>,
    etag: Option<Vec<u8>>,
}

impl Io<'_> {
    /// Sends the head of the final response with its fields edited as the exchange's policy has it, and its content
    /// encoded. Whether they could be sent.
    #[cold]
    pub(super) fn send_edited(
        &mut self,
        head: &ResponseHead<'_, SharedFields>,
        content: Content<'_>,
    ) -> bool {
        let Some(policy) = self.state.policy.get() else { return self.send_final(head, content) };
        let mut fields = ResponseFields::new(head.status, head.own);
        policy.edit(&mut fields);
        if !self.state.begins_tunnel(head.status) {
            self.state.paced = policy.pace().map(|pace| Box::new(Paced::new(pace)));
        }
        let length = head.length.or_else(|| announced(&fields));
        let coding = if self.may_encode(head.status, &content) {
            policy.coding(&fields, length)
        } else {
            Coding::Plain
        };
        let (codec, offload) = match coding {
            Coding::Plain => {
                let (content, whole) = self.held_back(content);
                let head = ResponseHead { own: fields.refs(), ..*head };
                return self.send_final(&head, content) && self.send_whole(whole);
            }
            Coding::Varies => (None, None),
            Coding::By(codec, offload) => (Some(codec), Some(offload)),
        };
        let (codec, content, mut whole) = prepare(codec, content);
        let said = Representation::of(&fields, codec);
        let mut fields = ResponseFields::new(head.status, fields.refs());
        said.write(&mut fields);
        let length = match &content {
            _ if codec.is_none() => head.length,
            Content::Whole(whole) => Some(whole.bytes.len() as u64),
            Content::None | Content::Follows => None,
        };
        let mut content = content;
        if codec.is_none() {
            (content, whole) = self.held_back(content);
        }
        let follows = matches!(content, Content::Follows);
        let head = ResponseHead { own: fields.refs(), length, ..*head };
        if !self.send_final(&head, content) {
            return false;
        }
        if let (Some(codec), Some(offload), true) = (codec, offload, follows) {
            let is_open = self.state.phase != Phase::Done;
            self.state.encoded = is_open.then(|| Box::new(Encoded::new(codec, offload)));
        }
        self.send_whole(whole)
    }

    /// Sends content that is at hand in pieces, if there is any; what was sent with the head counts, too.
    fn send_whole(&mut self, whole: Option<Bytes>) -> bool {
        self.note_pace();
        if let Some(whole) = whole {
            self.state.stream = Some(Box::new(WholeBody(whole)));
            self.pull();
            self.pause();
        }
        true
    }

    /// Returns whether a response has content that could be encoded, or would have it but for HEAD.
    fn may_encode(&self, status: StatusCode, content: &Content<'_>) -> bool {
        let is_head = self.state.kind == Kind::Head;
        (is_head || !matches!(content, Content::None))
            && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
            && !status.is_informational()
            && !self.state.begins_tunnel(status)
    }
}

/// Encodes a small content at once, if it shrinks; of a large one, it is the body that follows.
fn prepare<'c>(
    codec: Option<&'static dyn Codec>,
    content: Content<'c>,
) -> (Option<&'static dyn Codec>, Content<'c>, Option<Bytes>) {
    match (codec, content) {
        (Some(codec), Content::Whole(whole)) if whole.bytes.len() <= codec.inline_bytes() => {
            match codec.encode(&whole.bytes) {
                Ok(encoded) if encoded.len() < whole.bytes.len() => {
                    *whole = Chunk::kept(encoded.into());
                    (Some(codec), Content::Whole(whole), None)
                }
                Ok(_) | Err(_) => (None, Content::Whole(whole), None),
            }
        }
        (Some(codec), Content::Whole(whole)) => {
            (Some(codec), Content::Follows, Some(mem::take(whole).detach().bytes))
        }
        (codec, content) => (codec, content, None),
    }
}

/// The length that the fields announce.
fn announced(fields: &ResponseFields<'_>) -> Option<u64> {
    let is_length = |field: &&FieldRef<'_>| field.known == Some(FieldName::ContentLength);
    fields.refs().iter().find(is_length).and_then(|field| parse_content_length(field.value))
}

impl Representation<'_> {
    fn of(fields: &ResponseFields<'_>, codec: Option<&'static dyn Codec>) -> Self {
        let names = |line: &[u8]| {
            line.split(|byte| *byte == b',').any(|name| {
                let name = name.trim_ascii();
                name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding")
            })
        };
        let vary: &[u8] = if fields.get_all(&VARY).any(names) { b"" } else { b"accept-encoding" };
        // §8.8.3.3: a strong one names the bytes, and these become others.
        let strong = fields.get(&ETAG).filter(|tag| codec.is_some() && !tag.starts_with(b"W/"));
        let etag = strong.map(|tag| [b"W/", tag].concat());
        Self { vary, coding: codec.map(Codec::name), etag }
    }

    fn write<'f>(&'f self, fields: &mut ResponseFields<'f>) {
        let fields = fields.all();
        if !self.vary.is_empty() {
            fields.push(FieldRef::known(FieldName::Vary, self.vary));
        }
        let Some(coding) = self.coding else { return };
        // Ranges are those of the content before its coding, too.
        fields.retain(|field| {
            !matches!(field.known, Some(FieldName::ContentLength | FieldName::AcceptRanges))
        });
        fields.push(FieldRef::known(FieldName::ContentEncoding, coding.as_bytes()));
        if let Some(etag) = &self.etag {
            fields.retain(|field| field.known != Some(FieldName::Etag));
            fields.push(FieldRef::known(FieldName::Etag, etag));
        }
    }
}

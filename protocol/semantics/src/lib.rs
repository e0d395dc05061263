//! Semantics of HTTP in every version (RFC 9110): one vocabulary of heads, exchanges and events.
//!
//! HTTP/1.1 and HTTP/2 speak in the same [`ExchangeEvent`]s about the same [`Head`], and take the
//! same [`RequestHead`] and [`ResponseHead`], so that nothing above them is written twice.
//!
//! This crate must never know a version's wire format.

mod accept_encoding;
mod bucket;
mod clock;
mod conditional;
mod connection_fields;
mod context;
mod date;
mod deadline;
mod entity_tag;
mod exchange;
mod field_name;
mod field_section;
mod forwarding;
mod head;
mod head_reader;
pub mod limits;
mod message;
mod name_kind;
mod one_line;
mod outgoing;
mod pace;
mod pending_trailers;
mod priority;
mod range;
mod sent_fields;
mod syntax;
mod target_path;
mod text;
mod url;

pub use accept_encoding::preferred_coding;
pub use bucket::Bucket;
pub use clock::{Clock, Earliest, millis};
pub use conditional::{Conditions, Precondition, Validators};
pub use connection_fields::{is_connection_specific, is_hop_by_hop, names_in};
pub use context::Context;
pub use date::{Date, parse_http_date};
pub use deadline::{Deadline, DeadlineReason};
pub use entity_tag::EntityTag;
pub use exchange::{
    AbortReason, Blame, CloseReason, ConnectionEvent, End, ExchangeEvent, ExchangeId, Misuse,
    Output, Role,
};
pub use field_name::FieldName;
pub use field_section::{FIELD_OVERHEAD, FieldSection, Line, Note};
pub use head::{Field, Head, HeadKind, Span};
pub use head_reader::{
    ExchangeKind, ExpectedHead, HeadLimits, HeadReader, HeadSize, HeadSummary, LENGTH_UNKNOWN,
};
pub use message::{has_no_body, parse_content_length};
pub use name_kind::{NameKind, Pseudo};
pub use one_line::{in_lines, in_markup, in_one_line, is_terminal_order};
pub use outgoing::{Content, FieldRef, RequestHead, ResponseHead};
pub use pace::{BodiesPace, Pace, PaceLimits, keeps_pace};
pub use pending_trailers::PendingTrailers;
pub use priority::Priority;
pub use range::{ByteRange, RangeRequest, parse_range, unsatisfied_content_range};
pub use sent_fields::{check_fields, check_target, travels};
pub use syntax::{
    TOKEN_LOWER, is_field_value, is_token, is_valid_authority, is_valid_scheme, is_valid_target,
};
pub use target_path::{decode_path, has_dot_segment};
pub use text::{SHORT_BYTES, Text};
pub use url::{Scheme, Url, UrlError, check_path, split_authority};

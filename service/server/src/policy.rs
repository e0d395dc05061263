//! Decisions of a handler about an exchange as a whole, whatever makes its response.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bolide_semantics::{FieldName, FieldRef};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use smallvec::SmallVec;

use crate::coding::Coding;

/// Rules for one exchange, given by [`Request::set_policy`](crate::Request::set_policy): they hold for every final
/// response, also for those that the server makes itself.
pub trait Policy: fmt::Debug {
    /// Edits the fields of the final response. Default: no change.
    fn edit<'p>(&'p self, fields: &mut ResponseFields<'p>) {
        let _ = fields;
    }

    /// Page in place of the text of [`Response::error`](crate::Response::error), with its type. Default: none.
    fn error_page(&self, status: StatusCode) -> Option<(Bytes, HeaderValue)> {
        let _ = status;
        None
    }

    /// Time for the response to begin, in place of [`Limits::response_timeout`](crate::Limits::response_timeout).
    fn response_timeout(&self) -> Option<Duration> {
        None
    }

    /// Time for the whole exchange, in place of [`Limits::exchange_timeout`](crate::Limits::exchange_timeout).
    fn exchange_timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns whether the content of the final response is encoded; asked after [`Self::edit`]. `length`: of the content, in
    /// bytes, if known. Fields follow from it, and tunnels and responses without content are not asked about. Default:
    /// it is sent as it is.
    fn coding(&self, fields: &ResponseFields<'_>, length: Option<u64>) -> Coding {
        let _ = (fields, length);
        Coding::Plain
    }

    /// How fast the content of the final response is sent; that of tunnels is not. Default: as fast as the client takes it.
    fn pace(&self) -> Option<Rc<dyn Pace>> {
        None
    }

    /// How fast the content of the request is handed on; that of tunnels is not. Asked when it begins to come. Default: as fast as
    /// the handler takes it.
    fn receive_pace(&self) -> Option<Rc<dyn Pace>> {
        None
    }

    /// Name of the user that the request is from, for the access log. Default: none.
    fn user(&self) -> Option<&str> {
        None
    }

    /// The memory that it keeps because of its request, in bytes; zero for one that several exchanges share. It counts
    /// among what the client's connection keeps. Default: 0.
    fn held_bytes(&self) -> usize {
        0
    }
}

/// How fast content is sent or handed on, for all exchanges that share it.
pub trait Pace: fmt::Debug {
    /// How many bytes may go now, at least one.
    ///
    /// # Errors
    ///
    /// None: when it is to be asked again, which is later than `now`.
    fn ready(&self, now: Instant) -> Result<usize, Instant>;

    /// So many bytes of content have gone.
    fn sent(&self, bytes: u64, now: Instant);
}

/// Fields that a response has in most cases; with more, editing takes memory.
const FIELDS_COUNT: usize = 16;

/// The fields of a final response, for a [`Policy`] to edit. The fields that frame the message are not among those that
/// can be changed: the connection writes them.
#[derive(Debug)]
pub struct ResponseFields<'f> {
    status: StatusCode,
    fields: SmallVec<[FieldRef<'f>; FIELDS_COUNT]>,
}

impl<'f> ResponseFields<'f> {
    pub(crate) fn new(status: StatusCode, fields: &[FieldRef<'f>]) -> Self {
        Self { status, fields: SmallVec::from_slice(fields) }
    }

    /// Those of a response with this status.
    #[must_use]
    pub fn of(status: StatusCode, fields: &'f [(HeaderName, HeaderValue)]) -> Self {
        let fields = fields.iter().map(|(name, value)| FieldRef::from((name, value)));
        Self { status, fields: fields.collect() }
    }

    pub(crate) fn refs(&self) -> &[FieldRef<'f>] {
        &self.fields
    }

    /// The fields for changes that no policy makes: those that frame the message among them.
    pub(crate) fn all(&mut self) -> &mut SmallVec<[FieldRef<'f>; FIELDS_COUNT]> {
        &mut self.fields
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The value of the first field with this name.
    #[must_use]
    pub fn get(&self, name: &HeaderName) -> Option<&'f [u8]> {
        self.fields.iter().find(|field| field.name == name.as_str()).map(|field| field.value)
    }

    /// The values of all fields with this name.
    pub fn get_all<'s>(&'s self, name: &HeaderName) -> impl Iterator<Item = &'f [u8]> + 's {
        let name = name.clone();
        self.fields.iter().filter(move |field| field.name == name.as_str()).map(|field| field.value)
    }

    /// Adds a field.
    pub fn add(&mut self, name: &'f HeaderName, value: &'f HeaderValue) {
        let field = FieldRef::from((name, value));
        if !is_framing(&field) {
            self.fields.push(field);
        }
    }

    /// Removes every field with this name.
    pub fn remove(&mut self, name: &HeaderName) {
        self.fields.retain(|field| field.name != name.as_str() || is_framing(field));
    }

    /// Adds a field in place of every other with its name.
    pub fn set(&mut self, name: &'f HeaderName, value: &'f HeaderValue) {
        self.remove(name);
        self.add(name, value);
    }
}

/// Returns whether the field frames the message, or switches protocols.
fn is_framing(field: &FieldRef<'_>) -> bool {
    field.known.is_some_and(|name| {
        matches!(name, FieldName::ContentLength | FieldName::Trailer)
            || bolide_semantics::is_hop_by_hop(name)
    })
}

/// The policy of an exchange, if it has one: its handlers may set it until they have returned.
#[derive(Default)]
pub(crate) struct PolicySlot(RefCell<Option<Rc<dyn Policy>>>);

impl fmt::Debug for PolicySlot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PolicySlot")
    }
}

impl PolicySlot {
    /// Adds a policy to those that hold already; what both decide is the later one's.
    pub(crate) fn add(&self, policy: Rc<dyn Policy>) {
        let mut slot = self.0.borrow_mut();
        *slot = Some(match slot.take() {
            None => policy,
            Some(before) => Rc::new(Both { before, after: policy }),
        });
    }

    /// Returns whether there is one.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// The same without a look at who else has it.
    #[inline]
    pub(crate) fn is_there(&mut self) -> bool {
        self.0.get_mut().is_some()
    }

    /// The memory that it keeps because of its request, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.0.borrow().as_ref().map_or(0, |policy| policy.held_bytes())
    }

    /// The policy.
    pub(crate) fn get(&self) -> Option<Rc<dyn Policy>> {
        self.0.borrow().clone()
    }
}

/// Two policies of one exchange.
#[derive(Debug)]
struct Both {
    before: Rc<dyn Policy>,
    after: Rc<dyn Policy>,
}

impl Policy for Both {
    fn edit<'p>(&'p self, fields: &mut ResponseFields<'p>) {
        self.before.edit(fields);
        self.after.edit(fields);
    }

    fn error_page(&self, status: StatusCode) -> Option<(Bytes, HeaderValue)> {
        self.after.error_page(status).or_else(|| self.before.error_page(status))
    }

    fn response_timeout(&self) -> Option<Duration> {
        self.after.response_timeout().or_else(|| self.before.response_timeout())
    }

    fn exchange_timeout(&self) -> Option<Duration> {
        self.after.exchange_timeout().or_else(|| self.before.exchange_timeout())
    }

    fn coding(&self, fields: &ResponseFields<'_>, length: Option<u64>) -> Coding {
        match self.after.coding(fields, length) {
            Coding::Plain => self.before.coding(fields, length),
            coding => coding,
        }
    }

    fn pace(&self) -> Option<Rc<dyn Pace>> {
        self.after.pace().or_else(|| self.before.pace())
    }

    fn receive_pace(&self) -> Option<Rc<dyn Pace>> {
        self.after.receive_pace().or_else(|| self.before.receive_pace())
    }

    fn user(&self) -> Option<&str> {
        self.after.user().or_else(|| self.before.user())
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.before.held_bytes() + self.after.held_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_added_and_removed() {
        let given = [FieldRef::named("x-a", b"1"), FieldRef::named("x-b", b"2")];
        let [a, b, c] = ["x-a", "x-b", "x-c"].map(HeaderName::from_static);
        let new = HeaderValue::from_static("new");
        let mut fields = ResponseFields::new(StatusCode::OK, &given);
        fields.set(&a, &new);
        fields.add(&c, &new);
        fields.add(&c, &new);
        fields.remove(&b);
        let names: Vec<_> = fields.refs().iter().map(|field| field.name).collect();
        assert_eq!(names, ["x-a", "x-c", "x-c"]);
        assert_eq!(fields.get(&a), Some(&b"new"[..]));
        assert_eq!(fields.get(&b), None);
    }

    #[test]
    fn fields_that_frame_the_message_stay() {
        let names =
            ["content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"];
        for name in names {
            let given = [FieldRef::named(name, b"1")];
            let (name, value) = (HeaderName::from_static(name), HeaderValue::from_static("2"));
            let mut fields = ResponseFields::new(StatusCode::OK, &given);
            fields.set(&name, &value);
            assert_eq!(fields.get(&name), Some(&b"1"[..]), "{name}");
            assert_eq!(fields.refs().len(), 1, "{name}");
        }
    }
}

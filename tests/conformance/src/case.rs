//! A case: what is sent, and what may come of it.

/// Fate of the connection after the last response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It serves the next request.
    Open,
    /// The server closes it and answers nothing more.
    Closed,
    /// Either.
    Any,
}

/// One way in which a case may end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// For each final response, the statuses that it may have.
    pub responses: Vec<Vec<u16>>,
    /// The connection afterwards.
    pub after: After,
}

impl Outcome {
    fn new(responses: &[&[u16]], after: After) -> Self {
        Self { responses: responses.iter().map(|statuses| statuses.to_vec()).collect(), after }
    }
}

/// A client's bytes, and what the RFC allows a server to do.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name: unique.
    pub name: &'static str,
    /// The bytes that are sent.
    pub request: Vec<u8>,
    /// The bytes that are sent after the interim response 100.
    pub rest: Option<Vec<u8>>,
    /// True if the client ends its side after the request.
    pub half_close: bool,
    /// The responses that have no content because they answer HEAD, counted from 0.
    pub heads: Vec<usize>,
    /// The content of the last response, if it has status 200 or 206.
    pub content: Option<Vec<u8>>,
    /// Fields that the last response must have, in lower case; with a value, if it isn't empty.
    pub fields: Vec<(&'static str, &'static str)>,
    /// Outcomes that are right for everybody, strict servers too.
    pub allowed: Vec<Outcome>,
    /// Outcomes that the RFC also allows, but a strict server doesn't have.
    pub tolerated: Vec<Outcome>,
    /// True if a response that breaks off is as good as a refusal: the head was sent before the
    /// mistake arrived.
    pub may_break_off: bool,
}

/// A refusal: 400, and the connection can't be trusted any more.
const REFUSAL: &[u16] = &[400];

impl Case {
    fn new(name: &'static str, request: impl AsRef<[u8]>, allowed: Vec<Outcome>) -> Self {
        Self {
            name,
            request: request.as_ref().to_vec(),
            rest: None,
            half_close: false,
            heads: Vec::new(),
            content: None,
            fields: Vec::new(),
            allowed,
            tolerated: Vec::new(),
            may_break_off: false,
        }
    }

    /// A request that every server answers with 200 and goes on.
    pub fn accepted(name: &'static str, request: impl AsRef<[u8]>) -> Self {
        Self::new(name, request, vec![Outcome::new(&[&[200]], After::Open)])
    }

    /// A request that no server may take: 400, and the connection ends.
    pub fn refused(name: &'static str, request: impl AsRef<[u8]>) -> Self {
        let mut case = Self::new(name, request, vec![Outcome::new(&[REFUSAL], After::Closed)]);
        case.tolerated = vec![Outcome::new(&[], After::Closed)];
        case.may_break_off = true;
        case
    }

    /// A request that a server may mend and take, but a strict one refuses as above.
    pub fn ambiguous(name: &'static str, request: impl AsRef<[u8]>) -> Self {
        let mut case = Self::refused(name, request);
        case.tolerated.push(Outcome::new(&[&[200]], After::Any));
        case
    }

    /// A request that a server may take or refuse.
    pub fn either(name: &'static str, request: impl AsRef<[u8]>) -> Self {
        let mut case = Self::refused(name, request);
        case.allowed.push(Outcome::new(&[&[200]], After::Any));
        case
    }

    /// Other statuses than the usual for the first allowed outcome's last response.
    pub fn statuses(mut self, statuses: &[u16]) -> Self {
        if let Some(last) = self.allowed[0].responses.last_mut() {
            *last = statuses.to_vec();
        }
        self
    }

    /// As many responses as these, instead of one.
    pub fn answers(mut self, responses: &[&[u16]]) -> Self {
        self.allowed[0].responses = responses.iter().map(|statuses| statuses.to_vec()).collect();
        self
    }

    /// Sets what happens to the connection in the first allowed outcome.
    pub fn after(mut self, after: After) -> Self {
        self.allowed[0].after = after;
        self
    }

    /// One more outcome that is right for everybody.
    pub fn or(mut self, responses: &[&[u16]], after: After) -> Self {
        self.allowed.push(Outcome::new(responses, after));
        self
    }

    /// One more outcome that the RFC tolerates in servers that aren't strict.
    pub fn tolerates(mut self, responses: &[&[u16]], after: After) -> Self {
        self.tolerated.push(Outcome::new(responses, after));
        self
    }

    /// The content of the last response.
    pub fn content(mut self, content: impl AsRef<[u8]>) -> Self {
        self.content = Some(content.as_ref().to_vec());
        self
    }

    /// A field of the last response, and its value, if that matters.
    pub fn field(mut self, name: &'static str, value: &'static str) -> Self {
        self.fields.push((name, value));
        self
    }

    /// The responses to HEAD, counted from 0.
    pub fn heads(mut self, heads: &[usize]) -> Self {
        self.heads = heads.to_vec();
        self
    }

    /// The client ends its side after the request.
    pub fn half_closed(mut self) -> Self {
        self.half_close = true;
        self
    }

    /// Sets what the client sends when it has seen the interim response 100.
    pub fn then(mut self, rest: impl AsRef<[u8]>) -> Self {
        self.rest = Some(rest.as_ref().to_vec());
        self
    }

    /// All outcomes that count for this server.
    pub fn outcomes(&self, strict: bool) -> impl Iterator<Item = &Outcome> {
        let tolerated = if strict { [].iter() } else { self.tolerated.iter() };
        self.allowed.iter().chain(tolerated)
    }

    /// The most responses that any of the outcomes has.
    pub fn responses_max(&self) -> usize {
        let all = self.allowed.iter().chain(&self.tolerated);
        all.map(|outcome| outcome.responses.len()).max().unwrap_or(0)
    }
}

//! The clients, and the origin behind the proxy.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use bolide_semantics::{
    Content, End, ExchangeEvent, ExchangeId, FieldName, FieldRef, RequestHead, ResponseHead,
};
use bolide_server::{Bytes, Method, StatusCode};

use crate::party::{Orders, Role};

/// Treatment of a request by the origin: part of its path, so that a seed decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is answered with its body.
    Echo,
    /// The connection is reset when its head has come.
    DieAtHead,
    /// The connection is reset in the middle of the response.
    DieInBody,
}

/// A request and what has come back.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) fate: Fate,
    pub(crate) body: Vec<u8>,
    pub(crate) counted: bool,
    pub(crate) status: Option<StatusCode>,
    pub(crate) response: Vec<u8>,
    pub(crate) ended: bool,
}

impl Asked {
    pub(crate) fn new(method: Method, fate: Fate, body: Vec<u8>, counted: bool) -> Self {
        let (status, response) = (None, Vec::new());
        Self { method, fate, body, counted, status, response, ended: false }
    }

    fn path(&self) -> &'static str {
        match self.fate {
            Fate::Echo => "/echo",
            Fate::DieAtHead => "/die-at-head",
            Fate::DieInBody => "/die-in-body",
        }
    }
}

/// The requests of one client.
pub(crate) type Requests = Rc<RefCell<Vec<Asked>>>;

/// Sends requests as soon as it can.
pub(crate) struct Asker {
    pub(crate) requests: Requests,
    ids: Vec<ExchangeId>,
}

impl Asker {
    pub(crate) fn new(requests: &Requests) -> Self {
        Self { requests: Rc::clone(requests), ids: Vec::new() }
    }
}

impl Role for Asker {
    fn event(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        let Some(at) = self.ids.iter().position(|asked| *asked == id) else { return };
        let asked = &mut self.requests.borrow_mut()[at];
        match event {
            ExchangeEvent::Head(end) => {
                asked.status = Some(orders.cx.head.status());
                asked.ended = end == End::Yes;
            }
            ExchangeEvent::Data(data, end) => {
                asked.response.extend_from_slice(&data);
                asked.ended = end == End::Yes;
            }
            _ => {}
        }
    }

    fn settled(&mut self, orders: &mut Orders<'_>) {
        let requests = self.requests.borrow();
        while self.ids.len() < requests.len() && orders.connection.exchanges_available() > 0 {
            let asked = &requests[self.ids.len()];
            let length = asked.body.len().to_string();
            let field = FieldRef::known(FieldName::ContentLength, length.as_bytes());
            let has_body = asked.method != Method::GET;
            let fields = (has_body && asked.counted).then_some(field);
            let end = if has_body { End::No } else { End::Yes };
            let head = RequestHead {
                method: &asked.method,
                scheme: "http",
                authority: "a",
                path: asked.path(),
                protocol: None,
                fields: fields.as_slice(),
            };
            let Ok(id) = orders.connection.send_request(&mut orders.cx, &head, end) else { return };
            orders.ordered = true;
            self.ids.push(id);
            if has_body {
                orders.send(id, asked.body.clone());
            }
        }
        orders.finishes =
            self.ids.len() == requests.len() && requests.iter().all(|asked| asked.ended);
    }
}

/// Answers each request as its path says.
#[derive(Default)]
pub(crate) struct Origin {
    open: HashMap<ExchangeId, (String, Vec<u8>)>,
}

impl Origin {
    fn answer(id: ExchangeId, path: &str, body: Vec<u8>, orders: &mut Orders<'_>) {
        let dies = path == "/die-in-body";
        // What is cut off must not be all of it.
        let length = (body.len() + usize::from(dies)).to_string();
        let field = FieldRef::known(FieldName::ContentLength, length.as_bytes());
        // Of the others, some lengths are said and some are not.
        let says = dies || !body.len().is_multiple_of(3);
        let fields = if says { std::slice::from_ref(&field) } else { &[] };
        let head = ResponseHead::new(StatusCode::OK, fields);
        let connection = &mut orders.connection;
        if connection.send_response(&mut orders.cx, id, &head, Content::Follows).is_err() {
            return;
        }
        orders.ordered = true;
        if dies {
            let _ = connection.send_data(&mut orders.cx, id, Bytes::from(body), End::No);
            orders.resets = true;
        } else {
            orders.send(id, body);
        }
    }
}

impl Role for Origin {
    fn event(&mut self, id: ExchangeId, event: ExchangeEvent, orders: &mut Orders<'_>) {
        let end = match event {
            ExchangeEvent::Head(end) => {
                let path = orders.cx.head.path_and_query().to_owned();
                orders.resets |= path == "/die-at-head";
                self.open.insert(id, (path, Vec::new()));
                end
            }
            ExchangeEvent::Data(data, end) => {
                if let Some((_, body)) = self.open.get_mut(&id) {
                    body.extend_from_slice(&data);
                }
                end
            }
            ExchangeEvent::Aborted(_) => {
                self.open.remove(&id);
                return;
            }
            _ => End::No,
        };
        if end == End::Yes
            && let Some((path, body)) = self.open.remove(&id)
        {
            Self::answer(id, &path, body, orders);
        }
    }

    fn settled(&mut self, _: &mut Orders<'_>) {}
}

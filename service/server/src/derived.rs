//! Requests that a handler hands on with another head.

use std::rc::Rc;

use bolide_semantics::Head;

use crate::{Handler, Reply, Request};

impl Request<'_> {
    /// Lets `act` see this request with another head, for example one with a rewritten target: connection, addresses,
    /// body and the route's parameters are the same. The access log keeps what the client sent.
    pub fn with_head(&mut self, head: &Head, act: impl FnOnce(&mut Request<'_>) -> Reply) -> Reply {
        let mut derived = Request { head, whole: self.whole.take(), ..*self };
        let reply = act(&mut derived);
        self.whole = derived.whole;
        match reply {
            // The handler that may be next sees the same head.
            Reply::LaterOr(handler) => {
                Reply::LaterOr(Rc::new(WithHead { head: head.clone(), handler }))
            }
            reply => reply,
        }
    }
}

/// A handler of requests with this head.
struct WithHead {
    head: Head,
    handler: Rc<dyn Handler>,
}

impl Handler for WithHead {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        request.with_head(&self.head, |request| self.handler.handle(request))
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.handler.body_bytes_max()
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.head.allocated_bytes() + self.handler.held_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_waits_for_another_handler_is_charged() {
        let mut head = Head::default();
        head.append("x-a", &[b'a'; 1000]);
        let handler: Rc<dyn Handler> = Rc::new(|_: &mut Request<'_>| "");
        let twice = WithHead { head: head.clone(), handler: Rc::new(WithHead { head, handler }) };
        assert!(twice.held_bytes() >= 2000, "{}", twice.held_bytes());
    }
}

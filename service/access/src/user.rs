//! User of a request, once known.

use std::rc::Rc;

use bolide_server::{Handler, Policy, Reply, Request};

/// A user, as the access log names it.
#[derive(Debug)]
struct User(Box<str>);

impl Policy for User {
    fn user(&self) -> Option<&str> {
        Some(&self.0)
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.0.len()
    }
}

/// Notes whose request it is.
pub(crate) fn note(request: &Request<'_>, user: &str) {
    request.set_policy(Rc::new(User(user.into())));
}

/// The handler of one request whose user is known once it is called.
pub(crate) struct Of {
    pub(crate) user: String,
    pub(crate) handler: Rc<dyn Handler>,
}

impl Handler for Of {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        note(request, &self.user);
        self.handler.handle(request)
    }

    fn body_bytes_max(&self) -> Option<u64> {
        self.handler.body_bytes_max()
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.user.len()
    }
}

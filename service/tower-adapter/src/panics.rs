//! A panic in a service: a line in the log, and a 500 on that exchange.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::Method;

/// Name of a request in the log: its method and path.
pub(crate) type Name = (Method, Box<str>);

/// Does `act`; a panic in it is logged with the name of the request, and gives `None`.
#[inline]
pub(crate) fn caught<T>(act: impl FnOnce() -> T, name: impl FnOnce() -> Name) -> Option<T> {
    // What the panic left half done belongs to the exchange, which ends.
    catch_unwind(AssertUnwindSafe(act))
        .inspect_err(|payload| report(payload.as_ref(), &name()))
        .ok()
}

#[cold]
fn report(payload: &(dyn Any + Send), (method, path): &Name) {
    let said = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => *text,
        (_, Some(text)) => text.as_str(),
        _ => "a value that is not a string",
    };
    tracing::error!(target: "bolide::tower", %method, path = &**path, "the service has panicked: {said}");
}

//! A panic in a service: a line in the log, and a 500 on that exchange.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does `act`; a panic in it is logged with the name of the request, and gives `None`.
#[inline]
pub(crate) fn caught<T>(act: impl FnOnce() -> T, route: impl FnOnce() -> String) -> Option<T> {
    // What the panic left half done belongs to the exchange, which ends.
    catch_unwind(AssertUnwindSafe(act))
        .inspect_err(|payload| report(payload.as_ref(), &route()))
        .ok()
}

#[cold]
fn report(payload: &(dyn Any + Send), route: &str) {
    let said = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => *text,
        (_, Some(text)) => text.as_str(),
        _ => "a value that is no text",
    };
    tracing::error!(target: "bolide::tower", route, "the service has panicked: {said}");
}

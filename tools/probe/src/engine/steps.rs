//! Values that a user takes from the response to its step: cookies, values, and where a redirect leads.

use bolide_semantics::{FieldName, Head, Scheme, Url};
use http::{Method, StatusCode};

use super::asked::{Asked, Redirect, Step};
use super::pacer::Pacer;
use super::servers::Server;
use super::users::Hop;
use crate::report::Failure;
use crate::scenario::{Capture, Place, StepPlan};

/// The longest target that a redirect leads to, in bytes.
const TARGET_BYTES: usize = 8192;

/// The head of the response to a step has come.
pub(super) fn read_head(
    step: &mut Step,
    (plan, method): (&StepPlan, &Method),
    head: &Head,
    (servers, from): (&[Server], usize),
    pacer: &mut Pacer,
) {
    let Some(users) = pacer.users_mut() else { return };
    let user = users.user_mut(step.user);
    let hop = user.redirect.take();
    let became = hop.and_then(|hop| hop.method);
    for line in head.get_all(FieldName::SetCookie) {
        user.jar.set(line, servers[from].for_cookies(), &user.target);
    }
    if plan.redirects > 0
        && let Some(method) = method_after(head.status(), became.as_ref().unwrap_or(method))
        && let Some(location) = head.get(FieldName::Location)
    {
        let led =
            (user.hops < plan.redirects).then(|| leads_to(location, (servers, from), &user.target));
        step.redirect = Redirect::Astray;
        if let Some((server, target)) = led.flatten() {
            // What a redirect has made of the request stays so.
            let method = method.or(became);
            user.redirect = Some(Box::new(Hop { server, target, method }));
            step.redirect = Redirect::Followed;
        }
        return;
    }
    for Capture { slot, place } in plan.field_captures() {
        let Place::Field(name) = place else { continue };
        let field = head.fields().find(|field| field.name == name.as_str());
        let text = field.and_then(|field| std::str::from_utf8(field.value).ok());
        let value = text.and_then(Capture::kept);
        step.lacks_capture |= value.is_none();
        user.captured[*slot] = value;
    }
}

/// RFC 9110 §15.4: with which method a redirect of this status is followed; `Some(None)`: with the same one and the same
/// content. `None`: it is no redirect.
fn method_after(status: StatusCode, method: &Method) -> Option<Option<Method>> {
    let get = if *method == Method::HEAD { Method::HEAD } else { Method::GET };
    match status.as_u16() {
        303 => Some(Some(get)),
        301 | 302 if *method == Method::POST => Some(Some(get)),
        301 | 302 | 307 | 308 => Some(None),
        _ => None,
    }
}

/// The server and the target that a location stands for, seen from a target of the server `from` (RFC 3986 §5.2);
/// `None`: it is on none of the servers of the run, or nothing that can be asked for.
fn leads_to(
    location: &[u8],
    (servers, from): (&[Server], usize),
    target: &str,
) -> Option<(usize, String)> {
    let location = std::str::from_utf8(location).ok()?;
    let base = Url { path: target.to_owned(), ..servers[from].url.clone()? };
    let led = base.join(location, &Scheme::HTTP).ok()?;
    let is_of = |server: &Server| server.url.as_ref().is_some_and(|of| led.is_same_origin(of));
    let server = servers.iter().position(is_of).filter(|_| led.path.len() <= TARGET_BYTES)?;
    Some((server, led.path))
}

/// The verdict on a response that sends the user elsewhere.
pub(super) fn redirected(asked: &Asked) -> Result<(), Failure> {
    match asked.step.as_ref().map(|step| step.redirect) {
        Some(Redirect::Astray) => Err(Failure::Redirect),
        _ => Ok(()),
    }
}

/// The response to a step is complete: whether the user finds in it what the next steps need.
pub(super) fn read_body(
    step: &mut Step,
    plan: &StepPlan,
    pacer: &mut Pacer,
) -> Result<(), Failure> {
    if step.redirect != Redirect::None {
        return Ok(());
    }
    let mut is_right = !step.lacks_capture;
    if let Some(body) = step.kept.take() {
        if let Some(text) = &plan.contains {
            is_right &= memchr::memmem::find(&body, text.as_bytes()).is_some();
        }
        if let Some(users) = pacer.users_mut() {
            let in_body = |capture: &&Capture| capture.place.is_in_body();
            for capture in plan.captures.iter().filter(in_body) {
                let value = capture.find_in(&body);
                is_right &= value.is_some();
                users.user_mut(step.user).captured[capture.slot] = value;
            }
        }
    }
    if is_right { Ok(()) } else { Err(Failure::Capture) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use bolide_connection::Limits;
    use proptest::prelude::*;

    use super::*;
    use crate::engine::testing::plan_for;
    use crate::plan::{Origin, TlsTrust};
    use crate::scenario::Scenario;

    /// `http://a.test:81` and `https://c.test`.
    fn servers() -> Vec<Server> {
        let mut plan = plan_for("127.0.0.1:1".parse().unwrap());
        plan.tls.trust = TlsTrust::Any;
        plan.origin.authority = "a.test:81".to_owned();
        let other =
            Origin { is_https: true, authority: "c.test".to_owned(), ..plan.origin.clone() };
        let scenario = Scenario { others: vec![other], ..Scenario::new(1, Vec::new()) };
        plan.scenario = Some(Arc::new(scenario));
        Server::all(&plan, &Limits::default(), Instant::now()).unwrap()
    }

    #[test]
    fn a_location_is_resolved_and_leads_to_no_other_server() {
        let servers = servers();
        for (location, target) in [
            ("/b?x=1#top", Some("/b?x=1")),
            ("b", Some("/x/b")),
            ("../b", Some("/b")),
            ("?q", Some("/x/y?q")),
            ("http://a.test:81/c", Some("/c")),
            ("//A.test:81", Some("/")),
            ("http://a.test/c", None),
            ("https://a.test:81/c", None),
            ("//b.test/c", None),
            ("javascript:x", None),
            ("/ b", None),
        ] {
            let led = leads_to(location.as_bytes(), (&servers, 0), "/x/y?p=/q");
            assert_eq!(led, target.map(|target| (0, target.to_owned())), "{location}");
        }
        let led = |location: &str, from| leads_to(location.as_bytes(), (&servers, from), "/x");
        assert_eq!(led("https://C.test:443/z", 0), Some((1, "/z".to_owned())));
        assert_eq!(led("//c.test/z", 0), None, "over another scheme it is another server");
        assert_eq!(led("/z", 1), Some((1, "/z".to_owned())));
        assert_eq!(led("http://a.test:81", 1), Some((0, "/".to_owned())));
        assert_eq!(led(&"/".repeat(TARGET_BYTES + 1), 0), None);
    }

    #[test]
    fn a_redirect_says_with_which_method_it_is_followed() {
        let after = |status, method: Method| {
            method_after(StatusCode::from_u16(status).unwrap(), &method)
                .map(|method| method.map_or_else(|| "same".to_owned(), |method| method.to_string()))
        };
        for (status, method, expected) in [
            (303, Method::POST, Some("GET")),
            (303, Method::HEAD, Some("HEAD")),
            (302, Method::POST, Some("GET")),
            (302, Method::PUT, Some("same")),
            (301, Method::GET, Some("same")),
            (307, Method::POST, Some("same")),
            (308, Method::POST, Some("same")),
            (304, Method::GET, None),
            (200, Method::GET, None),
        ] {
            assert_eq!(after(status, method).as_deref(), expected, "{status}");
        }
    }

    proptest! {
        #[test]
        fn no_location_leads_to_another_server(location in proptest::collection::vec(any::<u8>(), 0..40)) {
            let servers = servers();
            if let Some((0, target)) = leads_to(&location, (&servers[..1], 0), "/x") {
                prop_assert!(target.starts_with('/') && bolide_semantics::check_path(&target).is_ok());
            }
        }
    }
}

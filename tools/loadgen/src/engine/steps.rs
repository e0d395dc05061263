//! What a user takes from the response to its step: cookies, values, and where a redirect leads.

use bolide_semantics::{FieldName, Head};
use http::{Method, StatusCode};
use iri_string::types::{UriAbsoluteStr, UriReferenceStr};

use super::asked::{Asked, Redirect, Step};
use super::pacer::Pacer;
use super::users::Hop;
use crate::options::target::Target;
use crate::report::Failure;
use crate::scenario::{Capture, Place, StepPlan};

/// The longest target that a redirect leads to, in bytes.
const TARGET_BYTES: usize = 8192;

/// The head of the response to a step has come.
pub(super) fn read_head(
    step: &mut Step,
    (plan, method): (&StepPlan, &Method),
    head: &Head,
    server: &Target,
    pacer: &mut Pacer,
) {
    let Some(users) = pacer.users_mut() else { return };
    let user = users.user_mut(step.user);
    let hop = user.redirect.take();
    let became = hop.and_then(|hop| hop.method);
    for line in head.get_all(FieldName::SetCookie) {
        user.jar.set(line, (&server.host, server.is_https), &user.target);
    }
    if plan.redirects > 0
        && let Some(method) = method_after(head.status(), became.as_ref().unwrap_or(method))
        && let Some(location) = head.get(FieldName::Location)
    {
        let led = (user.hops < plan.redirects).then(|| leads_to(location, server, &user.target));
        step.redirect = Redirect::Astray;
        if let Some(target) = led.flatten() {
            // What a redirect has made of the request stays so.
            let method = method.or(became);
            user.redirect = Some(Box::new(Hop { target, method }));
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

/// The target that a location stands for, seen from `from` (RFC 3986 §5.2); `None`: it is on another server, or none.
fn leads_to(location: &[u8], server: &Target, from: &str) -> Option<String> {
    let location = UriReferenceStr::new(std::str::from_utf8(location).ok()?).ok()?;
    let scheme = if server.is_https { "https" } else { "http" };
    let base = format!("{scheme}://{}{from}", server.authority());
    let led = location.resolve_against(UriAbsoluteStr::new(&base).ok()?).to_string();
    let led = Target::parse(&led).ok()?;
    (led.has_origin_of(server) && led.path.len() <= TARGET_BYTES).then_some(led.path)
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
    use super::*;
    use proptest::prelude::*;

    fn server() -> Target {
        Target::parse("http://a.test:81/").unwrap()
    }

    #[test]
    fn a_location_is_resolved_and_stays_on_its_server() {
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
            let led = leads_to(location.as_bytes(), &server(), "/x/y?p=/q");
            assert_eq!(led.as_deref(), target, "{location}");
        }
        assert_eq!(leads_to(&[b'/'; TARGET_BYTES + 1], &server(), "/"), None);
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
            if let Some(target) = leads_to(&location, &server(), "/x") {
                prop_assert!(target.starts_with('/') && crate::options::target::check_path(&target).is_ok());
            }
        }
    }
}

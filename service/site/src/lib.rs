//! Rules of a site's route: what it may match, rewrite and edit: conditions, placeholders, redirects, fields and error pages.
//!
//! [`Rules`] are what one route has in addition to its handler. [`Rules::apply`] wraps the handler, and [`Tried`] stands
//! for several routes with the same host and path. Conditions and rewriting see the same path: that of [`Facts::head`],
//! as the client sent it.

mod condition;
mod cors;
mod edit;
mod error;
mod facts;
mod limits;
mod policy;
mod presets;
mod redirect;
mod rewrite;
mod ruled;
mod rules;
mod switch;
mod template;

pub use condition::{Conditions, Scheme, Test, Tried};
pub use cors::Cors;
pub use edit::{Direction, Edits, check_name};
pub use error::SiteError;
pub use facts::Facts;
pub use limits::{EXPANDED_BYTES, PAGE_BYTES, PATTERN_BYTES, SWITCH_PERIOD};
pub use presets::{ErrorPages, Hsts, security_fields};
pub use redirect::Redirect;
pub use rewrite::{NoTarget, Pattern, Rewrite};
pub use ruled::{Edited, Ruled};
pub use rules::Rules;
pub use switch::Switch;
pub use template::{PLACEHOLDERS, Template};

//! Server-Sent Events, by the rules that W3C and WHATWG give for event streams (HTML §9.2).

mod parser;
mod source;

pub use parser::{Event, EventParser, TooLong};
pub use source::EventSource;

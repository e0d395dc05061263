//! The syntax of texts with placeholders: `{name}`, and `{{` and `}}` for braces.

/// A part of such a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart<'a> {
    /// Text that stays.
    Literal(String),
    /// Name between braces.
    Placeholder(&'a str),
}

/// The parts of a text, none of them empty but perhaps the name of a placeholder.
///
/// # Errors
///
/// What is wrong: a single brace.
pub fn text_parts(text: &str) -> Result<Vec<TextPart<'_>>, String> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            literal.push_str(brace);
            rest = after;
            continue;
        }
        let Some((name, after)) = rest.split_once('}').filter(|_| brace == "{") else {
            return Err(format!("has a single `{brace}`: write `{brace}{brace}` for a brace"));
        };
        if !literal.is_empty() {
            parts.push(TextPart::Literal(std::mem::take(&mut literal)));
        }
        parts.push(TextPart::Placeholder(name));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(TextPart::Literal(literal));
    }
    Ok(parts)
}
